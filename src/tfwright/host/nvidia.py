"""NVIDIA's part of a host: CUDA and its libraries, the driver, the GPUs."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.toolkit import PartName
from tfwright.facts import gpus as gpus_by_name
from tfwright.host.place import NOTHING, Place, Seen
from tfwright.tools import json_text

FRAMEWORK = "/Library/Frameworks/CUDA.framework/Versions/A/Resources/Info.plist"
"""Where NVIDIA's CUDA driver for macOS keeps its version."""
_DRIVER_QUESTION = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
_DRIVER_ANSWER = r"\A([\d.]+)\s*$"
"""A line for each GPU, all of them the same."""
INCLUDES = ("include", "include/*-linux-gnu", "targets/*/include")
"""Where a library's headers are below its prefix: as NVIDIA packs it, pip's packages too; as Debian
does; in CUDA's own cross layout."""


CUDA_INCLUDES = (
    ".",
    *INCLUDES,
    "include/cuda",
    "extras/CUPTI/include",
    "include/cuda/CUPTI",
    "local/cuda/extras/CUPTI/include",
)
"""Where TensorFlow looks for the headers of CUDA below each of its prefixes."""


@dataclass(frozen=True)
class NvidiaLibrary:
    """One of NVIDIA's libraries apart from CUDA."""

    title: str
    headers: tuple[str, ...]
    """Those that may have its version, in macros."""
    macro: str
    """How these begin."""
    files: str
    """A pattern of its files: it often shares its directory, such as /usr, with others."""


LIBRARIES: Mapping[PartName, NvidiaLibrary] = {
    # From version 8 on the version has a header of its own; Debian's carry the major version in
    # their name.
    "cudnn": NvidiaLibrary(
        "cuDNN",
        ("cudnn_version.h", "cudnn_version_v*.h", "cudnn.h", "cudnn_v*.h"),
        "CUDNN",
        r"cudnn[^/]*\.h|libcudnn[^/]*\.(so[^/]*|a)",
    ),
    "nccl": NvidiaLibrary("NCCL", ("nccl.h",), "NCCL", r"nccl[^/]*\.h|libnccl[^/]*\.(so[^/]*|a)"),
    "tensorrt": NvidiaLibrary(
        "TensorRT",
        ("NvInferVersion.h", "NvInfer.h"),
        "NV_TENSORRT",
        r"Nv[A-Z][^/]*\.h|libnv(infer|parsers|onnx)[^/]*\.(so[^/]*|a)",
    ),
}


@dataclass(frozen=True)
class Gpu:
    """A GPU of NVIDIA's."""

    name: str
    capability: str
    """Compute capability, ``6.1``; empty if it is not known."""
    by: str

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability or 'unknown'})"


@dataclass(frozen=True)
class Ceiling:
    """The newest compilers that a CUDA takes for the host's code; an empty one is not known."""

    gcc: str
    clang: str
    """The first that is too new."""
    by: str


UNKNOWN = Ceiling("", "", "")


def cuda(place: Place, toolkit: Path) -> list[Seen]:
    """Return the version of a toolkit as each of its own witnesses has it; they should agree."""
    # Newer CUDAs have version.json instead of version.txt; nvcc and cuda.h are in all.
    manifest = place.read(toolkit / "version.json")
    try:
        listed = Seen(str(json_text.parse(manifest.value)["cuda"]["version"]), manifest.by)
    except (ValueError, KeyError, TypeError):
        listed = NOTHING
    named = place.read(toolkit / "version.txt").find(r"CUDA Version ([\d.]+)")
    compiler = place.ask(str(toolkit / "bin/nvcc"), "--version")
    printed = compiler.find(r"release [\d.]+, V([\d.]+)")
    header = place.read(toolkit / "include/cuda.h").find(r"#define CUDA_VERSION ([0-9]{1,9})\b")
    # 9020 stands for 9.2, 12080 for 12.8.
    number = int(header.value or 0)
    defined = Seen(f"{number // 1000}.{number % 1000 // 10}", header.by) if number else NOTHING
    return [seen for seen in (listed, named, printed, defined) if seen]


def has_header(place: Place, name: str, prefixes: Iterable[Path]) -> bool:
    """Say whether a header of CUDA is below any of some prefixes."""
    patterns = [f"{folder}/{name}" for folder in CUDA_INCLUDES]
    return any(path for prefix in prefixes for path in place.matching(prefix, patterns))


def ceiling(place: Place, toolkit: Path) -> Ceiling:
    """Return what a toolkit's own host_config.h says about compilers.

    On macOS the rule is in nvcc itself, and no header has it.
    """
    # Newer CUDAs have the rules in crt/; their header of the old name only includes that file.
    include = toolkit / "include"
    text = place.read(include / "crt/host_config.h") or place.read(include / "host_config.h")
    # The conditions decide before the words, which in 12.2 and 12.3 name a clang that may pass.
    gcc = text.find(r"gcc versions later than ([\d.]+) are not supported")
    condition = text.find(r"^#if \(__clang_major__ >= (\d+)\)")
    clang = condition or text.find(r"clang version must be less than ([\d.]+)")
    return Ceiling(gcc.value, clang.value, text.by)


def library(place: Place, part: PartName, prefixes: Iterable[Path]) -> Seen:
    """Return the version of the first of LIBRARIES[part] below some prefixes."""
    known = LIBRARIES[part]
    patterns = [f"{folder}/{name}" for folder in INCLUDES for name in known.headers]
    for header in (path for prefix in prefixes for path in place.matching(prefix, patterns)):
        text = place.read(header)
        # The old cudnn.h of a newer cuDNN only includes another header, and has no numbers.
        macros = [f"{known.macro}_{name}" for name in ("MAJOR", "MINOR", "PATCH(?:LEVEL)?")]
        parts = [text.find(rf"#define {macro}\s+(\d+)").value for macro in macros]
        if all(parts):
            return Seen(".".join(parts), text.by)
    return NOTHING


def driver(place: Place) -> Seen:
    """Return the version of the loaded driver; nothing without one."""
    if asked := place.ask(*_DRIVER_QUESTION).find(_DRIVER_ANSWER):
        return asked
    # nvidia-smi may be missing where the driver is loaded, as in a container.
    loaded = place.read("/proc/driver/nvidia/version")
    return loaded.find(r"Kernel Module(?: for \S+)?\s+([\d.]+)") or _mac_driver(place)


def driver_fault(place: Place) -> Seen:
    """Return what nvidia-smi says where it is installed and does not answer."""
    answer = place.ask(*_DRIVER_QUESTION, failed=True)
    return NOTHING if answer.find(_DRIVER_ANSWER) else answer


def _mac_driver(place: Place) -> Seen:
    """Return the version of CUDA's driver for macOS, if its kernel extension is loaded."""
    loaded = place.ask("kextstat")
    if "com.nvidia.CUDA" not in loaded.value:
        return NOTHING
    # Only a Mac comes here, and every build loads this module.
    import plistlib
    from xml.parsers.expat import ExpatError

    try:
        properties = plistlib.loads(place.at(FRAMEWORK).read_bytes())
        return Seen(str(properties["CFBundleVersion"]), f"{loaded.by}, {FRAMEWORK}")
    # plistlib checks neither types nor depth.
    except (OSError, LookupError, ValueError, TypeError, RecursionError, ExpatError):
        return NOTHING


def gpus(place: Place) -> list[Gpu]:
    """Return NVIDIA's GPUs of this host."""
    listed = place.ask("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")
    # From the right: the name of a GPU could hold a comma, its capability cannot.
    if found := re.findall(r"^(.+), *(\d+\.\d+)$", listed.value, re.MULTILINE):
        return [Gpu(name, capability, listed.by) for name, capability in found]
    # Drivers before 510 do not report the compute capability, nor does macOS; the name gives it.
    named = place.ask("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    names = [name for name in named.value.splitlines() if not name.startswith("No devices")]
    if not names:
        named = place.ask("system_profiler", "SPDisplaysDataType")
        names = re.findall(r"Chipset Model: (NVIDIA .*)", named.value)
    # No driver is loaded, or one that does not know the GPU: it is on the bus all the same.
    if not names:
        named = place.ask("lspci", "-d", "10de:")
        found = re.findall(r"(?:VGA|3D).*?: NVIDIA Corporation (.*)", named.value)
        names = [re.sub(r".*\[(.*)\].*| \(rev \w+\)$", r"\1", name) for name in found]
    return [Gpu(name, _capability(name), named.by) for name in names]


def _capability(name: str) -> str:
    """Return the compute capability of a GPU by its name; empty where the name does not tell."""
    with suppress(gpus_by_name.AmbiguousGpu):
        found = gpus_by_name.by_name(name)
        return found.capability if found else ""
    return ""


def nouveau(place: Place) -> Seen:
    """Say whether the free driver nouveau is loaded; NVIDIA's cannot load at the same time."""
    loaded = place.read("/proc/modules").find(r"^(nouveau) ")
    return Seen("loaded", loaded.by) if loaded else NOTHING


def protection(place: Place) -> Seen:
    """Return whether macOS's System Integrity Protection is ``enabled`` or ``disabled``."""
    return place.ask("csrutil", "status").find(r"status: (\w+)")
