"""What most tests need: a recipe that fits anywhere, and a job in a directory of its own."""

from pathlib import Path

import pytest

from tfwright.recipe import Recipe
from tfwright.settings import Settings
from tfwright.stage import Job

MINIMAL = """\
summary = "A recipe for tests"

[source]
url = "https://example.org/tensorflow.git"
branch = "r1.8"
commit = "0123456789012345678901234567890123456789"

[host]
system = "any"
machine = "any"
python = "any"

[bazel]
version = "0.26.1"
"""


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """Write a small valid recipe."""
    path = tmp_path / "small.toml"
    path.write_text(MINIMAL, "utf-8")
    return path


@pytest.fixture
def recipe() -> Recipe:
    """Return a small recipe."""
    return Recipe.model_validate(
        {
            "name": "small",
            "summary": "A recipe for tests",
            "source": {"url": "https://example.org/tensorflow.git", "branch": "r1.8", "commit": "0123456789" * 4},
            "host": {"system": "any", "machine": "any", "python": "any"},
            "bazel": {"version": "0.26.1"},
        }
    )


@pytest.fixture
def job(recipe: Recipe, tmp_path: Path) -> Job:
    """Return a job that works in a directory of its own."""
    return Job(recipe, Settings(build_out=tmp_path / "build_out"))
