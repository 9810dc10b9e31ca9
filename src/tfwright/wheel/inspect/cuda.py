"""How a wheel will find NVIDIA's libraries once it is installed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tfwright.wheel.inspect import library as inspection_library
from tfwright.wheel.inspect.library import Library

NVIDIA = re.compile(
    r"(@rpath/)?lib(cu(da|dart|dnn|blas|fft|rand|solver|sparse|pti|pti64|Tensor)|nccl|nvinfer|nv)"
)
DRIVER = re.compile(r"(@rpath/)?(libcuda\.|libnvidia-ml\.|libcuda\.dylib)")
"""Libraries that come with NVIDIA's driver, which puts them where the loader always looks."""
PACKAGE = re.compile(r"(?:^|/)nvidia/([a-z0-9_]+)/lib$")
"""Where pip puts the libraries of NVIDIA's own packages, such as nvidia-cublas-cu12."""
SITE = PurePosixPath("/site-packages")
"""Stands for the directory that a wheel is installed into."""


@dataclass(frozen=True)
class CudaSource:
    """A way in which some of the wheel's libraries find NVIDIA's."""

    how: str
    """In words."""
    libraries: tuple[str, ...]
    """NVIDIA's libraries that are found so, if they are there."""
    users: int
    """How many of the wheel's libraries need one of them."""


def sources(
    libraries: Sequence[Library], requires: Sequence[str]
) -> tuple[CudaSource, ...]:
    """Say where the loader will look for each of NVIDIA's libraries, the usual way first.

    `requires` are the packages that the wheel's metadata names. What TensorFlow opens by name while
    it runs (from 1.14 on) no table of its libraries names.
    """
    own = {PurePosixPath(library.path).name for library in libraries}
    own |= {library.elf.soname for library in libraries if library.elf}
    packages = _packages(requires)
    ways: dict[str, tuple[set[str], set[str]]] = {}
    for library in libraries:
        for name in inspection_library.needed(library):
            if NVIDIA.match(name):
                how = _way(name, library, own, packages)
                names, users = ways.setdefault(how, (set(), set()))
                names.add(name)
                users.add(library.path)
    found = []
    for how, (names, users) in ways.items():
        found.append(CudaSource(how, tuple(sorted(names)), len(users)))
    return tuple(sorted(found, key=lambda source: -len(source.libraries)))


def _packages(requires: Sequence[str]) -> dict[str, str]:
    """Return NVIDIA's packages that the metadata names, by the directory each installs."""
    packages = {}
    for line in requires:
        found = re.match(r"nvidia[-_]([a-z0-9_-]+?)[-_]cu\d+", line.lower())
        # pip's nvidia-cublas-cu12 installs into site-packages/nvidia/cublas.
        if found:
            packages[found[1].replace("-", "_")] = found[0]
    return packages


def _way(
    name: str, library: Library, own: set[str], packages: dict[str, str]
) -> str:
    """Say in words how a library will find another one."""
    # libcuda.so.1 must be the driver's own: one from the wheel would not fit the kernel
    # module.
    if DRIVER.match(name):
        return "with NVIDIA's driver"
    if name.removeprefix("@rpath/") in own:
        return "inside the wheel"
    folders = list(_installed(library))
    if name.startswith("/"):
        return f"at {PurePosixPath(name).parent}, a fixed place"
    ways = list(
        dict.fromkeys(
            filter(None, (_folder(folder, packages) for folder in folders))
        )
    )
    # The loader goes on to the system's places wherever a search path leads to nothing.
    system = "LD_LIBRARY_PATH or the system's loader configuration"
    if library.macho:
        system = "DYLD_LIBRARY_PATH"
    return ", then ".join([*ways, system]) if ways else f"only by {system}"


def _installed(library: Library) -> Iterator[str]:
    """Return the directories that a library looks into, as they are once the wheel is installed."""
    # PEP 427: what is below .data/purelib ends up at the top of site-packages.
    path = library.path.rpartition("/purelib/")[2].rpartition("/platlib/")[2]
    here = (SITE / path).parent
    for folder in inspection_library.search_path(library):
        plain = re.sub(
            r"^(\$ORIGIN|\$\{ORIGIN\}|@loader_path)", str(here), folder
        )
        yield _plain(plain) if plain != folder else folder


def _plain(path: str) -> str:
    """Return a path without ``..``."""
    parts = list[str]()
    for part in PurePosixPath(path).parts[1:]:
        if part == ".." and parts:
            parts.pop()
        elif part != "..":
            parts.append(part)
    return "/" + "/".join(parts)


def _folder(folder: str, packages: dict[str, str]) -> str:
    """Say in words what a directory is; nothing for one that cannot hold NVIDIA's libraries."""
    package = PACKAGE.search(folder)
    if package and folder.startswith(str(SITE)):
        known = packages.get(package[1])
        wanted = (
            "which its metadata names"
            if known
            else "which its metadata does not name"
        )
        return (
            f"pip's {known or 'nvidia-' + package[1].replace('_', '-')}, {wanted}"
        )
    if folder.startswith(f"{SITE}/"):
        return ""
    return f"{folder}, a fixed place" if folder.startswith("/") else ""
