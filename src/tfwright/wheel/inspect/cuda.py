"""How a wheel will find NVIDIA's libraries once it is installed, and what it says of its CUDA."""

import ast
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tfwright.rules.starlark.language import parse_python
from tfwright.wheel import archive
from tfwright.wheel.inspect.library import Library, installed_path

_PLACE = r"(@rpath/|/(?:.*/)?)?"
"""Where a Mac's library may say that another one is; a fixed path in front of it is allowed."""
NVIDIA = re.compile(
    _PLACE + r"lib(cu(da|dart|dnn|blas|fft|rand|solver|sparse|pti|pti64|Tensor)|nccl|nvinfer|nv)"
)
DRIVER = re.compile(_PLACE + r"(libcuda\.|libnvidia-ml\.)")
"""Libraries that come with NVIDIA's driver, which puts them where the loader always looks."""
PACKAGE = re.compile(r"(?:^|/)nvidia/([a-z0-9_]+)/lib$")
"""Where pip puts the libraries of NVIDIA's own packages, such as nvidia-cublas-cu12."""
HOLDINGS = {
    "cublas": ("cublas", "nvblas"),
    "cuda_cupti": ("cupti", "nvperf", "pcsampling"),
    "cuda_nvrtc": ("nvrtc",),
    "cuda_runtime": ("cudart",),
    "cudnn": ("cudnn",),
    "cufft": ("cufft",),
    "curand": ("curand",),
    "cusolver": ("cusolver",),
    "cusparse": ("cusparse",),
    "nccl": ("nccl",),
    "nvjitlink": ("nvJitLink",),
    "nvjpeg": ("nvjpeg",),
}
"""How the libraries begin that each of NVIDIA's packages holds, by its directory; from the wheels'
RECORDs. Others may hold anything."""
SITE = "site-packages"
"""The directory that a wheel is installed into."""
ORIGIN = re.compile(r"(\$ORIGIN|\$\{ORIGIN\}|@loader_path)(?=/|$)")
"""What stands for the directory of the library itself."""
SYSTEM = "LD_LIBRARY_PATH or the system's loader configuration"
SHOWN = 2
"""Directories that are named for a library before the others are only counted."""
BUILD_INFO = "/platform/build_info.py"
LARGEST = 64 * 1024
"""Bytes of it; TensorFlow's have two thousand. Python's parser takes 200 times as much memory."""
LONGEST = 1_000
"""Characters of a value in it."""


@dataclass(frozen=True)
class CudaSource:
    """A way in which some of the wheel's libraries find NVIDIA's."""

    how: str
    """In words."""
    libraries: tuple[str, ...]
    """NVIDIA's libraries that are found so, if they are there."""


def library_sources(
    libraries: Sequence[Library], requires: Sequence[str]
) -> tuple[CudaSource, ...]:
    """Say where the loader will look for each of NVIDIA's libraries, the usual way first.

    `requires` are the packages that the wheel's metadata names. What TensorFlow opens by name while
    it runs (from 1.14 on) no table of its libraries names; see `reachable_packages`.
    """
    own = {name for library in libraries for name in library.names}
    # NVIDIA's packages that the metadata names, by the directory that each installs: pip's
    # nvidia-cublas-cu12 installs into site-packages/nvidia/cublas.
    packages = {
        named[1].replace("-", "_"): named[0]
        for line in requires
        if (named := re.match(r"nvidia[-_]([a-z0-9_-]+?)[-_]cu\d+", line.lower()))
    }
    ways: dict[str, set[str]] = {}
    for library in libraries:
        for name in library.needed:
            if NVIDIA.match(name):
                ways.setdefault(_how_found(name, library, own, packages), set()).add(name)
    found = [CudaSource(how, tuple(sorted(names))) for how, names in ways.items()]
    return tuple(sorted(found, key=lambda source: -len(source.libraries)))


def reachable_packages(libraries: Sequence[Library]) -> tuple[str, ...]:
    """Return which of pip's nvidia packages the search paths lead to, by directory: ``cublas``.

    The loader looks there, too, for what a library opens by name while it runs.
    """
    found = {
        package[1]
        for library in libraries
        for folder in _search_directories(library)
        if folder.startswith(f"{SITE}/nvidia/") and (package := PACKAGE.search(folder))
    }
    return tuple(sorted(found))


def _how_found(name: str, library: Library, own: set[str], packages: dict[str, str]) -> str:
    """Say in words how a library will find another one."""
    # libcuda.so.1 must be the driver's own: one from the wheel would not fit the kernel module.
    if DRIVER.match(name):
        return "with NVIDIA's driver"
    if name.removeprefix("@rpath/") in own:
        return "inside the wheel"
    if name.startswith("/"):
        return f"at {PurePosixPath(name).parent}, a fixed place"
    named = (_describe_directory(folder, name, packages) for folder in _search_directories(library))
    ways = list(dict.fromkeys(filter(None, named)))
    if left := len(ways[SHOWN:]):
        ways[SHOWN:] = [f"{left} more {'place' if left == 1 else 'places'}"]
    # The loader goes on to the system's places wherever a search path leads to nothing.
    system = "DYLD_LIBRARY_PATH" if library.system == "macOS" else SYSTEM
    return ", then ".join([*ways, system]) if ways else f"only by {system}"


def _search_directories(library: Library) -> Iterator[str]:
    """Yield the directories that a library looks into, once the wheel is installed.

    Those near the library are relative to where the wheel is installed: ``site-packages/…``.
    """
    here = PurePosixPath(installed_path(library.path)).parent
    for folder in library.search:
        plain, count = ORIGIN.subn(str(here), folder, count=1)
        yield _without_parents(plain) if count and folder[0] in "$@" else folder


def _without_parents(path: str) -> str:
    """Return a path below site-packages, or from there up, with ``..`` at its beginning only."""
    parts = list[str]()
    for part in PurePosixPath(path).parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join([SITE, *parts])


def _describe_directory(folder: str, name: str, packages: dict[str, str]) -> str:
    """Say in words what a directory is; nothing for one that cannot hold the library."""
    package = PACKAGE.search(folder)
    stem = name.removeprefix("@rpath/").removeprefix("lib")
    if package and not stem.startswith(HOLDINGS.get(package[1], "")):
        return ""
    if folder.startswith("/"):
        return f"{folder}, a fixed place"
    if folder.startswith(f"{SITE}/.."):
        return f"{folder}, which is outside {SITE}"
    if package and folder.startswith(f"{SITE}/"):
        known = packages.get(package[1])
        wanted = "which its metadata names" if known else "which its metadata does not name"
        own = known or "nvidia-" + package[1].replace("_", "-")
        return f"{folder} of pip's {own}, {wanted}"
    return ""


def build_info_texts(wheel: zipfile.ZipFile) -> tuple[tuple[str, str], ...]:
    """Return the texts that TensorFlow's build_info assigns: its CUDA and cuDNN, from 1.14 on.

    Those releases load CUDA's libraries by hand, so the loader knows nothing of them. Empty where
    the file is missing, or is not Python. Raises WheelError where it is too large to be one.
    """
    # By its end: the package above it is called tensorflow, tensorflow_core or otherwise.
    names = [member.filename for member in archive.files(wheel)]
    name = next((name for name in names if name.endswith(BUILD_INFO)), "")
    # Parsed and never imported: the wheel may be hostile, and for another Python.
    tree = parse_python(archive.text(wheel, name, LARGEST))
    return tuple(_assignments(tree)) if tree else ()


def _assignments(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return names and values of all assignments, and of all pairs in a dictionary."""
    for node in ast.walk(tree):
        match node:
            # TensorFlow 1.15: cuda_version_number = "10.0".
            case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Constant(value=value)):
                pass
            # Later releases: OrderedDict([("cuda_version", "12.5.1"), ...]).
            case ast.Tuple(elts=[ast.Constant(value=str(name)), ast.Constant(value=value)]):
                pass
            case _:
                continue
        # An integer may have so many digits that Python refuses to write them.
        if (isinstance(value, str) and value) or (
            isinstance(value, int) and value.bit_length() < LONGEST
        ):
            yield name[:LONGEST], str(value)[:LONGEST]
