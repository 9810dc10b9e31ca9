"""One shared library of a wheel, read from its bytes alone, and how the libraries link."""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tfwright.wheel.binary import elf, elf_image, fatbin, macho
from tfwright.wheel.binary.elf import ElfTable, LibraryPart
from tfwright.wheel.binary.elf_image import KERNELS, REGISTRY, Content, ElfImage

NCCL_OPS = "_nccl_ops.so"
"""Only TensorFlow 1.0 to 1.12 have this library; later ones link NCCL into their own."""
NO_OPERATION = "it registers no operation"
FIXED = re.compile(r"/|@|\$(ORIGIN|\{ORIGIN\})(/|$)")
"""How a directory begins that does not depend on where a program is started."""
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|gomp))\.so\.\d+")
"""Libraries all of whose symbols have versions, so that one without a version is not theirs."""
WINDOWS = b"MZ"
"""How a library for Windows begins, also where its name ends with .so."""
MOST_MISSING = 20
"""Of the names that a library misses, how many are kept."""
NCCL = re.compile(
    rb"NCCL version "
    rb"(\d[\w.]{0,30}?(?:\+cuda\d[\d.]{0,20})?)(?:\+cudaCUDA_MAJOR\.CUDA_MINOR)?[^\w.+]"
)
"""What NCCL says at its start; Bazel compiles it without the macros that would say its CUDA."""


def stub_reason(library: Path) -> str:
    """Say why a library of operations is a stub; empty if it is not one.

    Raises ValueError where it is damaged.
    """
    return _stub_reason(library.read_bytes())


def _stub_reason(content: Content) -> str:
    # In ELF only dynamic symbols count: the text may also stand in debug information. Mach-O keeps
    # the names of its symbols as plain text, which is enough to find them.
    texts = content
    if content[:4] == elf_image.MAGIC:
        texts = ElfImage(content).names.texts
    # Kernels are what operations run by; without one they only have a name.
    if texts.find(KERNELS) >= 0:
        return ""
    return "its operations have no kernel" if texts.find(REGISTRY) >= 0 else NO_OPERATION


@dataclass(frozen=True)
class Library:
    """One shared library, or the reason why it could not be read."""

    path: str
    size: int
    parts: tuple[LibraryPart, ...] = ()
    """What it says of itself, once for each machine: a library for macOS may hold several."""
    nccl: str = ""
    """The version of the NCCL that is linked into it, with its CUDA if it says that."""
    stub: str = ""
    """Of ``_nccl_ops.so``: why it is a stub; empty if it is the real library."""
    fault: str = ""

    @property
    def system(self) -> str:
        """The system that it is for; empty where it could not be read."""
        return self.parts[0].system if self.parts else ""

    @property
    def needed(self) -> tuple[str, ...]:
        """The libraries that it needs, for all its machines."""
        return tuple(name for part in self.parts for name in part.needed)

    @property
    def search(self) -> tuple[str, ...]:
        """The directories that it looks for libraries in, for all its machines."""
        return tuple(folder for part in self.parts for folder in part.search)

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which others need it."""
        sonames = (part.soname for part in self.parts if part.soname)
        return (PurePosixPath(self.path).name, *sonames)

    def notes(self) -> Iterator[str]:
        """Say what a sound library may still do to its users."""
        if self.system == "Windows":
            yield "is for Windows, and what it needs is not read, apart from GPU code"
        if self.stub:
            yield f"a stub, {self.stub}"
        for missing in (part.symbols.missing for part in self.parts if part.symbols.missing):
            least = "at least " if len(missing) == MOST_MISSING else ""
            others = f" and {least}{len(missing) - 1} more" if len(missing) > 1 else ""
            yield f"needs {missing[0]}{others}, and names no library that has it"
        # The loader takes a relative path from the working directory, which a stranger may own.
        stray = [folder for folder in self.search if not FIXED.match(folder)]
        if stray:
            # An empty entry, as in "a::b", is the working directory itself.
            shown = ", ".join(folder or "." for folder in stray)
            yield f"looks for libraries in {shown}, below whatever directory it is started in"
        for part in self.parts:
            if part.cpu and part.cpu.unknown:
                use = part.cpu.unknown[0]
                yield (
                    f"asks the CPU what it has, so whether it needs {use.extension} "
                    f"is unknown ({use.decided} use it)"
                )


def installed_path(path: str) -> str:
    """Return a library's path in a wheel as it is below site-packages, once installed."""
    # PEP 427: what is below .data/purelib and .data/platlib ends up at the top.
    return path.rpartition("/purelib/")[2].rpartition("/platlib/")[2]


def read(member: zipfile.ZipInfo, content: Content) -> tuple[Library, ElfTable | None]:
    """Read a library, whatever is in the file that is named like one."""
    try:
        return _read(member.filename, content)
    # Hostile bytes can make a parser fail with any exception.
    except Exception as fault:  # noqa: BLE001 see above
        why = str(fault) or type(fault).__name__
        return Library(member.filename, member.file_size, fault=why), None


def _read(path: str, content: Content) -> tuple[Library, ElfTable | None]:
    """Read a library that is sound. Raises ValueError for other files."""
    why = _stub_reason(content) if PurePosixPath(path).name == NCCL_OPS else ""
    found = Library(path, len(content), nccl=nccl_version(content), stub=why)
    # By the content: a file named .so may be a linker script.
    magic = bytes(content[:4])
    if magic == elf_image.MAGIC:
        linux, table = elf.read(content)
        return replace(found, parts=(linux,)), table
    if magic in macho.MAGICS:
        return replace(found, parts=macho.read(content)), None
    if magic[:2] == WINDOWS:
        part = LibraryPart(system="Windows", gpu=fatbin.architectures(content))
        return replace(found, parts=(part,)), None
    raise ValueError("it is neither an ELF nor a Mach-O file")


def nccl_version(content: Content) -> str:
    """Return the version of the NCCL that is linked in, with its CUDA if it says that."""
    # find() first: it is ten times as fast, and most libraries have none.
    place = content.find(b"NCCL version ")
    found = NCCL.search(content, place) if place >= 0 else None
    return found[1].decode() if found else ""


def with_missing_symbols(
    libraries: Sequence[Library], tables: Mapping[str, ElfTable]
) -> tuple[Library, ...]:
    """Return the libraries with the symbols filled in that are missing.

    What any library of the wheel gives counts as given: TensorFlow 1 loads its own library for all
    to see, and the operations' libraries do not name it. Where a library needs one from outside the
    wheel whose symbols have no versions, as libcuda's, it is unknown what is missing.
    """
    exported = frozenset[int]().union(*(table.exported for table in tables.values()))
    unknown = _reaching_outside(libraries)
    found = []
    for library in libraries:
        table = tables.get(library.path)
        if table and library.path not in unknown:
            names = [name for name in table.undefined if hash(name) not in exported][:MOST_MISSING]
            missing = tuple(name.decode("utf-8", "replace") for name in names)
            (part,) = library.parts
            part = replace(part, symbols=replace(part.symbols, missing=missing))
            library = replace(library, parts=(part,))  # noqa: PLW2901 the same one, with more known
        found.append(library)
    return tuple(found)


def _reaching_outside(libraries: Sequence[Library]) -> set[str]:
    """Return the paths of those that need, themselves or through others, a library from outside.

    The loader's libraries of the system do not count. Each need is followed once, backwards from
    the libraries outside: from each library forwards would take the square of their number.
    """
    own: set[str] = set()
    users: dict[str, list[Library]] = {}
    for library in libraries:
        if library.system == "Linux":
            own.update(library.names)
            for name in library.needed:
                users.setdefault(name, []).append(library)
    # What needs libcuda may get any symbol from it, and so may whoever needs that.
    waiting = [name for name in users if name not in own and not SYSTEM.fullmatch(name)]
    reached, seen = set[str](), set(waiting)
    while waiting:
        for library in users.get(waiting.pop(), ()):
            reached.add(library.path)
            further = [name for name in library.names if name not in seen]
            seen.update(further)
            waiting += further
    return reached
