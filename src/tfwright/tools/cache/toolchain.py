"""The digest of a toolchain: of all that decides about an action's result and that Bazel overlooks.

Bazel's key of an action has the compiler's *path*. Its content, the system's headers and libraries,
and what CUDA's compiler consists of are not inputs of an action: an update of gcc changes none of
the keys. Entries of different toolchains are therefore kept apart by this digest.
"""

import hashlib
import json
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tfwright.tools import files, json_text, trees
from tfwright.tools.process import command as programs
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.seen import SeenFiles

PROGRAMS = ("cc1", "cc1plus", "collect2", "lto1", "as", "ld", "ar", "objcopy", "strip", "nm")
"""What a compiler's driver runs."""
LIBRARIES = (
    "crt1.o",
    "crti.o",
    "crtn.o",
    "crtbegin.o",
    "crtbeginS.o",
    "crtend.o",
    "crtendS.o",
    "libgcc.a",
    "libgcc_eh.a",
    "libgcc_s.so.1",
    "libstdc++.a",
    "libstdc++.so.6",
    "libc.a",
    "libc.so.6",
    "libc_nonshared.a",
    "libm.so.6",
    "libpthread.so.0",
)
"""What is linked into everything, or decides which symbol versions it asks for."""
SCRIPTING = ("bash", "sed", "awk", "perl", "patch", "tar", "gzip", "python3", "python")
"""What the commands of generated files run."""
CUDA_FOLDERS = ("bin", "nvvm/bin", "nvvm/libdevice", "tfwright/bin")
"""Where nvcc and what it runs lie; CUDA's headers and libraries are inputs of Bazel's actions."""
_INCLUDES = re.compile(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", re.DOTALL)

_OF_ONE_COMPILER = re.compile(r"/c\+\+/[^/]+/")
"""Where each version of a C++ library lies, below a folder for all. A compiler that uses it names
it as a folder of its own; to install another compiler must not cost all of the cache."""

_LOADED = re.compile(r"=> (/\S+)")
"""A shared library in what ldd prints."""


Toolchain = dict[str, str]
"""What compiles: what each part is = its digest, or its name where that says all."""


def host_toolchain(
    compilers: Sequence[str], python: Path, cuda: Path | None, memo: Path, *, native: bool
) -> Toolchain:
    """Return this host's toolchain: its compilers, as commands or paths, target Python and CUDA.

    With `native` the CPU is a part, since -march=native compiles for it. Digests are kept in the
    file `memo`, and computed once for each state of a file.
    """
    known = _Digests(memo)
    # Not the kernel's version: it changes with each update, and no compiler's output with it.
    parts = {"machine": f"{platform.system()} {platform.machine()}"}
    if native:
        parts["CPU"] = _cpu_digest()
    for compiler in dict.fromkeys(compilers):
        if driver := _find_program(compiler):
            parts |= _compiler_parts(compiler, str(driver), known)
    # Rules that generate files run these, and Bazel does not look at their content either.
    parts |= {name: known.of(path) for name in SCRIPTING if (path := _find_program(name))}
    parts["target Python"] = known.of(python)
    if cuda:
        found = (trees.files_below(cuda / name, follow=True) for name in CUDA_FOLDERS)
        programs = (path for folder in found for path, _ in folder)
        parts["CUDA's programs"] = known.of_all(programs)
    known.save()
    return parts


def image_toolchain(digest: str, python: Path, *, native: bool) -> Toolchain:
    """Return the toolchain of a container image, whose digest covers all that is in it."""
    parts = {"image": digest, "machine": platform.machine(), "target Python": files.sha256(python)}
    return parts | ({"CPU": _cpu_digest()} if native else {})


def save(toolchain: Toolchain, root: Path) -> str:
    """Return the digest that stands for a toolchain, and write down its parts."""
    digest = json_text.digest(toolchain)
    path = root / "toolchains" / f"{digest}.json"
    if not path.is_file():
        files.write(path, json.dumps(toolchain, indent=1, sort_keys=True))
    return digest


def load(root: Path, digest: str) -> Toolchain:
    """Return what a digest stands for; without parts where that was not written down."""
    return json_text.load_object(root / "toolchains" / f"{digest}.json")


def _compiler_parts(compiler: str, driver: str, known: "_Digests") -> Iterator[tuple[str, str]]:
    """Yield the parts of one compiler, as far as it names them."""
    yield compiler, known.of(Path(driver))
    # The driver is small: what compiles and links are programs that it runs, elsewhere.
    programs = [Path(_answer(driver, f"-print-prog-name={name}")) for name in PROGRAMS]
    yield (
        f"programs of {compiler}",
        known.of_all(_existing_files([*programs, *_clang_files(driver)])),
    )
    libraries = (Path(_answer(driver, f"-print-file-name={name}")) for name in LIBRARIES)
    yield f"libraries of {compiler}", known.of_all(_existing_files(libraries))
    # It says so on standard error only. The driver's path is an argument, not part of the script.
    printed = _answer("/bin/sh", "-c", '"$0" -xc++ -E -v /dev/null 2>&1', driver)
    listed = _INCLUDES.search(printed)
    folders = tuple(map(str.strip, listed[1].splitlines())) if listed else ()
    # Most compilers have the same ones.
    if folders not in known.headers:
        known.headers[folders] = _headers_digest(folders)
    yield f"headers of {compiler}", known.headers[folders]


def _clang_files(driver: str) -> Iterator[Path]:
    """Yield clang itself, however it was called, and the shared libraries that it consists of."""
    program = _answer(driver, "-print-prog-name=clang")
    # gcc repeats the name.
    if not Path(program).is_absolute():
        return
    yield Path(program)
    for library in _LOADED.findall(_answer("/usr/bin/ldd", program)):
        yield Path(library)


def _answer(driver: str, *question: str) -> str:
    return runner.short_output(Command.of_system(driver, *question))


def _existing_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that are there; gcc repeats the mere name of what it does not have."""
    for path in paths:
        found = path if path.is_absolute() else _find_program(path.name)
        if found and found.is_file():
            yield found


def _find_program(name: str) -> Path | None:
    found = shutil.which(name, path=":".join(programs.SYSTEM_PATH))
    return Path(found) if found else None


def _headers_digest(folders: tuple[str, ...]) -> str:
    """Return a digest of names, sizes and times of all headers below some folders.

    A system has tens of thousands of headers; package managers keep their times, so that two hosts
    with the same packages agree.
    """
    digest = hashlib.sha256()
    for folder in map(Path, folders):
        # Sorted, since the order of a directory differs between two disks.
        for path, found in sorted(trees.files_below(folder, follow=True)):
            if _OF_ONE_COMPILER.search(str(path), len(str(folder))):
                continue
            text = f"{path}\0{found.st_size}\0{int(found.st_mtime)}\n"
            digest.update(text.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _cpu_digest() -> str:
    """Return a digest of what this CPU can do, as -march=native would see it, or its name."""
    try:
        described = Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return platform.processor()
    names = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    found = (re.search(rf"^{name}\s*: (.*)$", described, re.MULTILINE) for name in names)
    return hashlib.sha256("\n".join(line[1] for line in found if line).encode()).hexdigest()


class _Digests(SeenFiles):
    """Digests of files, through their links."""

    def __init__(self, memo: Path) -> None:
        super().__init__(memo)
        self.headers: dict[tuple[str, ...], str] = {}
        """Folders = one digest over all headers below them."""

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file."""
        return self.content(path.resolve())

    def of_all(self, paths: Iterable[Path]) -> str:
        """Return one digest over the names and contents of files."""
        lines = sorted(f"{path.name} {self.of(path)}" for path in paths)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
