"""What a wheel is, read from its bytes alone: any wheel, on any machine, without running any of it."""

import ast
import re
import tempfile
import zipfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from email.parser import BytesParser
from pathlib import Path
from typing import IO

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from tfwright.errors import Evidence, WheelError
from tfwright.wheel import archive, record, tags
from tfwright.wheel.inspect import library as inspection_library
from tfwright.wheel.inspect import links
from tfwright.wheel.inspect import summary as inspection_summary
from tfwright.wheel.inspect import tags as inspection_tags
from tfwright.wheel.inspect.library import Library
from tfwright.wheel.inspect.summary import Summary
from tfwright.wheel.seal import envelope

LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib)$")
NVIDIA = re.compile(r"(@rpath/)?lib(cu(da|dart|dnn|blas|fft|rand|solver|sparse|pti)|nccl|nv)")
BUILD_INFO = "/platform/build_info.py"
"""Where TensorFlow from 1.14 on says with which CUDA and cuDNN it was built; it loads them by hand, so they are linked with nothing."""
LONGEST_TEXT = 64 * 1024**2
"""Bytes of a text of the wheel (RECORD, METADATA) that are read at once."""


@dataclass(frozen=True)
class Inspection:
    """A wheel."""

    file: str
    size: int
    unpacked: int = 0
    project: str = ""
    version: str = ""
    requires_python: str = ""
    tags: tuple[str, ...] = ()
    stated: tuple[tuple[str, str], ...] = ()
    """What TensorFlow's build_info says, such as ``cuda_version``."""
    nvidia: tuple[str, ...] = ()
    """NVIDIA's libraries that the loader has to find, with the version that their names hold."""
    summary: Summary | None = None
    """What the libraries need together; None where they were not read."""
    libraries: tuple[Library, ...] = ()
    faults: tuple[str, ...] = ()
    """In what the wheel is damaged, or is not what it says that it is."""
    notes: tuple[str, ...] = ()
    """What may matter to whoever uses it."""
    signed_by: str = ""
    """Id of the key that signed the statement beside it; empty where nobody asked."""


def inspect(path: Path, key: Path | None = None) -> Inspection:
    """Read a wheel; whatever is wrong with it is in the report.

    Raises WheelError where there is no file, and what `envelope.verify` raises where a public key is given.
    """
    if not path.is_file():
        raise WheelError(
            f"There is no wheel {path}",
            remedy="Give the path of a .whl file.",
            evidence=Evidence(where=str(path)),
        )
    size, signed_by = path.stat().st_size, envelope.verify(path, key) if key else ""
    try:
        with archive.opened(path) as wheel:
            _refuse_long_texts(wheel)
            return replace(_report(path, size, wheel), signed_by=signed_by)
    except WheelError as fault:
        return Inspection(path.name, size, faults=(fault.what,))


def insist(report: Inspection) -> None:
    """Raise WheelError with everything in which a wheel is damaged, or not what it says that it is."""
    if report.faults:
        remedy = "Do not publish it: what it says of itself is what pip believes."
        # A single one is in the message already.
        raise WheelError(
            f"{report.file}: {report.faults[0]}",
            remedy=remedy,
            evidence=Evidence(lines=report.faults[1:] and report.faults),
        )


def _refuse_long_texts(wheel: zipfile.ZipFile) -> None:
    """Refuse a wheel whose own description would fill the memory."""
    folder = archive.metadata_directory(wheel)
    for member in archive.files(wheel):
        if member.filename.startswith(f"{folder}/") and member.file_size > LONGEST_TEXT:
            raise WheelError(
                f"{member.filename} has {member.file_size:,} bytes",
                remedy="Do not trust this wheel.",
            )


def _report(path: Path, size: int, wheel: zipfile.ZipFile) -> Inspection:
    """Put together what is in a sound archive."""
    read = contents(wheel)
    found = read.libraries
    metadata = BytesParser().parsebytes(
        _text(wheel, f"{archive.metadata_directory(wheel)}/METADATA"), headersonly=True
    )
    project, version = str(metadata["Name"] or ""), str(metadata["Version"] or "")
    faults = [
        *record.faults(wheel, read.entries),
        *_names(path, archive.metadata_directory(wheel), project, version),
        *inspection_tags.faults(path, tags.stated_tags(wheel), found),
        *(f"{library.path} cannot be read: {library.fault}" for library in found if library.fault),
    ]
    return Inspection(
        file=path.name,
        size=size,
        unpacked=sum(member.file_size for member in archive.files(wheel)),
        project=project,
        version=version,
        requires_python=str(metadata["Requires-Python"] or ""),
        tags=tuple(sorted(map(str, inspection_tags.named(path) or tags.stated_tags(wheel)))),
        stated=tuple(_stated(wheel)),
        nvidia=tuple(
            sorted(
                {
                    name
                    for library in found
                    for name in inspection_library.needed(library)
                    if NVIDIA.match(name)
                }
            )
        ),
        summary=inspection_summary.summarize(found),
        libraries=found,
        faults=tuple(faults),
        notes=tuple(_notes(found)),
    )


def _text(wheel: zipfile.ZipFile, name: str) -> bytes:
    """Return a small file of the wheel; empty where there is none."""
    try:
        return wheel.read(name) if wheel.getinfo(name).file_size <= LONGEST_TEXT else b""
    except KeyError:
        return b""


def _names(path: Path, folder: str, project: str, version: str) -> Iterator[str]:
    """Compare the three places that say which project and version a wheel is."""
    try:
        name, number, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as fault:
        yield str(fault)
        return
    stated = folder.removesuffix(".dist-info").rpartition("-")
    for where, what, which in (("METADATA", project, version), (folder, stated[0], stated[2])):
        if (canonicalize_name(what), which) != (name, str(number)):
            yield f"{where} says {what} {which}, the name of the file says {name} {number}"


@dataclass(frozen=True)
class Contents:
    """The libraries of a wheel, and their lines of RECORD: each is unpacked once."""

    libraries: tuple[Library, ...]
    entries: dict[str, record.RecordEntry]


def contents(wheel: zipfile.ZipFile) -> Contents:
    """Read each shared library in a wheel from a copy on disk, while the next one is unpacked."""
    members = [member for member in archive.files(wheel) if LIBRARY.search(member.filename)]
    found, entries, tables = [], {}, {}
    with ThreadPoolExecutor(1) as other:
        coming = deque(other.submit(_unpacked, wheel, member) for member in members[:1])
        for number, member in enumerate(members):
            copy, entries[member.filename] = coming.popleft().result()
            coming.extend(
                other.submit(_unpacked, wheel, later) for later in members[number + 1 : number + 2]
            )
            with copy:
                library, table = inspection_library.read(member, copy)
            found.append(library)
            tables.update({library.path: table} if table else {})
    return Contents(links.resolved(found, tables), entries)


def _unpacked(
    wheel: zipfile.ZipFile, member: zipfile.ZipInfo
) -> tuple[IO[bytes], record.RecordEntry]:
    """Unpack a member; the copy is gone when it is closed."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 whoever reads it closes it
    try:
        entry = record.describe(wheel, member, copy)
    except BaseException:
        copy.close()
        raise
    return copy, entry


def _stated(wheel: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Return the texts that TensorFlow's build_info assigns, or has in the one dictionary that later releases assign."""
    name = next(
        (
            member.filename
            for member in archive.files(wheel)
            if member.filename.endswith(BUILD_INFO)
        ),
        "",
    )
    try:
        tree = ast.parse(_text(wheel, name))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield from _constant(node.targets[0].id, node.value)
        elif (
            isinstance(node, ast.Tuple)
            and len(node.elts) == 2  # noqa: PLR2004 a pair
            and isinstance(node.elts[0], ast.Constant)
        ):
            yield from _constant(str(node.elts[0].value), node.elts[1])


def _constant(name: str, node: ast.expr) -> Iterator[tuple[str, str]]:
    """Return a name and its value where that is a plain one."""
    if isinstance(node, ast.Constant) and node.value not in {None, ""}:
        yield name, str(node.value)


def _notes(found: tuple[Library, ...]) -> Iterator[str]:
    """Say what a sound wheel may still do to its users, once for all libraries that it is true of."""
    alike: dict[str, list[Library]] = {}
    for library in found:
        for note in inspection_library.notes(library):
            alike.setdefault(note, []).append(library)
    for note, group in alike.items():
        others = f" (and {len(group) - 1} more)" if len(group) > 1 else ""
        yield f"{group[0].path}{others}: {note}"
