"""The WORKSPACE texts that a Bazel puts before and after every project's own."""

import json
import shutil
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from tfwright.errors import SupplyError
from tfwright.tools import files, json_text, unpacking

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
    # The jar is tens of megabytes: it is unpacked once per binary.
    with suppress(OSError, ValueError):
        texts = json_text.parsed(files.content(kept))
        # A damaged file may hold anything.
        if isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()):
            return texts
    texts = _read(binary)
    files.write(kept, json.dumps(texts, indent=1))
    return texts


def _read(binary: Path) -> dict[str, str]:
    texts = {}
    # A wrapper script is not an archive, and a damaged binary will say so itself.
    with (
        suppress(KeyError, SupplyError),
        unpacking.reading(binary.name),
        zipfile.ZipFile(binary) as outer,
        tempfile.TemporaryFile() as room,
    ):
        # Copied out first: a zip within a zip cannot seek, and reading a zip starts
        # at its end.
        with outer.open(SERVER) as packed:
            shutil.copyfileobj(packed, room)
        with zipfile.ZipFile(room) as jar:
            for member in jar.infolist():
                if member.filename.endswith(SUFFIX) and member.file_size <= LONGEST:
                    texts[member.filename] = jar.read(member).decode("utf-8", "replace")
    return texts
