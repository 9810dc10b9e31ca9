"""What goes with what, as compatibility.toml has it: every answer comes with its source."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from tfwright import facts
from tfwright.documents.names import CpuLevel
from tfwright.documents.release import ExactRelease, Release

LAST_MAC_DRIVER = "10.13"
"""The macOS of it: https://www.nvidia.com/en-us/drivers/cuda/mac-driver-archive/"""
MAC_DRIVER = f"NVIDIA's CUDA driver, the last of which is for macOS {LAST_MAC_DRIVER}"
LAST_MAC_CUDA = Release(1, 1)
"""The last TensorFlow for CUDA on macOS: https://www.tensorflow.org/install/source#macos"""
MAC_CUDA = f"TensorFlow {LAST_MAC_CUDA} was the last that was made for CUDA on macOS"
NVSHMEM_13 = "3.3.20"
"""The first with archives for CUDA 13: redistrib_3.3.20.json at
https://developer.download.nvidia.com/compute/nvshmem/redist"""
TABLE = Path(__file__).with_suffix(".toml")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Range:
    """The versions that some releases of TensorFlow take; an empty bound is none."""

    least: str
    most: str
    source: str

    def __str__(self) -> str:
        if self.least and self.most:
            return self.least if self.least == self.most else f"{self.least} to {self.most}"
        return f"{self.least} or later" if self.least else f"{self.most} or earlier"

    def contains(self, version: str) -> bool:
        """Say whether a version is in the range."""
        return is_within(version, self.least, self.most)


@dataclass(frozen=True)
class Tested:
    """The CUDA and cuDNN that some releases of TensorFlow were tested with."""

    cuda: str
    cudnn: str
    source: str


@dataclass(frozen=True)
class TestedBazel:
    """The Bazel that some releases of TensorFlow were tested with."""

    version: str
    source: str


@dataclass(frozen=True)
class Cuda:
    """What one CUDA goes with."""

    version: str
    driver: str
    """The oldest driver for Linux that runs what it builds."""
    gcc: str
    """The newest."""
    capabilities: tuple[str, str]
    """The oldest and the newest GPUs that it compiles for."""
    cudnn: tuple[str, str]
    """The oldest and the newest line made for it."""
    lacks: tuple[str, ...] = ()
    """GPUs between the two that only a later CUDA compiles for."""

    def compiles_for(self, gpu: str) -> bool:
        """Say whether it compiles for a compute capability."""
        return is_within(gpu, *self.capabilities) and gpu not in self.lacks

    def source(self, column: Literal["driver", "gcc", "capabilities", "cudnn"]) -> str:
        """Say where one of these is from."""
        # NVIDIA moves its tables from page to page, so a source holds for a range of CUDAs.
        for row in facts.read(TABLE)["source"]:
            if row["of"] == column and is_within(self.version, *row["cuda"]):
                return str(row["source"])
        raise LookupError(column)


@dataclass(frozen=True)
class Mac:
    """What one CUDA for macOS goes with."""

    cuda: str
    clang: str
    """The newest of Apple's that its nvcc takes."""
    xcode: str
    """The newest that has such a clang."""
    macos: str
    source: str
    unconfirmed: bool = False
    """Whether the source could not be read when this was written down."""

    @property
    def why(self) -> str:
        """The source, and whether it was read."""
        if self.unconfirmed:
            return f"{self.source} (not confirmed: the page was not at hand)"
        return self.source


@dataclass(frozen=True)
class BuildCost:
    """What a build of TensorFlow from nothing took."""

    release: Release
    cuda: bool
    hours: float
    """Of processor time."""
    disk: int
    """Gigabytes (10^9 bytes) in build_out."""
    source: str

    def __str__(self) -> str:
        what = f"TensorFlow {self.release}{' with CUDA' if self.cuda else ''}"
        return f"{what} took {self.hours:g} hours of processor time and {self.disk} GB of disk"


@dataclass(frozen=True)
class Hermetic:
    """The CUDA that Bazel downloads for a release, where a recipe is silent."""

    cuda: str
    cudnn: str
    nvshmem: str
    clang: str
    """The clang for all but the kernels."""
    clang_downloaded: tuple[str, ...]
    """The machines for which Bazel downloads it as well."""
    sysroot: str
    """The glibc that it compiles against; empty if Bazel downloads none."""
    clang_architectures: tuple[str, ...]
    """What the configuration cuda_clang compiles for, whatever ./configure was answered."""
    cudas: tuple[str, ...]
    """The versions that a tree knows, the oldest first."""
    cudnns: tuple[str, ...]
    nvshmems: tuple[str, ...]
    """Empty where the tree is not known to use it."""
    source: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that name a version, with what .bazelrc says; empty is any."""
        return {
            "HERMETIC_CUDA_VERSION": self.cuda,
            "HERMETIC_CUDNN_VERSION": self.cudnn,
            "HERMETIC_NVSHMEM_VERSION": self.nvshmem,
            "HERMETIC_NCCL_VERSION": "",
        }

    def compiler_for(self, machine: str) -> str:
        """Return the path of the host's clang, as upstream has it; empty if Bazel brings one."""
        return "" if machine in self.clang_downloaded else f"/usr/lib/llvm-{self.clang}/bin/clang"

    def beyond(self, glibc: str, machine: str) -> tuple[str, str]:
        """Say why a wheel cannot load on an old glibc, and what to do; empty if it can."""
        if not glibc or machine not in self.clang_downloaded or not is_older(glibc, self.sysroot):
            return "", ""
        what = f"Bazel's own compiler links against glibc {self.sysroot}, and the wheel is to load "
        remedy = 'Add "--config=clang_local" to compile.flags, and build on a system with that '
        return f"{what}on {glibc}", f"{remedy}glibc, or verify refuses the wheel."

    def nvshmem_for(self, cuda: str) -> str:
        """Return the listed NVSHMEM that a CUDA needs instead of the tree's default, if any."""
        fitting = (one for one in self.nvshmems if not is_older(one, NVSHMEM_13))
        return "" if is_older(cuda, "13") else next(fitting, "")

    def lacks(self, cuda: str, cudnn: str) -> str:
        """Say which versions its lists do not have; empty if they have all."""
        wanted = [("CUDA", cuda, self.cudas), ("cuDNN", cudnn, self.cudnns)]
        if self.nvshmems and not is_older(cuda, "13") and not self.nvshmem_for(cuda):
            wanted.append(("NVSHMEM", NVSHMEM_13, self.nvshmems))
        return " and ".join(
            f"no {name} {line} (it ends with {listed[-1]})"
            for name, line, listed in wanted
            if line and not any(is_of_line(version, line) for version in listed)
        )


# A wish that nothing fits is held against every release and CUDA, many times over.
@functools.cache
def _row_of(kind: str, release: Release | ExactRelease, fork: str = "") -> dict[str, Any] | None:
    """Return the row of a release, without what says which releases it is of."""
    version = ExactRelease(*release)
    for row in facts.read(TABLE)[kind]:
        if version.is_within(*row["releases"]) and row.get("fork", "") == fork:
            found = {key: row[key] for key in row if key not in {"releases", "fork"}}
            return found | {"source": row["source"].format(release=version.line)}
    return None


def _typed_row(
    model: type[Row], kind: str, release: Release | ExactRelease, fork: str = ""
) -> Row | None:
    """Return the same as an object."""
    row = _row_of(kind, release, fork)
    return model(**facts.freeze(row)) if row else None


def hermetic(release: Release) -> Hermetic | None:
    """Return what holds for a release; None for one that takes the CUDA of the host.

    What is known last counts for all later ones: their trees have lists of their own.
    """
    last = max(Release.parse(row["releases"][1]) for row in facts.read(TABLE)["hermetic"])
    return _typed_row(Hermetic, "hermetic", min(release, last))


def clang_configuration(release: Release) -> tuple[str, ...]:
    """Return the GPUs that cuda_clang of a release's .bazelrc sets once more, with TensorRT.

    Empty where it sets neither. What Bazel downloads has `Hermetic.clang_architectures`.
    """
    row = _row_of("clang_configuration", release)
    return tuple(row["architectures"]) if row else ()


def build_cost(release: Release, *, cuda: bool) -> BuildCost:
    """Return the measured build that is nearest to a release: the last before it, or the first."""
    known = [
        BuildCost(**row | {"release": Release.parse(row["release"])})
        for row in facts.read(TABLE)["build_cost"]
        if row["cuda"] is cuda
    ]
    return max(
        (cost for cost in known if cost.release <= release),
        key=lambda cost: cost.release,
        default=known[0],
    )


def cpu_level(flag: str) -> str:
    """Return what code by a compiler's flag, as ``-march=haswell``, may need of an x86-64 CPU.

    It is one of CpuLevel, or empty for a flag that is not known to need more than every CPU has.
    """
    name = flag.removeprefix("-march=").removeprefix("-m")
    return next(
        (row["level"] for row in facts.read(TABLE)["cpu_flags"] if name in row["names"]), ""
    )


LEVELS: tuple[str, ...] = get_args(CpuLevel)
"""What code may need of an x86-64 CPU, each with all that come before it."""


def is_above(level: str, most: str) -> bool:
    """Say whether one of LEVELS asks for more than another."""
    return LEVELS.index(level) > LEVELS.index(most)


def clang_capability(version: str) -> str:
    """Return the newest compute capability that a clang compiles for; empty if it is unknown."""
    return next(
        (row["newest"] for row in facts.read(TABLE)["clang"] if row["version"] == version), ""
    )


def clang_for(capability: str) -> str:
    """Return the oldest clang that compiles for a compute capability; empty if none is known."""
    rows = facts.read(TABLE)["clang"]
    fitting = (row["version"] for row in rows if not is_older(row["newest"], capability))
    return next(fitting, "")


def bazel(release: Release | ExactRelease) -> Range | None:
    """Return the Bazels that ./configure of a release takes."""
    return _typed_row(Range, "bazel", release)


def python(release: Release, fork: str = "") -> Range | None:
    """Return the Pythons that a release was tested with; that of a fork, ``nv``, has its own."""
    return _typed_row(Range, "python", release, fork) or _typed_row(Range, "python", release)


def official_macos(release: Release, machine: str) -> str:
    """Return the oldest macOS of a release's official wheels; empty if there are none."""
    row = _row_of("official_macos", release)
    return str(row.get(machine, "")) if row else ""


def tested_bazel(release: Release) -> TestedBazel | None:
    """Return the Bazel that a release was tested with."""
    return _typed_row(TestedBazel, "tested_bazel", release)


def unusual_bazel(release: ExactRelease, version: str, *, newer: bool) -> tuple[str, str, bool]:
    """Return which Bazel a release takes instead of a version, and the source; empty if it fits.

    Last whether ./configure refuses the version; an answer may let it take a `newer` one. Where it
    compares nothing, as from 2.10 on, a Bazel fits that is of the major version that was tested.
    """
    if known := bazel(release):
        if known.contains(version):
            return "", "", False
        return str(known), known.source, not (newer and is_within(version, known.least, ""))
    tested = tested_bazel(release.line)
    if tested is None or is_of_line(version, tested.version.partition(".")[0]):
        return "", "", False
    return f"{tested.version}, with which it was tested", tested.source, False


def bazel_copies() -> list[str]:
    """Return the versions of Bazel that a second registry keeps, the oldest first."""
    return [version for row in facts.read(TABLE)["bazel_copies"] for version in row["versions"]]


def newest_gcc(release: Release) -> tuple[str, str]:
    """Return the newest gcc that a release compiles with, and the source; empty if unknown."""
    row = _row_of("gcc", release)
    return (row["most"], row["source"]) if row else ("", "")


def gcc(release: Release, row: Cuda) -> tuple[str, str]:
    """Return the newest gcc that a CUDA takes and a release compiles with, and why."""
    most, why = newest_gcc(release)
    if most and is_newer(row.gcc, most):
        return most, f"the newest that this release compiles with: {why}"
    return row.gcc, f"the newest for this CUDA: {row.source('gcc')}"


def tested_with(release: Release) -> Tested | None:
    """Return the CUDA that a release was tested with."""
    return _typed_row(Tested, "tested", release)


@functools.cache
def cudas() -> tuple[Cuda, ...]:
    """Return what is known of each CUDA, the oldest first."""
    return tuple(Cuda(**facts.freeze(row)) for row in facts.read(TABLE)["cuda"])


def cudas_for(gpu: str) -> list[str]:
    """Return the versions of CUDA that compile for a compute capability, the oldest first."""
    return [row.version for row in cudas() if row.compiles_for(gpu)]


def cuda(version: str) -> Cuda | None:
    """Return what a CUDA goes with, by as much of its version as is given; None if none is."""
    if not version:
        return None
    return next((row for row in cudas() if is_of_line(version, row.version)), None)


def cuda_headers(release: Release) -> list[tuple[str, str]]:
    """Return the headers without which ./configure of a release finds no CUDA, each with a source.

    They are in different packages of NVIDIA's and of distributions.
    """
    version = ExactRelease(*release)
    rows = facts.read(TABLE)["cuda_headers"]
    fitting = [row for row in rows if version.is_within(*row["releases"])]
    return [(name, row["source"]) for row in fitting for name in row["names"]]


def mac(version: str) -> Mac | None:
    """Return what a CUDA for macOS goes with."""
    for row in facts.read(TABLE)["mac"]:
        if is_of_line(version, row["cuda"]):
            return Mac(**row)
    return None


def has_no_driver(macos: str) -> bool:
    """Say whether a macOS came after NVIDIA's last driver for Macs."""
    return is_newer(macos, LAST_MAC_DRIVER) and not is_of_line(macos, LAST_MAC_DRIVER)


class Drivers(Range):
    """NVIDIA's drivers for Linux that run what a CUDA builds on a GPU.

    The last of them, which knows the GPU, is empty while NVIDIA goes on with it.
    """

    @property
    def exist(self) -> bool:
        """Whether the CUDA came before the last driver of the GPU."""
        return not (self.most and is_newer(self.least, self.most))

    def misfit(self, has: str) -> str:
        """Say why a driver is none of them; empty for one that is, or that is not known.

        ``535`` stands for all of its line.
        """
        if not self.exist:
            return f"needs driver {self.least}, and {self.most} is the last for this GPU"
        too_old = is_older(has, self.least) and not is_of_line(has, self.least)
        too_new = self.most and is_newer(has, self.most)
        return f"needs driver {self}, and {has} is there" if has and (too_old or too_new) else ""


def _generation(gpu: str) -> dict[str, Any]:
    rows = facts.read(TABLE)["generation"]
    return next((row for row in rows if gpu in row["capabilities"]), {})


def last_cuda(gpu: str) -> str:
    """Return the CUDA of the last JetPack of a Jetson; empty for one that still gets newer ones."""
    return str(_generation(gpu).get("cuda", ""))


def drivers(row: Cuda | None, gpu: str, stated: str = "") -> Drivers:
    """Return the drivers for what a CUDA builds, on a compute capability where one is given.

    A recipe may have `stated` the oldest.
    """
    least, source = (row.driver, row.source("driver")) if row else ("", "")
    if stated:
        least, source = stated, "the recipe"
    known = _generation(gpu)
    first, last = known.get("first", ""), known.get("last", "")
    # A GPU that is newer than its CUDA needs a driver that knows it.
    if is_older(least, first):
        least, source = first, known["source"]
    return Drivers(least, last, f"{source}; {known['source']}" if last and source else source)


_LONGEST = 18
"""Digits of a number that count."""


@functools.lru_cache(4096)
def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version's leading numbers: ``10.1.243`` is (10, 1, 243)."""
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    # Cut: Python reads no number of more than 4,300 digits, and a recipe may have one.
    parts = found[0].split(".") if found else []
    return tuple(int(part[:_LONGEST]) for part in parts)


def is_of_line(version: str, line: str) -> bool:
    """Say whether a version belongs to a line: 10.1.243 is of 10.1, and 10 of 10.0.

    No version is of no line.
    """
    # Not strict: the shorter of the two decides how far they are compared.
    pairs = zip(version_numbers(version), version_numbers(line), strict=False)
    return bool(version) and all(mine == its for mine, its in pairs)


def is_older(version: str, least: str) -> bool:
    """Say whether a version is before another."""
    return version_numbers(version) < version_numbers(least)


def is_newer(version: str, most: str) -> bool:
    """Say whether a version is past a line: gcc 7.5 is not past 7, gcc 8.1 is."""
    last = version_numbers(most)
    return version_numbers(version)[: len(last)] > last


def is_within(version: str, least: str, most: str) -> bool:
    """Say whether a version lies between two, both included; an empty bound is none."""
    return not (least and is_older(version, least)) and not (most and is_newer(version, most))


def range_text(least: str, most: str) -> str:
    """Say a range; one that ends with its own major version has no end yet."""
    return f"{least} or later" if is_of_line(least, most) else f"{least} to {most}"


BOUNDS = Path(__file__).with_name("bounds.toml")


def package_bounds(version: str, gpu: str = "") -> list[str]:
    """Return what pip is to be told about packages for a TensorFlow, as ``protobuf<3.21``.

    With the compute capability of a `gpu` also about those of NVIDIA that serve it.
    """
    # Every build imports this module, and few ask this.
    from packaging.specifiers import SpecifierSet

    # Nightly wheels are pre-releases, and need the same bounds as their release.
    return [
        line
        for row in facts.read(BOUNDS)["bounds"]
        if SpecifierSet(row["tensorflow"]).contains(version, prereleases=True)
        and ("older_gpu" not in row or (gpu and is_older(gpu, row["older_gpu"])))
        for line in row["packages"]
    ]


DISTRIBUTIONS = Path(__file__).with_name("distributions.toml")
Kind = Literal["gcc", "clang", "python"]


def packaged_versions(release: str, kind: Kind) -> list[str] | None:
    """Return the versions of a program that a distribution packages; None for an unknown one.

    `release` is the name as /etc/os-release has it: ``Debian GNU/Linux 12 (bookworm)``.
    """
    row = _distribution(release)
    return None if row is None else list(row[kind])


def packaged_drivers(release: str) -> dict[str, str]:
    """Return the package of each line of NVIDIA's driver, the oldest first; none if unknown."""
    row = _distribution(release)
    return dict(row["driver"]) if row else {}


def debian_name(suite: str) -> str:
    """Return how a suite of Debian is named in file names, as ``debian12``; empty if unknown."""
    rows = facts.read(DISTRIBUTIONS).items()
    return next(
        ("debian" + name.split()[-1] for name, row in rows if row.get("suite") == suite), ""
    )


def _distribution(release: str) -> dict[str, Any] | None:
    return next(
        (row for name, row in facts.read(DISTRIBUTIONS).items() if release.startswith(name)), None
    )
