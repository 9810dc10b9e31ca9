"""RECORD: the list of a wheel's files with their digests (PEP 376 and 427)."""

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tfwright.errors import WheelError
from tfwright.wheel import archive
from tfwright.wheel.binary.elf_image import Content

ROOM = 512
"""Bytes that RECORD may have for each file in addition to its path: digest and size take 70."""
SPARE = 64 * 1024
"""Bytes that it may have beyond that."""
UNUSABLE = "Make the wheel again: pip cannot use this RECORD either."


class RecordEntry(NamedTuple):
    """A line of RECORD."""

    path: str
    digest: str
    """``sha256=`` and unpadded URL-safe base64; empty for RECORD itself."""
    size: str
    """Bytes; empty for RECORD itself."""


def read(wheel: zipfile.ZipFile) -> list[RecordEntry]:
    """Return the lines of RECORD that have a path; a wheel without RECORD has none.

    Raises WheelError where RECORD is not text in the form of its specification, or is so long for
    the files of the wheel that it is meant to keep its reader busy.
    """
    place = f"{archive.metadata_directory(wheel)}/RECORD"
    # Twice the name: CSV doubles each quotation mark in it.
    names = (len(member.filename.encode("utf-8", "replace")) for member in archive.files(wheel))
    content = archive.text(wheel, place, SPARE + sum(2 * length + ROOM for length in names))
    try:
        # csv, since the name of a file may hold a comma or a quotation mark.
        rows = list(csv.reader(io.StringIO(content.decode())))
    except (UnicodeDecodeError, csv.Error) as fault:
        raise WheelError(f"{place} cannot be read: {fault}", remedy=UNUSABLE) from fault
    # A short line is kept, so that `faults` can name its file.
    return [RecordEntry(*[*row, "", ""][:3]) for row in rows if row]


def faults(wheel: zipfile.ZipFile, described: Mapping[str, RecordEntry] | None = None) -> list[str]:
    """Say everything in which RECORD and the files differ.

    Files that are `described` already are not read again.
    """
    try:
        listed = {entry.path: entry for entry in read(wheel)}
    except WheelError as fault:
        return [fault.what]
    known = described or {}
    own = f"{archive.metadata_directory(wheel)}/RECORD"
    present = {member.filename: member for member in archive.files(wheel)}
    missing = [f"{path} is listed and missing" for path in listed if path not in present]
    unlisted = [f"{path} is not listed" for path in present if path not in listed]
    different = []
    for path, member in present.items():
        # RECORD cannot list its own digest.
        right = RecordEntry(own, "", "") if path == own else known.get(path)
        if path in listed and listed[path] != (right or describe(wheel, member)):
            different.append(f"{path} is not as listed")
    return [*missing, *unlisted, *different]


def describe(wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> RecordEntry:
    """Return a file's line, with its digest."""
    with archive.member_content(wheel, member) as content:
        return entry(member.filename, content)


def entry(path: str, content: Content) -> RecordEntry:
    """Return the line of a file whose content is at hand."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    # PEP 427 wants the padding left out.
    return RecordEntry(path, f"sha256={digest.rstrip(b'=').decode()}", str(len(content)))


def render(entries: Iterable[RecordEntry]) -> str:
    """Return the text of a RECORD."""
    text = io.StringIO()
    # The csv module ends lines with CR LF by default; the bytes of a wheel must not change.
    csv.writer(text, lineterminator="\n").writerows(entries)
    return text.getvalue()
