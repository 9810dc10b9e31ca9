import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.remedies.following import CommandLine


@pytest.fixture
def worded(recipe_file: Path, tmp_path: Path) -> Path:
    """Return a recipe whose path is two words of a shell."""
    path = tmp_path / "my recipes/small.toml"
    path.parent.mkdir()
    return recipe_file.rename(path)


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    """Return a command line with a host file of its own."""
    path = tmp_path / "host.toml"
    path.write_text(f'build_out = "{tmp_path}/build_out"\n', "utf-8")
    # A command sets it for itself.
    before = os.umask(0o022)
    yield CommandLine(path, monkeypatch)
    os.umask(before)
