"""What this host shows of a suspected cause, before it is stated as fact."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tfwright.diagnosis.families import Fact, Family
from tfwright.tools.process import capacity

_DRIVER = Path("/proc/driver/nvidia/version")
_XCODE = Path("/var/db/xcode_select_link")
"""Where `xcode-select` keeps its choice."""
_CUDA = ("/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda")
"""Where toolkits usually are."""
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_MOST_VERSIONS = 3
"""Files with other version numbers that are named if a file is missing."""
_ABOUT_GPUS = re.compile(
    r"cuda|cudnn|cublas|cufft|curand|cusolver|cusparse|cupti|cudart|nccl|nvrtc|nvidia|nvinfer|gpu"
    r"|nvcc|nvlink|thrust|\bcub\b|\.cu\b",
    re.IGNORECASE,
)
_OF_ANYTHING = ("host-", "link-", "load-")
"""Families that are sometimes about CUDA: its toolkit and driver say nothing of other libraries."""


def visible_evidence(
    family: Family, place: Path, parameters: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return what can be seen here of a family's cause.

    `place` is where the build writes. Of the parameters, an absolute path is looked at. A log of
    another machine says nothing of this host.
    """
    values = dict(parameters or {})
    file = values.pop("given", "")
    shown = (f"the log shows that {file} gives it",) if file else ()
    system = values.pop("system", "unknown")
    if values.pop("elsewhere", "") or system not in {"unknown", platform.system()}:
        return shown
    # The toolkit is left out where the failure is about something else: it would mislead.
    about_gpus = not family.id.startswith(_OF_ANYTHING) or any(
        _ABOUT_GPUS.search(value) for value in values.values()
    )
    seen = []
    for fact in family.evidence:
        # The system may refuse to show it.
        with suppress(OSError):
            if about_gpus or fact not in {"cuda", "driver"}:
                seen.append(_LOOK[fact](place))
    for value in values.values():
        # ./configure joins the files that it looked for by "or"; "//a/b" is a label of Bazel's.
        for part in value.split(" or "):
            path = part.partition(":")[0].lstrip("'\"` ").rstrip("'\"`,. ")
            # A path with a blank in it is mostly a message.
            if path.startswith("/") and not path.startswith("//") and " " not in path:
                # A directory that this user may not read proves nothing.
                with suppress(OSError):
                    seen.append(_path_state(Path(path)))
    return tuple(text for text in dict.fromkeys((*seen, *shown)) if text)


def _path_state(path: Path) -> str:
    """Say that a file is not there, and which of its versions are."""
    # First, since exists() is false for a dangling link too.
    if path.is_symlink() and not path.exists():
        return f"{path} is a link to {path.readlink()}, which is not there"
    if path.exists():
        return ""
    stem, number, _ = path.name.partition(".so")
    others = []
    if number and path.parent.is_dir():
        others = sorted(
            entry.name for entry in path.parent.iterdir() if entry.name.startswith(f"{stem}.so")
        )
    instead = f"; {', '.join(others[:_MOST_VERSIONS])} is there" if others else ""
    return f"{path} is not on this host{instead}"


def _disk(place: Path) -> str:
    usage = shutil.disk_usage(place)
    free = usage.free / capacity.GIB
    total = usage.total / capacity.GIB
    return f"{free:.1f} of {total:.1f} GiB are free on the disk of {place}"


def _memory(_: Path) -> str:
    kills = capacity.oom_kills()
    killed = f"; the kernel has killed {kills} programs for lack of memory" if kills else ""
    free = capacity.available_memory() / capacity.GIB
    return f"{free:.1f} GiB of memory are free, {capacity.usable_cores()} processors{killed}"


def _driver(_: Path) -> str:
    if _DRIVER.is_file():
        return _DRIVER.read_text("ascii", "replace").partition("\n")[0]
    return "no NVIDIA driver is loaded"


def _python(_: Path) -> str:
    found = shutil.which("python3")
    runs = f"tfwright runs on Python {platform.python_version()}"
    return f"python3 on PATH is {found}; {runs}" if found else ""


def _compiler(_: Path) -> str:
    """Name the compilers on PATH; their versions are in the names that links resolve to."""
    found = {name: shutil.which(name) for name in ("gcc", "clang", "nvcc", "ld")}
    return ", ".join(f"{name} is {Path(path).resolve()}" for name, path in found.items() if path)


def _cuda(_: Path) -> str:
    """Say where a toolkit is, and of which version."""
    places = [Path(each).resolve() for each in (os.environ.get("CUDA_HOME", ""), *_CUDA) if each]
    named = [_toolkit(place) for place in dict.fromkeys(places) if place.is_dir()]
    if named:
        return "CUDA is in " + ", ".join(named)
    # On a Mac this is the rule, and says nothing about the failure.
    return "no CUDA toolkit is in the usual places" if sys.platform != "darwin" else ""


def _toolkit(place: Path) -> str:
    """Name a toolkit with the version that a file of its own states."""
    # CUDA 11.1 replaced version.txt with version.json.
    for name in ("version.json", "version.txt"):
        file = place / name
        found = _VERSION.search(file.read_text("utf-8", "replace")) if file.is_file() else None
        if found:
            return f"{place} (version {found[0]})"
    return str(place)


_LOOK: dict[Fact, Callable[[Path], str]] = {
    "disk": _disk,
    "memory": _memory,
    "glibc": lambda _: " ".join(platform.libc_ver()).strip(),
    "xcode": lambda _: f"the selected Xcode is {_XCODE.readlink()}" if _XCODE.is_symlink() else "",
    "driver": _driver,
    "python": _python,
    "compiler": _compiler,
    "cuda": _cuda,
    "machine": lambda _: f"this machine is {platform.machine()} ({platform.system()})",
}
