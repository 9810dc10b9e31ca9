"""The bundled tree with hermetic Python and CUDA: its commit, its inputs and its questions."""

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.upstream import bundled_commit

from tfwright.configure import rendering
from tfwright.configure.dialect import of_tensorflow
from tfwright.configure.interview import Interview
from tfwright.documents import recipe as recipes
from tfwright.pipeline.external import RecipePins
from tfwright.rules import listings, repositories
from tfwright.rules.configurations import settings
from tfwright.rules.model import Rules
from tfwright.rules.patched_tree import is_relevant
from tfwright.tools.git import demo

RECIPE = recipes.read("demo-hermetic")
FILES: dict[str, bytes] = runpy.run_path(str(demo.HERMETIC_TREE / "redist.py"))["files"]()
"""What redist.py writes, by name."""


@pytest.fixture
def rules() -> Rules:
    """Return what the tree downloads for the recipe, once the lists are there."""
    paths = (path for path in demo.HERMETIC_TREE.rglob("*") if path.is_file())
    names = {path.relative_to(demo.HERMETIC_TREE).as_posix(): path for path in paths}
    texts = {name: path.read_text() for name, path in names.items() if is_relevant(name)}
    content = {hashlib.sha256(text).hexdigest(): text for text in FILES.values()}
    return listings.with_chosen_files(
        repositories.read(texts), RecipePins.of(RECIPE).environment, content.get
    )


@pytest.mark.medium
def test_the_recipe_pins_the_tree_as_it_is_bundled() -> None:
    assert RECIPE.source.commit == bundled_commit(demo.HERMETIC_URL)


def test_every_input_is_read_and_nothing_is_left_to_bazel(rules: Rules) -> None:
    files = [one.urls[0].rpartition("/")[2] for one in rules.repositories]
    of_redist = {name for name in FILES if "12.5.1" not in name}
    assert {*files} == of_redist | {"1.6.1.tar.gz", "rules_cc-0.0.9.tar.gz"}
    assert all(one.sha256 for one in rules.repositories)
    assert rules.unreadable == ()
    (pin,) = listings.pip_pins(rules, RecipePins.of(RECIPE).environment)
    assert pin.startswith("packaging==25.0 --hash=sha256:")


@pytest.mark.medium
@pytest.mark.parametrize("cuda", [True, False])
def test_configure_writes_what_is_rendered_for_its_release(tmp_path: Path, *, cuda: bool) -> None:
    for name in ("configure", "configure.py"):
        shutil.copy(demo.HERMETIC_TREE / name, tmp_path)
    answers = {
        **RECIPE.configure.answers,
        "TF_NEED_CUDA": cuda,
        "TF_NEED_CLANG": False,
        "PYTHON_BIN_PATH": sys.executable,
        "PYTHON_LIB_PATH": "/l",
    }
    spoken = of_tensorflow(RECIPE.source.exact, "Linux")
    asked = {one.variable for one in spoken.prompts if one.applies(answers)}
    answers = {name: value for name, value in answers.items() if name in asked}
    texts = {name: str(value).lower() for name, value in answers.items() if isinstance(value, bool)}
    texts |= {name: value for name, value in answers.items() if isinstance(value, str)}
    env = {"PATH": os.environ["PATH"], **texts}
    subprocess.run(["./configure"], cwd=tmp_path, env=env, check=True, capture_output=True)
    rendered = rendering.render(Interview(spoken, answers, "environment", "3.13.5"))
    written = (tmp_path / ".tf_configure.bazelrc").read_text()
    assert set(settings(rendered)) == set(settings(written))
