"""The WORKSPACE texts that a Bazel puts before and after every project's own."""

import json
import shutil
import tempfile
import zipfile
from pathlib import Path

from tfwright.tools import files

SERVER = "A-server.jar"
"""The archive in Bazel's binary, which is an archive too, that holds the texts (seen with 0.17.2 to
0.29.0)."""
SUFFIX = ".WORKSPACE"
LONGEST = 1 << 20
"""Bytes of one text."""


def workspaces(binary: Path) -> dict[str, str]:
    """Return the texts by their paths in `binary`; they are read once, and kept next to it.

    A binary without any gives an empty mapping.
    """
    kept = binary.with_name("workspaces.json")
    if not kept.is_file():
        files.write(kept, json.dumps(_read(binary), indent=1))
    texts: dict[str, str] = json.loads(kept.read_text("utf-8"))
    return texts


def _read(binary: Path) -> dict[str, str]:
    try:
        with zipfile.ZipFile(binary) as outer, tempfile.TemporaryFile() as room:
            with outer.open(SERVER) as packed:
                shutil.copyfileobj(packed, room)
            with zipfile.ZipFile(room) as jar:
                named = [member for member in jar.infolist() if member.filename.endswith(SUFFIX)]
                members = [member for member in named if member.file_size <= LONGEST]
                return {
                    member.filename: jar.read(member).decode("utf-8", "replace")
                    for member in members
                }
    except (KeyError, zipfile.BadZipFile):
        return {}
