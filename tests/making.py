"""Folders, files and texts that tests make, change and look through, each in one line."""

import io
import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

Read = Callable[[], str]
"""What the fixtures `out` and `err` are: returns what was printed since the last call."""
Maker = Callable[..., Path]
"""What the fixtures `make_wheel` and `make_sealed` are: makes a file, and returns its path."""
Serve = Callable[[Path], str]
"""What the fixture `serve` is: serves a folder, and returns its address."""


def make_folder(path: Path) -> Path:
    """Make a folder, with those above it; return it."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def make_file(path: Path, content: str | bytes) -> Path:
    """Write a file, with the folders above it; return its path."""
    make_folder(path.parent)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def make_program(path: Path, text: str) -> Path:
    """Write a program that can be run; return its path."""
    make_file(path, text).chmod(0o755)
    return path


def make_tar(path: Path, contents: Mapping[str, str | bytes]) -> Path:
    """Write a tar file with some files in it, by gzip if its name says so; return its path."""
    packed = "gz" if path.suffix in {".gz", ".tgz"} else ""
    with tarfile.open(make_folder(path.parent) / path.name, f"w:{packed}") as tar:  # type: ignore[call-overload]
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def change_text(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which has it."""
    text = path.read_text("utf-8")
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new), "utf-8")


def find_text(pattern: str, text: str) -> re.Match[str]:
    """Return where a pattern is in a text, which has it."""
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in:\n{text}"
    return found


class Typed(io.StringIO):
    """What a person types on a terminal."""

    def isatty(self) -> bool:
        return True
