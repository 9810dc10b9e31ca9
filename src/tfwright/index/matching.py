"""``match.json``: which wheel of an index fits a machine, before a large download starts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from packaging.utils import parse_wheel_filename
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tfwright.documents import faults
from tfwright.documents.names import Sha256
from tfwright.errors import SupplyError, WheelError
from tfwright.index.wheels import IndexedWheel, parse_name
from tfwright.match.fit import Judge, WheelFacts
from tfwright.match.wish import Wish
from tfwright.tools.http.client import fetch_document
from tfwright.wheel.inspect import tags

FILE = "match.json"
LARGEST = 64 * 1024**2
"""Bytes of the document that are read from a server."""

Word = Annotated[str, Field(pattern=r"^[\w.,+ -]*$", max_length=400)]
"""Text that is safe to print, wherever it comes from."""
SPECIFIER = r"^[\w.,*<>=!~ +-]*$"
"""The same of Python's versions: ``>=3.9``. One entry of another form and all are refused."""


class MatchEntry(BaseModel):
    """What a client needs to know of one wheel to choose it."""

    model_config = ConfigDict(frozen=True)

    project: Word
    version: Word
    filename: Annotated[str, Field(max_length=255)]
    url: str
    """Relative to the index."""
    sha256: Sha256
    size: int
    """Bytes."""
    recipe: Word
    state: Word
    python: tuple[Word, ...]
    """Interpreter tags: ``cp36``."""
    platform: tuple[Word, ...]
    requires_python: Annotated[str, Field(pattern=SPECIFIER, max_length=400)] = ""
    """What the metadata says, as ``>=3.9``; empty also in documents of older tfwrights."""
    needs: dict[Word, Word]
    """Read off the libraries: ``glibc``, ``cpu``, ``cuda`` and ``gpu``, a list with commas."""


class MatchDocument(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    wheels: tuple[MatchEntry, ...]


@dataclass(frozen=True)
class MatchedWheel:
    """A wheel of an index, and what keeps it from a machine."""

    entry: MatchEntry
    differs: tuple[str, ...]
    """What does not fit; empty for a wheel that fits."""


def document(wheels: Sequence[IndexedWheel], folder: str) -> bytes:
    """Return the text of ``match.json`` for the wheels of an index, which lie in `folder`."""
    entries = []
    for wheel in wheels:
        if wheel.yanked is not None:
            continue
        # The index has parsed the name before it listed the wheel. Splitting it is 20 times as fast
        # as parsing it again, and models of our own values need no validation.
        python, _, platform = wheel.filename.removesuffix(".whl").lower().split("-")[-3:]
        stated = wheel.requires_python
        own = {
            "url": f"{folder}{wheel.quoted}",
            "python": tuple(sorted(python.split("."))),
            "platform": tuple(sorted(platform.split("."))),
            "requires_python": stated if re.match(SPECIFIER, stated) else "",
            "needs": dict(wheel.needs),
        }
        entries.append(MatchEntry.model_construct(**{**vars(wheel), **own}))
    return MatchDocument(wheels=tuple(entries)).model_dump_json().encode()


def rank_wheels(text: bytes, wanted: Wish) -> list[MatchedWheel]:
    """Compare the wheels of a ``match.json`` with a wish: fitting ones first, newest first.

    Raises SupplyError if the text, which comes from a server, is not such a document.
    """
    try:
        entries = MatchDocument.model_validate_json(text).wheels
    except ValidationError as fault:
        raise SupplyError(
            f"The index's {FILE} cannot be read: {faults.first_line(fault)}",
            remedy="Check the URL: it is the one that holds simple/ and packages/.",
        ) from fault
    # Project and version become part of a command that users copy.
    for entry in entries:
        try:
            parsed = parse_name(entry.filename)
        except WheelError as fault:
            raise _contradiction(fault.what) from fault
        if parsed != (entry.project, entry.version):
            raise _contradiction(f"{entry.filename} is not of {entry.project} {entry.version}")
    found = [MatchedWheel(entry, tuple(_differences(entry, wanted))) for entry in entries]
    # Two stable sorts: the second one keeps the newest first among equals.
    found.sort(key=lambda wheel: _version(wheel.entry), reverse=True)
    found.sort(key=lambda wheel: len(wheel.differs))
    return found


def _differences(entry: MatchEntry, wanted: Wish) -> Iterator[str]:
    """Say what keeps a wheel from a machine, and where its libraries were not read."""
    stated = tags.tags_in_name(Path(entry.filename))
    version = str(_version(entry))
    facts = WheelFacts(
        entry.project, version, stated, entry.needs, requires_python=entry.requires_python
    )
    for judgement in Judge(facts, wanted).judgements():
        if judgement.holds is False or judgement.what == "libraries":
            yield judgement.says


def _contradiction(why: str) -> SupplyError:
    return SupplyError(
        f"The index's {FILE} contradicts itself: {why}",
        remedy="Let the host of the index write it again there: 'invoke index'.",
    )


def _version(entry: MatchEntry) -> Version:
    """Return the version in the file's name; the entry's own field is not trusted."""
    return parse_wheel_filename(entry.filename)[1]


def query_index(url: str, wanted: Wish) -> list[MatchedWheel]:
    """Ask an index which of its wheels fit; raise SupplyError if it does not say."""
    # Users have the URL that pip takes, which ends with /simple.
    address = f"{url.rstrip('/').removesuffix('/simple')}/{FILE}"
    return rank_wheels(fetch_document(address, LARGEST), wanted)
