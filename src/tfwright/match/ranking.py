"""Which recipes fit a wish, what keeps the others from it, and what a new one would need."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from tfwright.documents import words
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release, is_version
from tfwright.documents.words import CpuLevel
from tfwright.errors import RecipeError
from tfwright.facts import compatibility, gpus
from tfwright.facts.compatibility import (
    is_of_line,
    is_older,
    is_within,
    range_text,
    version_numbers,
)
from tfwright.host import cuda
from tfwright.host.probes import Host
from tfwright.progress import STAGES

KNOWN = [
    Release(major, minor)
    for major, first, last in ((2, 0, 21), (1, 0, 15), (0, 11, 12))
    for minor in range(last, first - 1, -1)
]
"""Releases of TensorFlow that recipes can be written for, the newest first."""
LEVELS: tuple[str, ...] = get_args(CpuLevel)
NO_CUDA = "no CUDA"
JETPACK = "https://docs.nvidia.com/deeplearning/frameworks/install-tf-jetson-platform/"
"""NVIDIA's own page about TensorFlow on a Jetson, with its wheels for each JetPack."""
_FORMS = {
    "gpu": r"((sm_|compute_)\d{2,3}|\d{1,2}\.\d)[af]?",
    "python": r"\d\.\d+",
    "glibc": r"2\.\d+",
    "cuda": r"\d+(\.\d+)?",
    "system": "Linux|Darwin",
    "cpu": "|".join(re.escape(level) for level in LEVELS),
}


_OPTIONS = {
    "gpu": ("gpu", "--gpu sm_61 or --gpu 6.1"),
    "python": ("python", "--python 3.6"),
    "glibc": ("glibc", "--glibc 2.17"),
    "cuda": ("cuda", "--cuda 10.1 or --cuda 10"),
    "system": ("os", "--os Linux or --os Darwin"),
    "cpu": ("cpu", f"--cpu avx; the levels are {', '.join(LEVELS)}"),
}
"""Each part of a wish that has a form: its option, and how that is written."""


@dataclass(frozen=True)
class Wish:
    """What a wheel is wanted for; what is empty does not matter."""

    system: str = ""
    machine: str = ""
    gpu: str = ""
    """Compute capability, ``3.0``."""
    python: str = ""
    glibc: str = ""
    """The oldest that the wheel must load on."""
    cuda: str = ""
    release: str = ""
    """The release line of TensorFlow, ``1.12``."""
    cpu: str = ""
    """What an x86-64 CPU has at most, one of CpuLevel; only wheels that are built state it."""
    named: str = ""
    """The name that the GPU was given by, and where its compute capability is from."""

    def __str__(self) -> str:
        parts = [
            f"{_TITLES.get(name, '')}{value}"
            for name, value in vars(self).items()
            if value and name != "named"
        ]
        return ", ".join(parts)


_TITLES = {
    "gpu": "GPU of compute capability ",
    "python": "Python ",
    "glibc": "glibc ",
    "cuda": "CUDA ",
    "release": "TensorFlow ",
    "cpu": "CPU with ",
}
"""What stands before a part of a wish; the others say by themselves what they are."""


@dataclass(frozen=True)
class Candidate:
    """A recipe, and how it differs from what is wished."""

    recipe: str
    summary: str
    differs: tuple[str, ...]
    elsewhere: bool
    """Whether it is for another system: then nothing else brings it near."""
    verified: str = ""
    """The last stage that was seen to succeed; empty for a recipe without reports."""


def wish(host: Host, **asked: str) -> Wish:
    """Return what is asked for, completed by what cannot be changed about this host.

    That is only done for the system that is asked for. Python and CUDA can be changed: others can
    be installed. Raises RecipeError for what cannot be read.
    """
    # An empty option was not given.
    wanted = {name: value for name, value in asked.items() if value}
    # Anything but a capability is taken for a name, such as "RTX 3090".
    if "gpu" in wanted and not re.fullmatch(_FORMS["gpu"], wanted["gpu"]):
        wanted |= _named(wanted["gpu"])
    for name, value in wanted.items():
        if name in _FORMS and not re.fullmatch(_FORMS[name], value):
            option, example = _OPTIONS[name]
            raise RecipeError(
                f"--{option} does not take {value!r}", remedy=f"Write it as in {example}."
            )
    if "gpu" in wanted:
        wanted["gpu"] = cuda.capability(wanted["gpu"])
        # A Jetson is a whole machine: recipes for this one's processor do not fit it.
        if machine := gpus.machine_of(wanted["gpu"]):
            wanted.setdefault("machine", machine)
    if "release" in wanted:
        wanted["release"] = _line_of(wanted["release"])
    # Someone who asks for a Mac on Linux does not mean this machine's GPU.
    here = _of(host) if wanted.get("system", host.system) == host.system else {}
    return Wish(**{**here, **wanted})


def _line_of(release: str) -> str:
    """Return the release line of a version, tag or release candidate."""
    if not is_version(release):
        raise RecipeError(
            f"{release!r} is not a valid release of TensorFlow",
            remedy="Write --release 2.6, or a tag such as v2.4.4 or v1.12.0-rc0.",
        )
    return str(Release.parse(release))


def _named(name: str) -> dict[str, str]:
    """Look up a GPU by its name, and the source of its compute capability."""
    try:
        known = gpus.named(name)
    except gpus.AmbiguousGpu as several:
        raise RecipeError(
            f"Cards named {name!r} have one of the compute capabilities {several}",
            remedy="Ask the driver: nvidia-smi --query-gpu=compute_cap --format=csv; then write it "
            "as in --gpu 5.0.",
        ) from several
    if known is None:
        if maker := gpus.other_maker(name):
            raise RecipeError(
                f"{name!r} is a GPU of {maker}; tfwright has recipes for GPUs of NVIDIA only",
                remedy="For the CPU alone, leave out --gpu.",
            )
        meant = words.guess(name, gpus.names())
        raise RecipeError(
            f"No GPU of NVIDIA is known by the name {name!r}{meant}; the list is of "
            f"{gpus.published()}",
            remedy="Look up its compute capability at https://developer.nvidia.com/cuda-gpus, and "
            "write it as in --gpu 8.6.",
        )
    found = {"gpu": known.capability, "named": f"{name}: {gpus.source()}"}
    return found | ({"machine": known.machine} if known.machine else {})


def _of(host: Host) -> dict[str, str]:
    # The first GPU, which TensorFlow uses as well where no device is named.
    gpu = next((gpu.capability for gpu in host.gpus), "")
    return {"system": host.system, "machine": host.machine, "gpu": gpu}


def of_wheels(wanted: Wish, host: Host) -> Wish:
    """Return a wish about wheels that are built already: also glibc and CPU decide which load.

    What is not asked for is this host's, where the wish is about it.
    """
    if (wanted.system, wanted.machine) != (host.system, host.machine):
        return wanted
    return replace(
        wanted, cpu=wanted.cpu or _level_of(host), glibc=wanted.glibc or host.glibc.value
    )


def _level_of(host: Host) -> str:
    """Return what the host's CPU has at most; nothing where that could not be read."""
    if host.machine != "x86_64" or not host.processor.by:
        return ""
    has = host.processor.value.replace("avx512f", "avx512").split()
    # Every x86-64 CPU since 2006 has SSSE3, which is not among what is read.
    return next((level for level in reversed(LEVELS) if level in has), "ssse3")


def rank(recipes: Sequence[Recipe], wanted: Wish, host: Host) -> list[Candidate]:
    """Compare all recipes of TensorFlow with a wish, the nearest first.

    The recipes that fit have no differences.
    """
    found = list[tuple[Candidate, Release]]()
    for recipe in recipes:
        # The bundled demonstration fits every host, and is of no use to who wants TensorFlow.
        if recipe.source.url.startswith("bundled:") or recipe.source.interface == "own":
            continue
        differs = tuple(_differences(recipe, wanted, host))
        elsewhere = _elsewhere(recipe, wanted)
        verified = recipe.verified.until if recipe.verified else ""
        candidate = Candidate(recipe.name, recipe.summary, differs, elsewhere, verified)
        found.append((candidate, recipe.source.release))
    # The newest release first, among those that are equally near.
    found.sort(key=lambda pair: pair[1], reverse=True)
    return [candidate for candidate, _ in sorted(found, key=_distance)]


def _distance(pair: tuple[Candidate, Release]) -> tuple[bool, bool, int, int]:
    # A recipe for another system is never near, however few its differences are. Other GPUs can be
    # named in a recipe; one without CUDA has none to name.
    candidate, _ = pair
    differs = candidate.differs
    # Among those that fit, the one that was seen to build counts for more than the newest.
    proved = STAGES.index(candidate.verified) if candidate.verified and not differs else -1
    return (candidate.elsewhere, NO_CUDA in differs, len(differs), -proved)


def _elsewhere(recipe: Recipe, wanted: Wish) -> bool:
    return bool(wanted.system) and recipe.host.system not in {"any", wanted.system}


def _differences(recipe: Recipe, wanted: Wish, host: Host) -> Iterator[str]:
    table = recipe.host
    if _elsewhere(recipe, wanted):
        yield f"for {table.system}"
    if wanted.release and str(recipe.source.release) != wanted.release:
        yield f"TensorFlow {recipe.source.release}"
    if wanted.machine and table.machine not in {"any", wanted.machine}:
        yield f"for {table.machine}"
    if wanted.python and table.python not in {"any", wanted.python}:
        yield f"Python {table.python}"
    if wanted.cpu and recipe.verify.cpu and above(recipe.verify.cpu, wanted.cpu):
        yield f"needs a CPU with {recipe.verify.cpu}"
    yield from _gpu_differences(recipe, wanted)
    yield from _glibc_differences(recipe, wanted, host)


def above(level: str, most: str) -> bool:
    """Say whether one level of x86-64 CPUs asks for more than another."""
    return LEVELS.index(level) > LEVELS.index(most)


def _gpu_differences(recipe: Recipe, wanted: Wish) -> Iterator[str]:
    if not cuda.wanted(recipe):
        if wanted.cuda or wanted.gpu:
            yield NO_CUDA
        return
    if not (wanted.cuda or wanted.gpu):
        yield f"made for GPUs, with CUDA {cuda.version(recipe)}"
        return
    # Another CUDA can be installed, so it is a
    # difference and no reason to leave it out.
    if wanted.cuda and not is_of_line(recipe.host.cuda or "", wanted.cuda):
        yield f"CUDA {recipe.host.cuda}"
    built = cuda.capabilities(recipe)
    if wanted.gpu and not cuda.runs_on(built, wanted.gpu):
        text = f"code for {', '.join(built)} only"
        ptx = [cuda.capability(name) for name in recipe.verify.architectures if "compute" in name]
        if any(is_older(made_for, wanted.gpu) for made_for in ptx):
            text += ", and PTX, which the driver may compile for this GPU (not tried)"
        yield text


def _glibc_differences(recipe: Recipe, wanted: Wish, host: Host) -> Iterator[str]:
    """Compare with the glibc that the recipe promises."""
    # Without a promise, the wheel may need symbols of the glibc that it was linked with.
    if not wanted.glibc or recipe.host.system == "Darwin":
        return
    promised = recipe.verify.glibc
    needed = promised or host.glibc.value
    if not is_older(wanted.glibc, needed):
        return
    if promised:
        yield f"glibc {needed}"
    else:
        yield f"sets no limit for glibc; built here, it may need {needed}"


@dataclass(frozen=True)
class Need:
    """One thing that a new recipe would pin, and the source of that."""

    name: str
    value: str
    source: str


def needs(wanted: Wish) -> list[Need]:
    """Return what a new recipe for a wish would pin, for the newest TensorFlow that fits.

    The list is empty if no TensorFlow fits.
    """
    for release in KNOWN:
        if wanted.release and str(release) != wanted.release:
            continue
        python = compatibility.python(release)
        tested = tested_with(release)
        if wanted.python and not (python and python.holds(wanted.python)):
            continue
        toolkit = toolkit_for(wanted, tested)
        # A release that no CUDA fits is passed over: an older one may still fit.
        if toolkit or not (wanted.gpu or wanted.cuda):
            found = list(_tensorflow(release, python))
            if toolkit and tested:
                found += _cuda(toolkit, tested, wanted)
            found += _floor(wanted)
            return found
    return []


def exclusions(wanted: Wish) -> list[str]:
    """Say why no TensorFlow fits a wish: which parts exclude each other, and what is nearest.

    The list is empty if one fits.
    """
    if needs(wanted):
        return []
    if wanted.release and Release.parse(wanted.release) > KNOWN[0]:
        command = f"invoke new --release {wanted.release}@COMMIT"
        said = f"TensorFlow {wanted.release} is unknown, since the tables end with {KNOWN[0]}"
        return [f"{said}; '{command}' reads what it needs from its source tree"]
    return [*_refusals(wanted), *_nearest(wanted)]


def _refusals(wanted: Wish) -> Iterator[str]:
    """Say what a release, or any release, does not go with."""
    if not wanted.release:
        parts = ("python", "gpu", "cuda", "system")
        given = [part for part in parts if getattr(wanted, part)]
        for one, other in itertools.combinations(given, 2):
            alone = Wish(**{one: getattr(wanted, one), other: getattr(wanted, other)})
            if not needs(alone):
                yield f"no release goes with both {_part(wanted, one)} and {_part(wanted, other)}"
        return
    release = Release.parse(wanted.release)
    if release not in KNOWN:
        yield f"there is no TensorFlow {release} that recipes can be written for"
    python = compatibility.python(release)
    if wanted.python and not (python and python.holds(wanted.python)):
        yield f"TensorFlow {release} takes Python {python}, and not {wanted.python}"
    tested = tested_with(release)
    if (wanted.gpu or wanted.cuda) and toolkit_for(wanted, tested) is None:
        major = tested.cuda.partition(".")[0] if tested else ""
        rows = [row for row in compatibility.cudas() if is_of_line(row.version, major)]
        if not rows:
            yield f"TensorFlow {release} was tested with no CUDA that is known"
        elif wanted.cuda and not is_of_line(wanted.cuda, major):
            yield f"TensorFlow {release} is made for CUDA {major}, and not {wanted.cuda}"
        else:
            oldest, newest = rows[0].capabilities[0], rows[-1].capabilities[1]
            yield (
                f"CUDA {wanted.cuda or major} compiles for compute capabilities {oldest} to "
                f"{newest}, and not for {wanted.gpu}"
            )


def _part(wanted: Wish, part: str) -> str:
    return f"{_TITLES.get(part, '')}{getattr(wanted, part)}"


def _nearest(wanted: Wish) -> Iterator[str]:
    """Name the nearest release that fits the rest of a wish, or the rest without one part."""
    for part in ("release", "cuda", "python", "gpu"):
        if not getattr(wanted, part):
            continue
        rest = replace(wanted, **{part: ""})
        fitting = [release for release in KNOWN if needs(replace(rest, release=str(release)))]
        if wanted.release and part != "release":
            fitting = [release for release in fitting if str(release) == wanted.release]
        if fitting:
            asked = Release.parse(wanted.release) if wanted.release else KNOWN[0]
            near = min(fitting, key=lambda release: abs(KNOWN.index(release) - _place(asked)))
            what = f"without {_part(wanted, part)}"
            if part == "release":
                what = "the nearest release that fits"
            yield f"{what}: TensorFlow {near}"
            return


def _place(release: Release) -> int:
    return KNOWN.index(release) if release in KNOWN else 0


def tested_with(release: Release) -> compatibility.Tested | None:
    """Return the CUDA that a release was tested with."""
    for row in compatibility.tested():
        first, last = row.releases
        if first <= release <= last:
            return row
    return None


def toolkit_for(wanted: Wish, tested: compatibility.Tested | None) -> compatibility.Cuda | None:
    """Return the CUDA to build with.

    It is the one that was tested, or else the oldest of the same major version that serves.
    """
    if tested is None or not (wanted.gpu or wanted.cuda):
        return None
    # TensorFlow's code changes with the major version, and rarely with the minor one.
    major = version_numbers(tested.cuda)[0]
    rows = compatibility.cudas()
    alike = [row for row in rows if version_numbers(row.version)[0] == major]
    # The sort is stable, so the others stay in the order of their age.
    tested_first = sorted(alike, key=lambda row: row.version != tested.cuda)
    return next((row for row in tested_first if _serves(row, wanted)), None)


def _serves(row: compatibility.Cuda, wanted: Wish) -> bool:
    """Say whether a CUDA has the wanted version, compiles for the GPU, and runs on the system."""
    asked = not wanted.cuda or is_of_line(row.version, wanted.cuda)
    compiles = not wanted.gpu or is_within(wanted.gpu, *row.capabilities)
    # NVIDIA's last CUDA for macOS was 10.2.
    exists = wanted.system != "Darwin" or compatibility.mac(row.version) is not None
    return asked and compiles and exists


def _tensorflow(release: Release, python: compatibility.Range | None) -> Iterator[Need]:
    bazel = compatibility.bazel(release)
    tested = compatibility.tested_bazel(release)
    yield Need("TensorFlow", str(release), python.source if python else "")
    # What `invoke new` pins, unless the tree's own .bazelversion says another one.
    if tested and (bazel is None or bazel.holds(tested.version)):
        yield Need("Bazel", tested.version, tested.source)
    elif bazel:
        yield Need("Bazel", str(bazel), bazel.source)
    else:
        yield Need(
            "Bazel", "as .bazelversion of the tree says", "https://github.com/bazelbuild/bazelisk"
        )
    if python:
        yield Need("Python", str(python), python.source)


def _cuda(row: compatibility.Cuda, tested: compatibility.Tested, wanted: Wish) -> Iterator[Need]:
    value = row.version
    if value != tested.cuda:
        value += f" (tested with {tested.cuda})"
    yield Need("CUDA", value, tested.source)
    yield Need("cuDNN", range_text(*row.cudnn), row.source("cudnn"))
    mac = compatibility.mac(row.version) if wanted.system == "Darwin" else None
    if mac:
        yield from _mac(mac)
    else:
        driver, source = compatibility.driver(row, wanted.gpu)
        if gpus.jetson(wanted.gpu):
            yield Need("driver and CUDA", "those of the Jetson's JetPack", JETPACK)
        else:
            yield Need("driver", f"{driver} or later", source)
        yield Need("gcc", f"{row.gcc} or earlier", row.source("gcc"))
    if wanted.gpu:
        yield Need("compute capability", wanted.gpu, row.source("capabilities"))


def _mac(mac: compatibility.Mac) -> Iterator[Need]:
    """Yield what CUDA on a Mac needs instead of a driver for Linux and gcc."""
    yield Need("Xcode", f"{mac.xcode}, with Apple clang {mac.clang} or earlier", mac.why)
    yield Need("macOS", mac.macos, mac.why)
    yield Need(
        "patches",
        "for Apple's compiler and linker",
        "https://www.tensorflow.org/install/source#macos: no CUDA for macOS since 1.2",
    )


def _floor(wanted: Wish) -> Iterator[Need]:
    if wanted.glibc and wanted.system != "Darwin":
        yield Need("verify.glibc", f"{wanted.glibc}, built in an image that has no newer one", "")
