"""RECORD: the list of a wheel's files with their digests (PEP 376 and 427)."""

import base64
import csv
import hashlib
import io
import mmap
import zipfile
from collections.abc import Iterable, Mapping
from typing import IO, NamedTuple

from tfwright.wheel import archive

CHUNK = 1024 * 1024


class RecordEntry(NamedTuple):
    """One line of RECORD."""

    path: str
    digest: str
    """``sha256=`` and unpadded URL-safe base64; empty for RECORD itself."""
    size: str
    """Bytes; empty for RECORD itself."""


def read(wheel: zipfile.ZipFile) -> list[RecordEntry]:
    """Return the lines of RECORD that have a path; a wheel without RECORD has none."""
    try:
        text = wheel.read(f"{archive.metadata_directory(wheel)}/RECORD").decode()
    except (KeyError, UnicodeDecodeError):
        return []
    rows = csv.reader(io.StringIO(text))
    return [RecordEntry(*[*row, "", ""][:3]) for row in rows if row]


def faults(wheel: zipfile.ZipFile, described: Mapping[str, RecordEntry] | None = None) -> list[str]:
    """Say everything in which RECORD and the files differ; files that are `described` already are not read again."""
    known = described or {}
    listed = {entry.path: entry for entry in read(wheel)}
    own = f"{archive.metadata_directory(wheel)}/RECORD"
    here = {member.filename: member for member in archive.files(wheel)}
    return [
        *(f"{path} is listed and not there" for path in listed if path not in here),
        *(f"{path} is not listed" for path in here if path not in listed),
        *(
            f"{path} is not as listed"
            for path, member in here.items()
            if path in listed and listed[path] != (known.get(path) or _right(wheel, member, own))
        ),
    ]


def _right(wheel: zipfile.ZipFile, member: zipfile.ZipInfo, own: str) -> RecordEntry:
    """Return the line that a file should have; RECORD cannot list its own digest."""
    return RecordEntry(own, "", "") if member.filename == own else describe(wheel, member)


def describe(
    wheel: zipfile.ZipFile, member: zipfile.ZipInfo, copy: IO[bytes] | None = None
) -> RecordEntry:
    """Return a file's line, with its digest; the file is written to `copy` on the way."""
    digest = hashlib.sha256()
    with wheel.open(member) as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
            if copy is not None:
                copy.write(chunk)
    return _line(member.filename, digest.digest(), member.file_size)


def entry(path: str, content: bytes | mmap.mmap) -> RecordEntry:
    """Return the line of a file whose content is at hand."""
    return _line(path, hashlib.sha256(content).digest(), len(content))


def _line(path: str, digest: bytes, size: int) -> RecordEntry:
    encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return RecordEntry(path, f"sha256={encoded}", str(size))


def render(entries: Iterable[RecordEntry]) -> str:
    """Return the text of a RECORD."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(entries)
    return text.getvalue()
