"""What a wheel is, read from its bytes alone: any wheel, on any machine, without running it."""

import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from email.message import Message
from itertools import zip_longest
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from tfwright.errors import WheelError
from tfwright.printable import first_few, first_of
from tfwright.wheel import archive, record
from tfwright.wheel.binary import elf_image, macho
from tfwright.wheel.binary.elf_image import Content
from tfwright.wheel.inspect import cuda, needs, tags
from tfwright.wheel.inspect import library as inspection_library
from tfwright.wheel.inspect.cuda import CudaSource
from tfwright.wheel.inspect.leaks import HostDirectory, Leak, LeakSearch
from tfwright.wheel.inspect.library import Library
from tfwright.wheel.inspect.needs import Summary

LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib|pyd|dll)$")
DISGUISED = re.compile(r"(^|/)[^./]*$|\.(so|dylib)[^a-z]")
"""Other names that a program or library may have: without an ending, or of a release candidate."""
SYSTEM = re.compile(
    r"(lib(c|m|dl|rt|pthread|util|resolv|nsl|crypt|gcc_s|stdc\+\+|python[\d.]+\w*)\.so|libc\.|ld-)"
)
"""Libraries that are there with a system of glibc or musl, and with Python."""
TENSORFLOW = re.compile(r"(lib|_pywrap_)tensorflow")
SHOWN = 20
"""Faults that an error names; the others are counted."""
LONGEST = 200
"""Characters of a project's name or version that are kept."""


@dataclass(frozen=True)
class Inspection:
    """A wheel."""

    file: str
    size: int
    unpacked: int = 0
    project: str = ""
    version: str = ""
    requires_python: str = ""
    requires_tensorflow: str = ""
    """The releases of TensorFlow that its metadata names, with or without an extra: ``<2.17``."""
    tags: tuple[str, ...] = ()
    stated: tuple[tuple[str, str], ...] = ()
    """What TensorFlow's build_info says, such as ``cuda_version``."""
    nvidia: tuple[str, ...] = ()
    """NVIDIA's libraries that the loader has to find, with the version that their names hold."""
    outside: tuple[str, ...] = ()
    """Libraries for Linux that it needs, and that neither it nor a system, NVIDIA's packages or
    TensorFlow has: ``libamdhip64.so.4``."""
    cuda: tuple[CudaSource, ...] = ()
    """How it will find them."""
    cuda_in_reach: tuple[str, ...] = ()
    """Which of pip's nvidia packages its search paths lead to, by directory: ``cublas``."""
    summary: Summary | None = None
    """What the libraries need together; None where they were not read."""
    libraries: tuple[Library, ...] = ()
    leaks: tuple[Leak, ...] = ()
    """Paths of a machine that builds, in its files."""
    faults: tuple[str, ...] = ()
    """How the wheel is damaged or contradicts itself, and what could not be read."""
    broken_promises: tuple[str, ...] = ()
    """Those of the faults that do not keep it from a system that is new enough."""
    notes: tuple[str, ...] = ()
    """What may matter to whoever uses it."""
    signed_by: str = ""
    """Id of the key that signed the statement about it; empty where no key was given."""

    @property
    def for_amd(self) -> bool:
        """Whether it is for GPUs of AMD, whose code is not read."""
        return ("is_rocm_build", "True") in self.stated

    @property
    def for_windows(self) -> bool:
        """Whether it has libraries for Windows, of which only the GPU code is read."""
        return any(library.system == "Windows" for library in self.libraries)

    def needs_of_machine(self) -> dict[str, str]:
        """Return what a machine must have for it: ``glibc``, ``cpu``, ``gpu``, ``cuda`` ..."""
        if self.summary is None:
            return {}
        # Only what a reader compares with a machine.
        found = {name.lower(): need.version for name, need in self.summary.needs.items()}
        shown = ("glibc", "glibcxx", "cpu", "macos")
        wanted = {name: found[name] for name in shown if name in found}
        wanted["gpu"] = ",".join(self.summary.gpu)
        # Releases before 2.0 do not state it, and are linked with it.
        linked = re.search(r"libcudart\.so\.(\d+\.\d+)", " ".join(self.nvidia))
        cuda = dict(self.stated).get("cuda_version", linked[1] if linked else "")
        # In wheels for Windows it is as in the names of CUDA's libraries: cudart64_112.dll.
        wanted["cuda"] = re.sub(r"^64_(\d+)(\d)$", r"\1.\2", cuda)
        # A wheel may state anything, and documents that name one strange value are refused whole.
        plain = r"[\w.,+ -]{1,400}"
        return {name: value for name, value in wanted.items() if re.fullmatch(plain, value)}


def inspect(
    path: Path, key: Path | None = None, directories: Callable[[], Iterable[HostDirectory]] = tuple
) -> Inspection:
    """Read a wheel; whatever is wrong with it is in the report.

    A wheel of tfwright may have been built here, so its files are searched for the `directories`
    of this host, which are asked for then only.
    Raises WheelError for a missing file, and what `envelope.verify` raises where a public key is
    given.
    """
    archive.check_exists(path)
    size = path.stat().st_size
    signed_by = ""
    if key:
        # Few wheels are inspected with a key, and all others would wait for what reads signatures.
        from tfwright.wheel.seal import statement

        # The signature first: what a forged wheel says of itself need not be read.
        signed_by = statement.verify_signed(path, key)
    try:
        with archive.open_wheel(path) as wheel:
            build_record = f"{archive.metadata_directory(wheel)}/{archive.BUILD_RECORD}"
            known = directories() if build_record in wheel.NameToInfo else ()
            search = LeakSearch(known, guess=True)
            return replace(_inspect_sound(path, size, wheel, search), signed_by=signed_by)
    except WheelError as fault:
        return Inspection(path.name, size, faults=(fault.what,))


def check_sound(report: Inspection) -> None:
    """Raise WheelError with everything in which a wheel is damaged, or not what it says it is."""
    if not report.faults:
        return
    # A single one is in the message already.
    lines = report.faults if len(report.faults) > 1 else ()
    raise WheelError(
        f"{report.file}: {report.faults[0]}",
        remedy="Build or download it again. Do not publish it: pip believes what a wheel says.",
        lines=first_few(lines, SHOWN),
    )


def _inspect_sound(path: Path, size: int, wheel: zipfile.ZipFile, search: LeakSearch) -> Inspection:
    """Put together what is in a sound archive."""
    folder = archive.metadata_directory(wheel)
    found = read_contents(wheel, search)
    libraries = found.libraries
    # Each file is in memory only once; its digest comes from there.
    faults = record.faults(wheel, found.entries)
    headers = Message()
    stated = frozenset[Tag]()
    built = tuple[tuple[str, str], ...]()
    try:
        headers = archive.headers(wheel, "METADATA")
        stated = tags.stated_tags(wheel)
        built = cuda.build_info_texts(wheel)
    except WheelError as fault:
        # The first that is too long ends the reading; what was read before stays in the report.
        faults.append(fault.what)
    # A report is read in a terminal and kept in pages.
    project, version, python = (
        str(headers[key] or "")[:LONGEST] for key in ("Name", "Version", "Requires-Python")
    )
    faults += _name_faults(path, folder, project, version)
    faults += tags.faults(path, stated, libraries)
    faults += needs.unreadable_libraries(libraries)
    notes = defaultdict[str, list[str]](list)
    for library in libraries:
        for note in library.notes():
            notes[note].append(library.path)
    needed = _needed_names(libraries)
    requires = [*map(str, headers.get_all("Requires-Dist") or ())]
    beneath = re.search(r"(?m)^tensorflow(?:-cpu|-gpu)? *\(?([<>=~!][^;)\n]*)", "\n".join(requires))
    # A file named like a library may be anything.
    read = not libraries or any(library.parts for library in libraries)
    return Inspection(
        file=path.name,
        size=size,
        unpacked=sum(member.file_size for member in archive.files(wheel)),
        project=project,
        version=version,
        requires_python=python,
        requires_tensorflow=beneath[1].replace(" ", "")[:LONGEST] if beneath else "",
        tags=tuple(sorted(map(str, tags.tags_in_name(path) or stated))),
        stated=built,
        nvidia=tuple(sorted(filter(cuda.NVIDIA.match, needed))),
        outside=tuple(outside_libraries(libraries)),
        cuda=cuda.library_sources(libraries, requires),
        cuda_in_reach=cuda.reachable_packages(libraries),
        summary=needs.summarize(libraries) if read else None,
        libraries=libraries,
        leaks=found.leaks,
        faults=tuple(faults),
        broken_promises=tuple(tags.broken_promises(path, stated, libraries)),
        notes=(
            *(f"{first_of(paths)}: {note}" for note, paths in notes.items()),
            *search.notes(found.leaks),
            *copy_faults(libraries),
        ),
    )


def built_on_tensorflow(libraries: Sequence[Library]) -> bool:
    """Say whether the libraries of a wheel need those of a TensorFlow outside it."""
    plugin = any(library.path.startswith("tensorflow-plugins/") for library in libraries)
    needed = {name.rpartition("/")[2] for name in _needed_names(libraries)}
    return plugin or any(map(TENSORFLOW.match, needed - _own_names(libraries)))


def _needed_names(libraries: Sequence[Library]) -> set[str]:
    return {name for library in libraries for name in library.needed}


def _own_names(libraries: Sequence[Library]) -> set[str]:
    return {name for library in libraries for name in library.names}


def outside_libraries(libraries: Sequence[Library]) -> list[str]:
    """Return what the libraries for Linux need, and somebody else has to bring."""
    for_linux = [library for library in libraries if library.system == "Linux"]
    found = _needed_names(for_linux) - _own_names(for_linux)
    known = (SYSTEM, TENSORFLOW, cuda.NVIDIA)
    return sorted(name for name in found if not any(each.match(name) for each in known))


def copy_faults(libraries: Sequence[Library]) -> Iterator[str]:
    """Say which of TensorFlow's own libraries a wheel brings besides those of TensorFlow."""
    for library in libraries:
        folder, _, name = library.path.rpartition("/")
        inside = re.search(r"(^|/)tensorflow(_core)?(/|$)", folder)
        if name.startswith(("libtensorflow_framework", "libtensorflow_cc")) and not inside:
            yield (
                f"{library.path}: a copy of TensorFlow's own library, in which no operation is "
                f"registered for the TensorFlow that is imported; leave it out ('auditwheel repair "
                f"--exclude {name.split('.so')[0].split('-')[0]}.so.2')"
            )


def _name_faults(path: Path, folder: str, project: str, version: str) -> Iterator[str]:
    """Compare the three places that say which `project` and `version` a wheel is."""
    try:
        name, number, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as fault:
        yield str(fault)
        return
    stem, _, last = folder.removesuffix(".dist-info").rpartition("-")
    places = (("METADATA", project, version), (folder, stem, last))
    for where, what, which in places:
        if (canonicalize_name(what), which) != (name, str(number)):
            yield f"{where} says {what} {which}, the name of the file says {name} {number}"


@dataclass(frozen=True)
class WheelContents:
    """What is in the files of a wheel, each of which is unpacked once."""

    libraries: tuple[Library, ...]
    entries: dict[str, record.RecordEntry]
    """Their lines of RECORD."""
    leaks: tuple[Leak, ...]


def read_contents(wheel: zipfile.ZipFile, search: LeakSearch | None = None) -> WheelContents:
    """Read the files of a wheel, and search them for directories of the host that built it."""
    search = search or LeakSearch()
    listing = f"{archive.metadata_directory(wheel)}/RECORD"
    libraries, others = [], []
    for member in archive.files(wheel):
        if _is_library(wheel, member):
            libraries.append(member)
        # RECORD has no line of its own, and nothing but names and digests.
        elif member.filename != listing:
            others.append(member)
    found, entries, tables, leaks = [], {}, {}, list[Leak]()
    # While one library is read, another processor unpacks the next. One ahead and no more: two of
    # the largest have to fit into memory.
    with ThreadPoolExecutor(1) as other:
        coming = [other.submit(_unpack_member, wheel, member) for member in libraries[:1]]
        for member, following in zip_longest(libraries, libraries[1:]):
            content, entry, held = coming.pop().result()
            if following:
                coming.append(other.submit(_unpack_member, wheel, following))
            with held:
                library, table = inspection_library.read(member, content)
                leaks += search.leaks(member.filename, content, library=True)
            found.append(library)
            entries[library.path] = entry
            if table:
                tables[library.path] = table
            # Before the next one: its memory is needed.
            del content
    for member in others:
        with archive.member_content(wheel, member) as content:
            entries[member.filename] = record.entry(member.filename, content)
            leaks += search.leaks(member.filename, content, library=False)
    # After all have been read: a symbol may come from the wheel's last library.
    return WheelContents(
        inspection_library.with_missing_symbols(found, tables), entries, tuple(leaks)
    )


def _unpack_member(
    wheel: zipfile.ZipFile, member: zipfile.ZipInfo
) -> tuple[Content, record.RecordEntry, ExitStack]:
    """Unpack a member, and describe it while it is at hand; the last gives the memory back."""
    with ExitStack() as stack:
        content = stack.enter_context(archive.member_content(wheel, member))
        return content, record.entry(member.filename, content), stack.pop_all()


def _is_library(wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Say whether a member is a library by its name, or a library or program by its first bytes."""
    if LIBRARY.search(member.filename):
        return True
    executable = member.external_attr >> 16 & stat.S_IXUSR
    if not executable and not DISGUISED.search(member.filename):
        return False
    with wheel.open(member) as stream:
        return stream.read(4) in {elf_image.MAGIC, *macho.MAGICS}
