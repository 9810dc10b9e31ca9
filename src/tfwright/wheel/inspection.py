"""What a wheel is, read from its bytes alone: any wheel, on any machine, without running any of it."""

import ast
import re
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.parser import BytesParser
from pathlib import Path, PurePosixPath
from typing import IO

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from tfwright.errors import Evidence, WheelError
from tfwright.wheel import archive, elf, inspection_tags, inspection_text, libraries, macho, record, tags
from tfwright.wheel.elf import Elf
from tfwright.wheel.inspection_text import Text
from tfwright.wheel.macho import MachO

LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib)$")
NVIDIA = re.compile(r"(@rpath/)?lib(cu(da|dart|dnn|blas|fft|rand|solver|sparse|pti)|nccl|nv)")
BUILD_INFO = "/platform/build_info.py"
"""Where TensorFlow from 1.14 on says with which CUDA and cuDNN it was built; it loads them by hand, so they are linked with nothing."""
NCCL_OPS = "_nccl_ops.so"
LONGEST_TEXT = 64 * 1024**2
"""Bytes of a text of the wheel (RECORD, METADATA) that are read at once."""


@dataclass(frozen=True)
class Library:
    """One shared library, or the reason why it could not be read."""

    path: str
    size: int
    elf: Elf | None = None
    macho: tuple[MachO, ...] = ()
    """Once for each machine."""
    text: Text = field(default_factory=Text)
    registers_ops: bool | None = None
    """Of ``_nccl_ops.so``: whether it is the real one, or a stub."""
    fault: str = ""


@dataclass(frozen=True)
class Report:
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
    libraries: tuple[Library, ...] = ()
    faults: tuple[str, ...] = ()
    """In what the wheel is damaged, or is not what it says that it is."""
    notes: tuple[str, ...] = ()
    """What may matter to whoever uses it."""


def inspect(path: Path) -> Report:
    """Read a wheel; whatever is wrong with it is in the report.

    Raises WheelError only where there is no file.
    """
    if not path.is_file():
        raise WheelError(f"There is no wheel {path}", remedy="Give the path of a .whl file.", evidence=Evidence(where=str(path)))
    size = path.stat().st_size
    try:
        with archive.opened(path) as wheel:
            _refuse_long_texts(wheel)
            return _report(path, size, wheel)
    except WheelError as fault:
        return Report(path.name, size, faults=(fault.what,))


def insist(report: Report) -> None:
    """Raise WheelError with everything in which a wheel is damaged, or not what it says that it is."""
    if report.faults:
        remedy = "Do not publish it: what it says of itself is what pip believes."
        raise WheelError(f"{report.file}: {report.faults[0]}", remedy=remedy, evidence=Evidence(lines=report.faults))


def _refuse_long_texts(wheel: zipfile.ZipFile) -> None:
    """Refuse a wheel whose own description would fill the memory."""
    folder = archive.metadata_directory(wheel)
    for member in archive.files(wheel):
        if member.filename.startswith(f"{folder}/") and member.file_size > LONGEST_TEXT:
            raise WheelError(f"{member.filename} has {member.file_size:,} bytes", remedy="Do not trust this wheel.")


def _report(path: Path, size: int, wheel: zipfile.ZipFile) -> Report:
    """Put together what is in a sound archive."""
    with ThreadPoolExecutor(1) as other:
        # Both unpack everything, which leaves Python's lock alone.
        differing = other.submit(record.faults, wheel)
        found = tuple(contents(wheel))
    metadata = BytesParser().parsebytes(_text(wheel, f"{archive.metadata_directory(wheel)}/METADATA"), headersonly=True)
    project, version = str(metadata["Name"] or ""), str(metadata["Version"] or "")
    faults = [
        *differing.result(),
        *_names(path, archive.metadata_directory(wheel), project, version),
        *inspection_tags.faults(path, tags.stated_tags(wheel), found),
        *(f"{library.path} cannot be read: {library.fault}" for library in found if library.fault),
    ]
    return Report(
        file=path.name,
        size=size,
        unpacked=sum(member.file_size for member in archive.files(wheel)),
        project=project,
        version=version,
        requires_python=str(metadata["Requires-Python"] or ""),
        tags=tuple(sorted(map(str, inspection_tags.named(path) or tags.stated_tags(wheel)))),
        stated=tuple(_stated(wheel)),
        nvidia=tuple(sorted({name for library in found for name in needed(library) if NVIDIA.match(name)})),
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


def contents(wheel: zipfile.ZipFile) -> Iterator[Library]:
    """Read each shared library in a wheel, one after the other, from a copy on disk."""
    for member in archive.files(wheel):
        if LIBRARY.search(member.filename):
            with tempfile.NamedTemporaryFile(suffix=".so") as copy:
                _copy(wheel, member, copy)
                yield _library(member, copy)


def _copy(wheel: zipfile.ZipFile, member: zipfile.ZipInfo, copy: IO[bytes]) -> None:
    """Unpack a member, a piece at a time."""
    with wheel.open(member) as source:
        while chunk := source.read(record.CHUNK):
            copy.write(chunk)
    copy.flush()


def _library(member: zipfile.ZipInfo, copy: "tempfile._TemporaryFileWrapper[bytes]") -> Library:
    """Read a library, whatever is in the file that is named like one."""
    copy.seek(0)
    magic = copy.read(4)
    try:
        return Library(
            path=member.filename,
            size=member.file_size,
            elf=elf.read(copy.file) if magic == elf.MAGIC else None,
            macho=macho.read(copy.file) if magic in macho.MAGICS else (),
            text=inspection_text.search(copy.file),
            registers_ops=libraries.registers_ops(Path(copy.name)) if PurePosixPath(member.filename).name == NCCL_OPS else None,
            fault="" if magic in {elf.MAGIC, *macho.MAGICS} else "it is neither an ELF nor a Mach-O file",
        )
    except Exception as fault:  # noqa: BLE001 bytes made to mislead fail in a parser in every way that Python knows
        return Library(member.filename, member.file_size, fault=str(fault) or type(fault).__name__)


def _stated(wheel: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Return the texts that TensorFlow's build_info assigns, or has in the one dictionary that later releases assign."""
    name = next((member.filename for member in archive.files(wheel) if member.filename.endswith(BUILD_INFO)), "")
    try:
        tree = ast.parse(_text(wheel, name))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield from _constant(node.targets[0].id, node.value)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Constant):  # noqa: PLR2004 a pair
            yield from _constant(str(node.elts[0].value), node.elts[1])


def _constant(name: str, node: ast.expr) -> Iterator[tuple[str, str]]:
    """Return a name and its value where that is a plain one."""
    if isinstance(node, ast.Constant) and node.value not in {None, ""}:
        yield name, str(node.value)


def _notes(found: tuple[Library, ...]) -> Iterator[str]:
    """Say what a sound wheel may still do to its users."""
    for library in found:
        if library.registers_ops is False:
            yield f"{library.path} is a stub: it registers no operation"
        if library.text.leaks:
            yield f"{library.path} names {library.text.leaks} paths as on a machine that builds, such as {library.text.paths[0]}"
        if stray := [folder for folder in _search(library) if not folder.startswith(("$ORIGIN", "@", "/"))]:
            yield f"{library.path} looks for libraries in {', '.join(stray)}: below whatever directory it is started in"


def needed(library: Library) -> tuple[str, ...]:
    """Return the libraries that one needs, for all its machines."""
    own = library.elf.needed if library.elf else ()
    return own + tuple(name for part in library.macho for name in part.needed)


def _search(library: Library) -> tuple[str, ...]:
    """Return the directories that a library is looked for in, for all its machines."""
    own = library.elf.search if library.elf else ()
    return own + tuple(folder for part in library.macho for folder in part.search)
