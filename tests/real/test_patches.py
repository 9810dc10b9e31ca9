"""The patches against the real TensorFlow, from bare repositories named in $TFWRIGHT_TENSORFLOW_MIRRORS (by colons)."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.making import make_file
from tests.real.mirrors import mirror_of

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import PATCHES

pytestmark = pytest.mark.real

REAL = [name for name in recipes.names() if not name.startswith("demo")]
PATCHED = [name for name in REAL if recipes.read(name).source.patches]


def git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout


def touched(patch: Path) -> set[str]:
    """Return the files that a patch expects to be there."""
    return set(re.findall(r"^--- a/(\S+)", patch.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", PATCHED)
def test_a_recipes_patches_apply_in_order_to_the_pinned_commit(name: str, tmp_path: Path) -> None:
    source = recipes.read(name).source
    mirror, patches = (mirror_of(source.commit), [PATCHES / patch for patch in source.patches])
    git("init", "--quiet", cwd=tmp_path)
    for file in sorted(set().union(*map(touched, patches))):
        make_file(tmp_path / file, git("show", f"{source.commit}:{file}", cwd=mirror))
    for patch in patches:
        git("apply", "--check", "--whitespace=error-all", str(patch), cwd=tmp_path)
        git("apply", str(patch), cwd=tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_what_a_recipe_leaves_out_is_really_in_the_tree(name: str) -> None:
    source = recipes.read(name).source
    mirror = mirror_of(source.commit)
    missing = [
        path
        for path in source.exclude
        if not git("ls-tree", "--name-only", source.commit, path, cwd=mirror)
    ]
    assert missing == []
