"""What most tests need: a recipe that fits anywhere, a job in a directory of its own, small wheels."""

import base64
import hashlib
import zipfile
from collections.abc import Callable, Mapping
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


WheelMaker = Callable[..., Path]


@pytest.fixture
def make_wheel(tmp_path: Path) -> WheelMaker:
    """Return a function that makes a real wheel, which pip installs, from the files that it is given."""

    def make(content: Mapping[str, str] | None = None, name: str = "small-1.0-py3-none-any.whl", folder: str = "made") -> Path:
        distribution, version, *tag = name.removesuffix(".whl").split("-")
        metadata = f"{distribution}-{version}.dist-info"
        files = {
            **(content or {"small.py": "ANSWER = 42\n"}),
            f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n",
            f"{metadata}/WHEEL": f"Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: {'-'.join(tag)}\n",
        }
        lines = [f"{path},{_digest(text)},{len(text.encode())}" for path, text in files.items()]
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            for member, text in {**files, f"{metadata}/RECORD": "\n".join([*lines, f"{metadata}/RECORD,,", ""])}.items():
                wheel.writestr(member, text)
        return path

    return make


def _digest(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
