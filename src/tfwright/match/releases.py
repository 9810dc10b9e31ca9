"""Which TensorFlow can be built for a wish, and why none can."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tfwright.documents.release import Release
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_newer, is_of_line, is_older, range_text, version_numbers
from tfwright.match.wish import ARM, X86, Wish

KNOWN = [
    Release(major, minor)
    for major, first, last in ((2, 0, 21), (1, 0, 15), (0, 11, 12))
    for minor in range(last, first - 1, -1)
]
"""Releases of TensorFlow that recipes can be written for, the newest first."""
OLDEST_CAPABILITY = "3.0"
"""The oldest GPUs that TensorFlow has code for."""


def fitting_releases(wanted: Wish) -> list[Release]:
    """Return the releases that go with a wish, the newest first."""
    asked = Release.parse(wanted.release) if wanted.release else None
    return [
        release
        for release in KNOWN
        if asked in {None, release} and not any(refusals(release, wanted))
    ]


def barriers(wanted: Wish) -> Iterator[str]:
    """Say what of a wish no release goes with."""
    if wanted.system == "Windows":
        yield "tfwright builds on Linux (in WSL 2 too: --os Linux) and macOS, and not on Windows"
    if wanted.machine.lower() not in {"", *X86, *ARM}:
        # https://github.com/bazelbuild/bazel/releases
        sentence = f"Bazel is released for x86-64 and 64-bit ARM only, and not for {wanted.machine}"
        board = "; where the processor has 64 bits, as in a Raspberry Pi 3, use a 64-bit system"
        yield sentence + (board if wanted.machine.startswith("armv") else "")
    if wanted.glibc == "none":
        yield (
            "TensorFlow is built for systems with glibc, and not with musl; use such a system, "
            "as an image of Debian in a container"
        )


def refusals(release: Release, wanted: Wish) -> Iterator[str]:
    """Say what of a wish a release does not go with."""
    yield from barriers(wanted)
    python = compatibility.python(release)
    if wanted.python and not (python and python.contains(wanted.python)):
        yield f"TensorFlow {release} takes Python {python}, and not {wanted.python}"
    oldest = _oldest_macos([release], wanted.machine) if wanted.macos else ""
    if is_older(wanted.macos, oldest):
        yield f"TensorFlow {release} has wheels for macOS {oldest} or later, and not {wanted.macos}"
    if (wanted.gpu or wanted.cuda) and compatibility.has_no_driver(wanted.macos):
        yield f"GPUs need {compatibility.MAC_DRIVER}"
    elif (wanted.gpu or wanted.cuda) and not toolkit_for(wanted, release):
        yield from _cuda_refusal(release, wanted)


def _cuda_refusal(release: Release, wanted: Wish) -> Iterator[str]:
    """Say why no CUDA of a release serves."""
    tested, tree = compatibility.tested_with(release), compatibility.hermetic(release)
    if not tested:
        yield f"TensorFlow {release} was tested with no CUDA that is known"
        return
    made_for = f"TensorFlow {release} is made for CUDA {tested.cuda.partition('.')[0]}"
    if rows := [row for row in _buildable_cudas(release) if is_of_line(row.version, wanted.cuda)]:
        # One that compiles for the GPU says more than the one that was tested.
        row = next((row for row in rows if row.compiles_for(wanted.gpu)), rows[0])
        yield f"{made_for}; {misfit(row, wanted)}"
    elif unknown := _unknown_cuda(wanted.cuda):
        yield unknown
    else:
        listed = f", its tree lists those to {tree.cudas[-1]}" if tree else ""
        yield f"{made_for}{listed}, and not {wanted.cuda}"
        own = replace(wanted, cuda="")
        if wanted.gpu and not toolkit_for(own, release):
            yield from _cuda_refusal(release, own)


def _unknown_cuda(cuda: str) -> str:
    """Say why the tables have no CUDA of a version; empty if they have one, or none is wanted."""
    known = [row.version for row in compatibility.cudas()]
    if not cuda or any(is_of_line(version, cuda) for version in known):
        return ""
    if is_older(cuda, known[0]):
        return f"CUDA {cuda} is unknown: the tables begin with {known[0]}"
    if is_older(known[-1], cuda):
        return f"CUDA {cuda} is unknown: the tables end with {known[-1]}"
    # https://developer.nvidia.com/cuda-toolkit-archive
    shown = "nvidia-smi shows the newest CUDA that the driver runs"
    return f"NVIDIA made no toolkit of CUDA {cuda}; {shown}"


def exclusions(wanted: Wish) -> list[str]:
    """Say why no TensorFlow fits a wish: which parts exclude each other, and what is nearest.

    The list is empty if one fits.
    """
    if fitting_releases(wanted):
        return []
    release = Release.parse(wanted.release) if wanted.release else None
    if release not in KNOWN and (unknown := list(_beyond_tables(wanted))):
        return unknown
    if driver_misfit := compatibility.drivers(None, wanted.gpu).misfit(wanted.driver):
        found = [f"{wanted.label('gpu')} {driver_misfit}"]
    elif release in KNOWN:
        found = list(refusals(release, wanted))
        # Another release alone does not help where the rest excludes itself.
        found += (
            _conflicts(rest) if not fitting_releases(rest := replace(wanted, release="")) else []
        )
    elif release:
        found = [f"there is no TensorFlow {release} that recipes can be written for"]
    else:
        found = _conflicts(wanted)
    return list(dict.fromkeys((*found, *_nearest_release(wanted))))


def _conflicts(wanted: Wish) -> list[str]:
    """Name the parts of a wish that exclude each other, or what one of them alone excludes."""
    parts = ("python", "gpu", "cuda", "driver", "system", "machine", "glibc", "macos")
    asked_parts = [name for name in parts if vars(wanted)[name]]
    alone = [wanted.only([name]) for name in asked_parts]
    if lacking := [one for one in alone if not fitting_releases(one)]:
        return [refusal for one in lacking for refusal in refusals(KNOWN[0], one)]
    sizes = range(2, len(asked_parts) + 1)
    groups = (names for size in sizes for names in itertools.combinations(asked_parts, size))
    conflicts = [names for names in groups if not fitting_releases(wanted.only(names))]
    # Whatever contains two that exclude each other says no more than those two.
    conflicts = [names for names in conflicts if len(names) == len(conflicts[0])]
    both = "both " if conflicts and len(conflicts[0]) == 2 else ""  # noqa: PLR2004 a pair
    return [
        f"no release goes with {both}{' and '.join(map(wanted.label, names))}"
        f"{_python_range(wanted, names)}"
        for names in conflicts
    ]


def _python_range(wanted: Wish, names: Sequence[str]) -> str:
    """Say which Pythons go with all but the Python of the named parts of a wish."""
    if "python" not in names:
        return ""
    releases = fitting_releases(wanted.only(name for name in names if name != "python"))
    ranges = [known for release in releases if (known := compatibility.python(release))]
    least = min((known.least for known in ranges), key=version_numbers)
    most = max((known.most for known in ranges), key=version_numbers)
    return f", which goes with Python {least} to {most}"


def _beyond_tables(wanted: Wish) -> Iterator[str]:
    """Say which parts of a wish lie behind the end of a table: they may exist."""
    newest = KNOWN[0]
    if wanted.release and Release.parse(wanted.release) > newest:
        command = f"invoke new --release {wanted.release}@COMMIT"
        yield (
            f"TensorFlow {wanted.release} is unknown, since the tables end with {newest}; "
            f"'{command}' reads what it needs from its source tree"
        )
    python = compatibility.python(newest)
    if wanted.python and python and is_older(python.most, wanted.python):
        yield (
            f"Python {wanted.python} is unknown: the newest that a release to {newest} takes is "
            f"{python.most}; tf-nightly may have a wheel for it"
        )
    oldest = _oldest_macos(KNOWN, wanted.machine) if wanted.macos else ""
    if is_older(wanted.macos, oldest):
        yield f"macOS {wanted.macos} is unknown: the oldest wheels are for macOS {oldest}"
    last = compatibility.cudas()[-1]
    if unknown_cuda := _unknown_cuda(wanted.cuda):
        yield unknown_cuda
    if wanted.gpu and is_older(last.capabilities[1], wanted.gpu):
        yield (
            f"GPUs of compute capability {wanted.gpu} are unknown: the tables end with "
            f"{last.capabilities[1]}"
        )


def _oldest_macos(releases: Sequence[Release], machine: str) -> str:
    """Return the oldest macOS that official wheels of some releases are for; empty without any."""
    machines = (machine,) if machine else ("x86_64", "arm64")
    pairs = itertools.product(releases, machines)
    found = {compatibility.official_macos(*pair) for pair in pairs} - {""}
    return min(found, key=version_numbers, default="")


def _nearest_release(wanted: Wish) -> Iterator[str]:
    """Name the nearest release that fits the rest of a wish, or the rest without some parts."""
    order = ("release", "cuda", "python", "driver", "gpu")
    asked_parts = [name for name in order if vars(wanted)[name]]
    sizes = range(1, len(asked_parts) + 1)
    for names in (names for size in sizes for names in itertools.combinations(asked_parts, size)):
        if found := fitting_releases(replace(wanted, **dict.fromkeys(names, ""))):
            # With --release, the list is long only where that is what is left out.
            asked = Release.parse(wanted.release) if wanted.release else KNOWN[0]
            place = KNOWN.index(asked) if asked in KNOWN else 0
            near = min(found, key=lambda release: abs(KNOWN.index(release) - place))
            others = " and ".join(wanted.label(name) for name in names if name != "release")
            dropped = f"if you drop {others}, " if others else ""
            yield f"{dropped}the nearest release that fits is TensorFlow {near}"
            return


@functools.cache
def _buildable_cudas(release: Release) -> list[compatibility.Cuda]:
    """Return the CUDAs that a release can be built with: the one that was tested, then by age.

    They are of the major version that was tested, or among those that Bazel may download.
    """
    tested, tree = compatibility.tested_with(release), compatibility.hermetic(release)
    if tested is None:
        return []
    # TensorFlow's code changes with the major version, and rarely with the minor one.
    lines = (tested.cuda.partition(".")[0], *(tree.cudas if tree else ()))
    rows = compatibility.cudas()
    alike = [row for row in rows if any(is_of_line(row.version, line) for line in lines)]
    # The sort is stable, so the others stay in the order of their age.
    return sorted(alike, key=lambda row: row.version != tested.cuda)


def toolkit_for(wanted: Wish, release: Release) -> compatibility.Cuda | None:
    """Return the CUDA to build a release with; None if none serves, or none is wanted."""
    if not (wanted.gpu or wanted.cuda):
        return None
    rows = (row for row in _buildable_cudas(release) if is_of_line(row.version, wanted.cuda))
    return next((row for row in rows if not misfit(row, wanted)), None)


def misfit(row: compatibility.Cuda, wanted: Wish) -> str:
    """Say why a CUDA does not serve GPU, system and driver of a wish; empty if it does."""
    gpu = wanted.gpu
    if gpu and is_older(gpu, OLDEST_CAPABILITY):
        return f"TensorFlow has code for compute capability {OLDEST_CAPABILITY} and later"
    if gpu and not row.compiles_for(gpu):
        fitting = compatibility.cudas_for(gpu)
        others = fitting and f", for which CUDA {range_text(fitting[0], fitting[-1])} compiles"
        return (
            f"CUDA {row.version} compiles for {'some of the ' if row.lacks else ''}compute "
            f"capabilities {' to '.join(row.capabilities)}, and not for {gpu}{others or ''}"
        )
    if wanted.system == "Darwin":
        made = compatibility.mac(row.version)
        return "" if made else f"NVIDIA made no CUDA {row.version} for macOS; the last one was 10.2"
    last = compatibility.last_cuda(gpu)
    if last and is_newer(row.version, last):
        return f"the last JetPack for {gpu} has CUDA {last}"
    driver_misfit = compatibility.drivers(row, gpu).misfit(wanted.driver)
    return f"CUDA {row.version} {driver_misfit}" if driver_misfit else ""
