"""What was read before: the rules of files by their checksums, so that no file is read twice.

Reading the rules of a TensorFlow takes seconds, and a change of one patch or substitute leaves
almost all of them as they were.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tfwright.rules.model import Rules
from tfwright.tools import files, json_text

MOST = 64
"""Readings that are kept for a recipe; a build of TensorFlow 2.1 needs some ten."""


class Readings:
    """A folder of readings, each in a file that is named by what was read."""

    def __init__(self, folder: Path | None) -> None:
        """Keep readings in a folder, which need not exist yet; None keeps none."""
        self._folder = folder

    def remembered(self, what: object, read: Callable[[], Rules | None]) -> Rules | None:
        """Return the rules of something that JSON can say, which decides them all.

        They are read only if they were not before. None, which says that there was nothing to be
        read, is not kept.
        """
        if self._folder is None:
            return read()
        path = self._folder / f"{_digest([self._reader, what])}.json"
        rules = TypeAdapter(Rules)
        with suppress(OSError, UnicodeDecodeError, ValidationError):
            said, _, text = files.text(path, "strict").partition("\n")
            # The first line is a digest of the rest: a reading that was cut could miss a download.
            if said == _digest(text):
                return rules.validate_python(json_text.parsed(text))
        found = read()
        if found is not None:
            text = json.dumps(rules.dump_python(found))
            files.write(path, f"{_digest(text)}\n{text}")
            # The oldest go first: an earlier state of the recipe is the least likely to come back.
            kept = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
            for old in kept[:-MOST]:
                old.unlink()
        return found

    @cached_property
    def _reader(self) -> list[str]:
        """Digests of the code that reads: another version may find more in the same files."""
        return [files.sha256(path) for path in sorted(Path(__file__).parent.rglob("*.py"))]


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
