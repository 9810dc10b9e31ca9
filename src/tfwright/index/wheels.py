"""One wheel as the index lists it, read from the file itself."""

import email.parser
import hashlib
import re
import zipfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from tfwright.errors import Evidence, WheelError
from tfwright.printable import printable
from tfwright.tools import files
from tfwright.wheel import archive

LONGEST_SHOWN = 200
"""Characters of a wheel's own text that a message quotes."""
LARGEST_METADATA = 4 * 1024**2
"""Bytes of a METADATA file that the index reads; TensorFlow's has about 4,000."""
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,250}\.whl")
"""A file name that a shell does not interpret; a URL quotes only ``+`` and ``!`` in it."""


@dataclass(frozen=True)
class IndexedWheel:
    """A wheel of the index, with everything that the simple API says about it."""

    filename: str
    project: str
    """Normalised, as PEP 503 asks."""
    version: str
    """Normalised, local part included: ``1.8.0+cu92.sm30``."""
    sha256: str
    size: int
    """Bytes."""
    metadata_sha256: str
    """Of the METADATA file, byte for byte as it is in the wheel."""
    requires_python: str = ""
    uploaded: str = ""
    """UTC, ISO 8601, when the wheel entered the index."""
    recipe: str = ""
    build: str = ""
    """Identifier of the nightly build that made it."""
    state: str = ""
    """What its tests gave: ``untested``, ``smoke failed``, ``passed``, ``reproduced``."""
    yanked: str | None = None
    """The reason, which may be empty; None for a wheel that is not yanked."""
    hidden: bool = False
    """Whether the index leaves it out; the file stays until it is deleted."""
    extras: tuple[str, ...] = ()
    """Suffixes of the files next to it: provenance, signature, bill of materials."""
    needs: tuple[tuple[str, str], ...] = ()
    """What ``invoke inspect`` read off its libraries: ``glibc``, ``cpu``, ``gpu``, ``cuda``."""

    @cached_property
    def quoted(self) -> str:
        """The file name as a part of a URL."""
        # Each wheel is on several pages, and an index has thousands of them.
        return quote(self.filename)

    def noted(self, **changes: object) -> "IndexedWheel":
        """Return the same wheel with other notes, such as ``yanked``."""
        # Most wheels have the notes of the last run, and copying 5,000 of them takes 0.1 s.
        if all(getattr(self, name) == value for name, value in changes.items()):
            return self
        return replace(self, **changes)  # type: ignore[arg-type]  # the fields check themselves


class ParsedName(NamedTuple):
    """What a wheel's file name says."""

    project: str
    version: str


def parse_name(filename: str) -> ParsedName:
    """Read a wheel's file name; raise WheelError unless an index can list it."""
    if not SAFE_NAME.fullmatch(filename):
        raise _unfit(filename, "its name holds a character that an index cannot list")
    try:
        project, version, _, _ = parse_wheel_filename(filename)
    # ValueError covers both, and numbers of more than 4,300 digits.
    except ValueError as fault:
        raise _unfit(filename, " ".join(str(fault).split())) from fault
    return ParsedName(project, str(version))


def read_wheel(path: Path, uploaded: str) -> tuple[IndexedWheel, bytes]:
    """Read a wheel file; return what the index lists and the bytes of its METADATA.

    Raises WheelError if the file is damaged, or if its METADATA contradicts its name: pip and uv
    would refuse such a wheel only after they had downloaded it.
    """
    name = parse_name(path.name)
    with archive.opened(path) as wheel:
        metadata = _metadata(wheel, path.name)
    # METADATA has the syntax of mail headers; its body is the description.
    headers = email.parser.BytesParser().parsebytes(metadata, headersonly=True)
    _refuse_other_name(path.name, name, headers.get("Name"), headers.get("Version"))
    listed = IndexedWheel(
        filename=path.name,
        project=name.project,
        version=name.version,
        sha256=files.sha256(path),
        size=path.stat().st_size,
        metadata_sha256=hashlib.sha256(metadata).hexdigest(),
        requires_python=_requires_python(headers.get("Requires-Python")),
        uploaded=uploaded,
    )
    return listed, metadata


def _metadata(wheel: zipfile.ZipFile, filename: str) -> bytes:
    """Return the METADATA file of an open wheel."""
    member = f"{archive.metadata_directory(wheel)}/METADATA"
    try:
        size = wheel.getinfo(member).file_size
    except KeyError:
        raise _unfit(filename, "it has no METADATA file") from None
    # The stated size is checked before anything is unpacked: a wheel may be hostile.
    if size > LARGEST_METADATA:
        raise _unfit(filename, f"its METADATA has {size:,} bytes")
    return wheel.read(member)


def _refuse_other_name(
    filename: str, named: ParsedName, project: str | None, version: str | None
) -> None:
    """Raise WheelError if METADATA names another project or version than the file name."""
    try:
        about = ParsedName(canonicalize_name(project or ""), str(Version(version or "")))
    except ValueError:
        stated = printable(repr(version), LONGEST_SHOWN)
        raise _unfit(filename, f"its METADATA states the version {stated}") from None
    if about != named:
        text = f"its METADATA is about {about.project} {about.version}"
        raise _unfit(filename, text)


def _requires_python(stated: str | None) -> str:
    """Return the specifier that METADATA states; a malformed one would hide every other wheel."""
    # pip reads the numbers in it, and no more than 4,300 digits of one.
    if not stated or len(stated) > LONGEST_SHOWN:
        return ""
    try:
        return str(SpecifierSet(stated))
    except ValueError:
        return ""


def _unfit(filename: str, why: str) -> WheelError:
    return WheelError(
        f"{filename!r} cannot enter the index: {why}",
        remedy="Build the wheel again, or leave it out of the folder.",
        evidence=Evidence(where=filename),
    )
