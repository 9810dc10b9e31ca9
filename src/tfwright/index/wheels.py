"""The wheels of an index, read from the files themselves, and what is remembered of them.

The catalog is a file next to the wheels. The wheels are the truth, and it only saves
reading them again: it can be deleted; then the next run reads every wheel once more. One thing only
the catalog knows: which bytes an earlier file of the same name had, so that no name ever stands for
two contents.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version
from pydantic import TypeAdapter, ValidationError

from tfwright.documents import faults
from tfwright.errors import HostError, WheelError
from tfwright.printable import printable
from tfwright.tools import files
from tfwright.wheel import archive

LONGEST_SHOWN = 200
"""Characters of a wheel's own text that a message quotes."""
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,250}\.whl")
"""A file name that a shell does not interpret; a URL quotes only ``+`` and ``!`` in it."""

FILE = ".catalog.json"
Stat = tuple[int, int]
"""Size in bytes and time of change in nanoseconds: while they stay, the wheel is not read again."""


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
    needs: tuple[tuple[str, str], ...] = ()
    """What ``invoke inspect`` read off its libraries: ``glibc``, ``cpu``, ``gpu``, ``cuda``."""

    @cached_property
    def quoted(self) -> str:
        """The file name as a part of a URL."""
        # Each wheel is on several pages, and an index has thousands of them.
        return quote(self.filename)

    def with_notes(self, **changes: object) -> "IndexedWheel":
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
        raise _listing_error(filename, "its name holds a character that an index cannot list")
    try:
        project, version, _, _ = parse_wheel_filename(filename)
    # ValueError covers both, and numbers of more than 4,300 digits.
    except ValueError as fault:
        raise _listing_error(filename, " ".join(str(fault).split())) from fault
    return ParsedName(project, str(version))


def read_wheel(path: Path, uploaded: str) -> tuple[IndexedWheel, bytes]:
    """Read a wheel file; return what the index lists and the bytes of its METADATA.

    Raises WheelError if the file is damaged, or if its METADATA contradicts its name: pip and uv
    would refuse such a wheel only after they had downloaded it.
    """
    name = parse_name(path.name)
    with archive.open_wheel(path) as wheel:
        place = f"{archive.metadata_directory(wheel)}/METADATA"
        # Their sizes are checked before anything is unpacked: a wheel may be hostile.
        metadata = archive.text(wheel, place, archive.LARGEST_HEADERS)
        headers = archive.headers(wheel, "METADATA")
    if not metadata:
        raise _listing_error(path.name, "it has no METADATA file")
    version = headers.get("Version")
    try:
        about = ParsedName(
            canonicalize_name(headers.get("Name") or ""), str(Version(version or ""))
        )
    except ValueError:
        stated = printable(repr(version), LONGEST_SHOWN)
        raise _listing_error(path.name, f"its METADATA states the version {stated}") from None
    if about != name:
        raise _listing_error(path.name, f"its METADATA is about {about.project} {about.version}")
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


def _requires_python(stated: str | None) -> str:
    """Return the specifier that METADATA states; a malformed one would hide every other wheel."""
    # pip reads the numbers in it, and no more than 4,300 digits of one.
    if not stated or len(stated) > LONGEST_SHOWN:
        return ""
    try:
        return str(SpecifierSet(stated))
    except ValueError:
        return ""


def _listing_error(filename: str, why: str) -> WheelError:
    return WheelError(
        f"{filename!r} cannot enter the index: {why}",
        remedy="Build the wheel again, or leave it out of the folder.",
        where=filename,
    )


@dataclass(frozen=True)
class Catalog:
    """What is remembered of one folder of wheels, by file name."""

    wheels: dict[str, tuple[Stat, IndexedWheel]] = field(default_factory=dict)
    """Every wheel that was read before."""
    digests: dict[str, str] = field(default_factory=dict)
    """The SHA-256 that each name has ever stood for."""

    @classmethod
    def read(cls, folder: Path) -> "Catalog":
        """Read the catalog of a folder. Raises HostError if the file is damaged."""
        file = folder / FILE
        try:
            return _CATALOG.validate_json(files.content(file)) if file.is_file() else cls()
        except ValidationError as fault:
            raise HostError(
                f"The catalog of the index cannot be read: {faults.first_line(fault)}",
                remedy=f"Delete {file}; the next run reads every wheel again.",
            ) from fault

    def encode(self) -> bytes:
        """Return the text of its file."""
        return _CATALOG.dump_json(self)


_CATALOG = TypeAdapter(Catalog)


def refuse_other_bytes(taken: Mapping[str, str], filename: str, sha256: str) -> None:
    """Raise WheelError if a name already stands for other bytes.

    Whoever pinned the name with a hash would get an error, and whoever pinned it without one would
    get another wheel than before.
    """
    # A rebuild to the same bytes is welcome: that is what reproducible means.
    if taken.get(filename) in {None, sha256}:
        return
    project, version = filename.split("-")[:2]
    base, _, local = version.partition("+")
    head, _, last = local.rpartition(".")
    # The last number raised: ``cu92`` becomes ``cu92.1``, and that ``cu92.2``.
    bumped = f"{local}.1" if local else "build.1"
    if head and last.isdigit():
        bumped = f"{head}.{int(last) + 1}"
    raise WheelError(
        f"The index already has {filename} with other bytes",
        remedy=f"Give this wheel another local version, for example {project} {base}+{bumped}: "
        f'set local = "{bumped}" for the recipe in nightly.toml.',
    )
