"""Taplo itself, the program behind editors of TOML, reads the schemas; skipped without one.

``npm install @taplo/cli`` has it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.develop import schemas
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import RECIPES, ROOT

pytestmark = pytest.mark.real


def lint(*files: Path) -> str:
    """Return what Taplo finds in files; empty if nothing."""
    taplo = os.environ.get("TFWRIGHT_TAPLO") or shutil.which("taplo")
    if not taplo:
        pytest.skip("taplo is not installed: npm install @taplo/cli")
    asked = [taplo, "lint", "--no-auto-config", *map(str, files)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def examples(page: str, document: str) -> str:
    """Return the TOML of a page as one document that names its schema."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text, re.MULTILINE)
    # The other blocks are commands, with what they print.
    toml = [block for block in blocks if re.match(r"\s*([a-z_]+ = |\[)", block)]
    plain = re.sub(r"(?m)^    ", "", "\n".join(toml))
    return f"#:schema {schemas.FOLDER / document}.json\n{plain}"


def test_taplo_finds_nothing_in_the_bundled_recipes() -> None:
    assert lint(*map(recipes.find, recipes.names())) == ""


@pytest.mark.parametrize(("page", "document"), [("host.md", "host"), ("build-host.md", "nightly")])
def test_taplo_finds_nothing_in_the_examples(page: str, document: str, tmp_path: Path) -> None:
    file = make_file(tmp_path / "example.toml", examples(page, document))
    assert lint(file) == ""


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ('version = "', 'versoin = "', "'versoin' was unexpected"),
        ('"wheel==', '"wheel>=', "does not match"),
        ('commit = "', 'commit = "x', "does not match"),
        ("TF_NEED_CUDA = false", "TF_NEED_CUDA = 0", "is not valid"),
        ("TF_NEED_CUDA = false", "tf_need_cuda = false", "was unexpected"),
    ],
)
def test_taplo_finds_what_lint_finds(before: str, after: str, found: str, tmp_path: Path) -> None:
    text = recipes.find("demo").read_text("utf-8")
    assert before in text
    (tmp_path / "schema").symlink_to(RECIPES / "schema")
    file = make_file(tmp_path / "demo.toml", text.replace(before, after, 1))
    assert found in lint(file)
