"""Packages that are installed in a venv, held against what their RECORD says of each file."""

import base64
import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path

IGNORED = ("__pycache__", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""What Python or pip writes after the installation, or what no RECORD has a checksum for."""


def changes(venv: Path) -> list[str]:
    """Return the files that are not as their package installed them, and those of no package.

    Paths are relative to the venv.
    """
    found: list[str] = []
    for site in sorted(venv.glob("lib/python*/site-packages")):
        found += _changes(venv, site)
    return found


def _changes(venv: Path, site: Path) -> Iterator[str]:
    recorded: set[Path] = set()
    for record in sorted(site.glob("*.dist-info/RECORD")):
        for path, checksum in _entries(record):
            # Scripts stand in RECORD as ../../../bin/name.
            file = (site / path).resolve()
            recorded.add(file)
            # RECORD has no checksum for itself, and none for scripts that pip made.
            if checksum and _checksum(file) != checksum:
                yield _shown(file, venv)
    for file in sorted(site.rglob("*")):
        # Python writes bytecode when a module is first imported, in whatever build
        # comes first.
        if file.suffix == ".pyc" or not set(file.parts).isdisjoint(IGNORED):
            continue
        # A module or a .pth file that no package brought would take part in every
        # build.
        imported = file.suffix in {".py", ".pth", ".so"}
        if imported and file.is_file() and file.resolve() not in recorded:
            yield _shown(file, venv)


def _entries(record: Path) -> Iterator[tuple[str, str]]:
    """Yield path and checksum of each line that has both, except Python's bytecode."""
    with record.open(encoding="utf-8", errors="replace", newline="") as stream:
        for row in csv.reader(stream):
            if len(row) > 1 and not row[0].endswith(".pyc"):
                yield row[0], row[1]


def _checksum(file: Path) -> str:
    """Return a file's checksum as RECORD writes it; empty for a file that is not there."""
    if not file.is_file():
        return ""
    digest = hashlib.sha256(file.read_bytes()).digest()
    # PEP 376 and the wheel format: URL-safe base64 without its padding.
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _shown(file: Path, venv: Path) -> str:
    return str(file.relative_to(venv)) if file.is_relative_to(venv) else str(file)
