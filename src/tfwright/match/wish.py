"""What a wheel is wanted for: what is asked for, completed by what a host is."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tfwright.documents.release import ExactRelease, is_version
from tfwright.errors import RecipeError
from tfwright.facts import gpus
from tfwright.facts.compatibility import LEVELS
from tfwright.host import cuda
from tfwright.host.probes import Host
from tfwright.printable import did_you_mean
from tfwright.tools import json_text


class Part(NamedTuple):
    """A part of a wish."""

    title: str = ""
    """What stands before it, where it does not say by itself what it is."""
    form: str = "(.*)"
    """How people write it; the groups are what counts."""
    example: str = ""
    """How its option is written."""


_PARTS = {
    "system": Part(
        form="(linux|wsl ?2?|darwin|mac|macos|osx|windows|win)",
        example="--os Linux, --os Darwin or --os Windows",
    ),
    "machine": Part(form=r"([a-z][\w-]+)", example="--machine aarch64"),
    "gpu": Part(
        "GPU of compute capability ",
        r"(?:compute )?(?:capability |cc ?)?((?:sm_?|compute_)\d{2,3}[af]?|\d{1,2}\.\d[af]?)",
        "--gpu sm_61 or --gpu 6.1",
    ),
    "python": Part(
        "Python ", r"(?:cp|py|python)?(?:(2)\.?([0-7])|(3)\.?(\d{1,2}))(?:\.\d+)?", "--python 3.6"
    ),
    "glibc": Part("glibc ", r"(2\.\d+|none)", "--glibc 2.17, or --glibc none for musl"),
    "macos": Part("macOS ", r"(?:macos )?(\d+(?:\.\d+)*)", "--macos 12.6"),
    "cuda": Part("CUDA ", r"(\d+)(?:\.(\d+))?(?:\.\d+)?", "--cuda 10.1 or --cuda 10"),
    "release": Part("TensorFlow "),
    "cpu": Part(
        "CPU with ",
        f"({'|'.join(re.escape(level) for level in LEVELS)})",
        f"--cpu avx; the levels are {', '.join(LEVELS)}",
    ),
    "driver": Part("driver ", r"(\d+(?:\.\d+)*)", "--driver 535"),
}
_SYSTEMS = {"lin": "Linux", "wsl": "Linux", "win": "Windows"}
"""Systems by how their names begin; any other spelling is a Mac's."""
X86, ARM = ("x86_64", "x86-64", "amd64", "x64"), ("aarch64", "arm64")
_MACHINES = {
    "Linux": ("x86_64", "aarch64"),
    "Darwin": ("x86_64", "arm64"),
    "Windows": ("AMD64", "ARM64"),
}
"""How each system names the two."""


@dataclass(frozen=True)
class Wish:
    """What a wheel is wanted for; what is empty does not matter."""

    system: str = ""
    machine: str = ""
    gpu: str = ""
    """Compute capability, ``3.0``."""
    python: str = ""
    glibc: str = ""
    """The oldest that the wheel must load on; ``none`` for a system with musl."""
    macos: str = ""
    """The same for a Mac."""
    cuda: str = ""
    release: str = ""
    """The release line of TensorFlow, ``1.12``, or one release, ``1.12.3``."""
    cpu: str = ""
    """What an x86-64 CPU has at most, one of CpuLevel; only wheels that are built state it."""
    driver: str = ""
    """The version of NVIDIA's driver."""
    named: str = ""
    """The name that the GPU was given by, and where its compute capability is from."""

    def label(self, name: str) -> str:
        """Return a part as people say it: ``Python 3.6``."""
        if (name, self.glibc) == ("glibc", "none"):
            return "musl instead of glibc"
        return f"{_PARTS[name].title}{vars(self)[name]}"

    def only(self, names: Iterable[str]) -> "Wish":
        """Return some parts of it, without the others."""
        return Wish(**{name: vars(self)[name] for name in names})

    def __str__(self) -> str:
        part_names = (name for name, value in vars(self).items() if value and name != "named")
        return ", ".join(map(self.label, part_names))


def wish_of_options(options: Mapping[str, str], host: Host, release: str = "") -> Wish:
    """Return what the options that describe a machine ask for, completed by a host.

    That is the host whose report they name, or else `host`. Raises RecipeError as `wish` does.
    """
    asked = {("system" if name == "os" else name): value for name, value in options.items()}
    asked["release"] = release
    if report := asked.pop("host", ""):
        return wish_of_report(Path(report), **asked)
    return wish(host, **asked)


def wish(host: Host | None, **asked: str) -> Wish:
    """Return what is asked for, completed by what cannot be changed about this host.

    That is only done for the system that is asked for. Python and CUDA can be changed: others can
    be installed. Without a host nothing is completed. Raises RecipeError for what cannot be read.
    """
    # An empty option was not given.
    wanted = {name: value for name, value in asked.items() if value}
    if "macos" in wanted:
        wanted.setdefault("system", "Darwin")
    for_cpu = wanted.get("gpu", "").lower() == "none"
    if for_cpu:
        del wanted["gpu"]
    # Anything but a capability is taken for a name, such as "RTX 3090".
    elif "gpu" in wanted and not re.fullmatch(_PARTS["gpu"].form, wanted["gpu"], re.IGNORECASE):
        wanted |= _parts_of_gpu(wanted["gpu"])
    wanted = {name: _normalized(name, value) for name, value in wanted.items()}
    system = wanted.get("system") or (host.system if host else "")
    if "machine" in wanted:
        x86, arm = _MACHINES.get(system, _MACHINES["Linux"])
        spelled = dict.fromkeys(X86, x86) | dict.fromkeys(ARM, arm)
        wanted["machine"] = spelled.get(wanted["machine"].lower(), wanted["machine"])
    if "gpu" in wanted:
        wanted["gpu"] = cuda.capability(wanted["gpu"])
        if not gpus.by_capability(wanted["gpu"]):
            remark = f"NVIDIA's list of {gpus.list_date()} has no GPU of compute capability"
            wanted["named"] = f"{remark} {wanted['gpu']}"
        # A Jetson is a whole machine: recipes for this one's processor do not fit it.
        if machine := gpus.machine_of(wanted["gpu"]):
            wanted.setdefault("machine", machine)
    if "release" in wanted:
        wanted["release"] = _release_of(wanted["release"])
    # Someone who asks for a Mac on Linux does not mean this machine's GPU.
    if host and system == host.system:
        # The first GPU, which TensorFlow uses as well where no device is named.
        gpu = "" if for_cpu else next((gpu.capability for gpu in host.gpus), "")
        wanted = {"system": host.system, "machine": host.machine, "gpu": gpu} | wanted
    found = Wish(**wanted)
    _check_consistent(found, system)
    return found


def _check_consistent(found: Wish, system: str) -> None:
    """Raise RecipeError for a part of a wish that its system or machine does not have."""
    if found.cpu and found.machine.lower() not in {"", *X86}:
        conflict = f"--cpu is of x86-64, and the machine is {found.machine}"
        raise RecipeError(conflict, remedy="Leave out --cpu.")
    for name, of in (("glibc", "Linux"), ("macos", "Darwin")):
        if vars(found)[name] and system not in {"", of}:
            conflict = f"--{name} is of {of}, and the system is {system}"
            raise RecipeError(conflict, remedy=f"Leave out --{name}.")


def _normalized(name: str, value: str) -> str:
    """Return a part of a wish as tfwright writes it: 3.12 for cp312, 12.8 for 12.8.1."""
    _, form, example = _PARTS.get(name, Part())
    if name == "python" and re.fullmatch(r"3\.\d+t", value):
        raise RecipeError(
            f"No TensorFlow is made for Python without its global lock ({value})",
            remedy=f"Leave out the t: 'invoke match --python {value[:-1]}' says what there is.",
        )
    if not (found := re.fullmatch(form, value, re.IGNORECASE)):
        option = example.split(" ")[0]
        raise RecipeError(f"{option} does not take {value!r}", remedy=f"Write it as in {example}.")
    text = ".".join(filter(None, found.groups()))
    if name in {"gpu", "cpu", "glibc"}:
        return text.lower()
    return _SYSTEMS.get(text.lower()[:3], "Darwin") if name == "system" else text


def _release_of(release: str) -> str:
    """Return the release that a version or tag names; the line of a candidate or a fork."""
    if not is_version(release):
        raise RecipeError(
            f"{release!r} is not a valid release of TensorFlow",
            remedy="Write --release 2.6, or a tag such as v2.4.4 or v1.12.0-rc0.",
        )
    exact = ExactRelease.parse(release)
    if exact.candidate or exact.fork or release.count(".") == 1:
        return str(exact.line)
    return ".".join(map(str, exact.numbers))


def _parts_of_gpu(name: str) -> dict[str, str]:
    """Look up a GPU by its name, and the source of its compute capability."""
    try:
        known = gpus.by_name(name)
    except gpus.AmbiguousGpu as several:
        raise RecipeError(
            f"Cards named {name!r} have one of the compute capabilities {several}",
            remedy="Ask the driver: nvidia-smi --query-gpu=compute_cap --format=csv; then write it "
            "as in --gpu 5.0.",
        ) from several
    if known is None:
        maker, remedy = gpus.other_maker(name)
        if maker:
            raise RecipeError(
                f"{name!r} is a GPU of {maker}; tfwright compiles GPU code for NVIDIA's only",
                remedy=f"{remedy} For the CPU alone, write --gpu none.",
            )
        cards = re.split(r" ?[,+&] ?| and ", name)
        if len(cards) > 1:
            raise RecipeError(
                f"{name!r} names more than one GPU",
                remedy="Ask for one at a time; what fits all of them is in every answer.",
            )
        if capabilities := gpus.capabilities_of(name):
            raise RecipeError(
                f"{name} is a generation of GPUs, of compute capability {', '.join(capabilities)}",
                remedy=f"Name the card, or one of these: --gpu {capabilities[0]}.",
            )
        # The number says more than the letters: a "GTX 4080" is an RTX 4080, not a GTX 480.
        number = set(re.findall(r"\d{3,}", name))
        same = [each for each in gpus.names() if number & set(each.split())]
        suggestion = did_you_mean(name, same, 0) or did_you_mean(name, gpus.names())
        raise RecipeError(
            f"tfwright's list of {gpus.list_date()} has no NVIDIA GPU named {name!r}{suggestion}",
            remedy="Look up its compute capability at https://developer.nvidia.com/cuda-gpus, and "
            "write it as in --gpu 8.6.",
        )
    found = {"gpu": known.capability, "named": f"{name}: {gpus.source()}"}
    return found | ({"machine": known.machine} if known.machine else {})


def wish_of_wheels(wanted: Wish, host: Host) -> Wish:
    """Return a wish about wheels that are built already: also glibc and CPU decide which load.

    What is not asked for is this host's, where the wish is about it.
    """
    if (wanted.system, wanted.machine) != (host.system, host.machine):
        return wanted
    seen = {
        "glibc": host.glibc.value,
        "release": host.release.value,
        "instruction sets": host.processor.value,
        "driver": host.driver.value,
    }
    wanted_values = {name: value for name, value in vars(wanted).items() if value}
    return Wish(**_loader_parts(host.system, host.machine, seen) | wanted_values)


def wish_of_report(path: Path, **asked: str) -> Wish:
    """Return a wish for the host that a report is of, as `invoke doctor --json` prints it there.

    What is asked for besides wins. Raises RecipeError for a file that is no such report.
    """
    try:
        report = json_text.parse(path.read_bytes())
        seen: dict[str, str] = {}
        for fact in report["facts"]:
            # The first GPU counts, as on this host.
            seen.setdefault(str(fact["name"]), str(fact["value"]))
        system, _, machine = seen["system"].partition("-")
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise RecipeError(
            f"{path} is not a report about a host: {fault}",
            remedy="Write one there with 'invoke doctor --json > FILE'.",
        ) from fault
    gpu = re.search(r"compute capability (\d+\.\d)", seen.get("GPU", ""))
    known = {"system": system, "machine": machine, "gpu": gpu[1] if gpu else ""}
    asked_values = {name: value for name, value in asked.items() if value}
    return wish(None, **known | _loader_parts(system, machine, seen) | asked_values)


def _loader_parts(system: str, machine: str, seen: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a wish that decide which wheels load, of what doctor sees on a host."""
    has = seen.get("instruction sets", "").replace("avx512f", "avx512").split()
    # Every x86-64 CPU since 2006 has SSSE3, which is not among what is read.
    level = next((level for level in reversed(LEVELS) if level in has), "ssse3")
    release = seen.get("release", "").removeprefix("macOS ")
    return {
        "glibc": seen.get("glibc") or ("none" if system == "Linux" else ""),
        "macos": release if system == "Darwin" else "",
        "cpu": level if machine == "x86_64" and has else "",
        "driver": seen.get("driver", ""),
    }
