"""What a host has that a recipe could care about, each with what was run or read to know it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import cuda, machine, nvidia, pythons, toolchain
from tfwright.host.place import NOTHING, Seen
from tfwright.host.probes import Host
from tfwright.progress import STAGES


@dataclass(frozen=True)
class Fact:
    """One thing that was looked for."""

    name: str
    seen: Seen
    decides: bool = False
    """Whether it can change the wheel's bytes."""


def take(recipe: Recipe, host_file: HostFile, host: Host) -> list[Fact]:
    """Look at everything."""
    return [
        *_machine(recipe, host_file, host),
        *_programs(recipe, host_file, host),
        *_nvidia(recipe, host_file, host),
        *_surroundings(host),
    ]


def _machine(recipe: Recipe, host_file: HostFile, host: Host) -> Iterator[Fact]:
    if image := recipe.host.image:
        named = f"{image.name}@{image.digest[:19]}…"
        yield Fact("image", Seen(named, "the recipe"), decides=True)
    disk = host.disk(host_file.build_out)
    yield Fact("system", Seen(str(host), "uname -sm"), decides=True)
    yield Fact("release", host.release)
    yield Fact("glibc", host.glibc, decides=True)
    yield Fact("instruction sets", host.processor)
    yield Fact("memory", _gib(host.memory))
    yield Fact("swap", _gib(machine.swap(host.place)))
    yield Fact("build_out", Seen(str(disk), disk.by))


def _programs(recipe: Recipe, host_file: HostFile, host: Host) -> Iterator[Fact]:
    place = host.place
    version = recipe.host.python
    interpreter = pythons.find(version, host_file, place)
    yield Fact("compiler", host.compiler, decides=True)
    if host.system == "Darwin":
        yield Fact("Xcode", host.xcode, decides=True)
    where = NOTHING
    if version == "any":
        # It differs from host to host.
        where = Seen("the one that runs tfwright", "sys.base_prefix")
    elif interpreter:
        where = Seen(place.shown(interpreter), f"{place.shown(interpreter)} -c …")
    yield Fact(f"Python {version}", where, decides=True)
    # Builds that take any Python bring what they need with them.
    parts = NOTHING
    if interpreter and version != "any":
        parts = pythons.parts(interpreter, place)
    yield Fact("  with", parts)
    # It brings the sources, whose commit decides what they are.
    yield Fact("git", host.git)
    yield Fact("Bazel", toolchain.bazel(place))


def _nvidia(recipe: Recipe, host_file: HostFile, host: Host) -> Iterator[Fact]:
    place = host.place
    toolkit = cuda.toolkit(recipe, host_file)
    prefixes = cuda.prefixes(recipe, host_file)
    # A CUDA that this recipe does not use decides nothing about its wheel.
    uses = cuda.needed(recipe) and recipe.host.system in {host.system, "any"}
    # A line for each witness: where they disagree, two CUDAs are mixed.
    for seen in nvidia.cuda(place, toolkit) or [NOTHING]:
        yield Fact("CUDA", seen, decides=uses)
    ceiling = nvidia.ceiling(place, toolkit)
    if ceiling.gcc or ceiling.clang:
        limits = f"gcc to {ceiling.gcc}, clang before {ceiling.clang}"
        yield Fact("  takes", Seen(limits, ceiling.by))
    for part, library in nvidia.LIBRARIES.items():
        yield Fact(library.title, nvidia.library(place, part, prefixes), decides=uses)
    # The driver only runs what was built; nvcc compiles without one.
    yield Fact("driver", host.driver)
    for gpu in host.gpus:
        yield Fact("GPU", Seen(str(gpu), gpu.by))
    yield Fact("nouveau", nvidia.nouveau(place))


def _surroundings(host: Host) -> Iterator[Fact]:
    if host.system == "Darwin":
        yield Fact("integrity protection", nvidia.protection(host.place))
    for name, variables in (
        ("proxies", toolchain.PROXIES),
        ("certificates", toolchain.AUTHORITIES),
        ("library paths", toolchain.LIBRARY_PATHS),
    ):
        # No program in a container gets the caller's.
        if variables is toolchain.LIBRARY_PATHS and host.place.enclosed:
            continue
        yield Fact(name, toolchain.variables(host.place, variables))


def _gib(size: Seen) -> Seen:
    """Return bytes as people say them."""
    if not size.value.isdigit():
        return size
    return Seen(f"{int(size.value) / machine.GIB:.1f} GiB", size.by)


@dataclass(frozen=True)
class Finding:
    """What was found, what is wanted instead, why, and what to do about it."""

    found: str
    """As short as it can be said: ``no Python 3.6``; also a cell of `invoke recipes`."""
    wanted: str
    remedy: str
    """Commands, one a line, where there are some; else a sentence."""
    blocks: str = ""
    """The first stage that cannot run because of it; empty for something worth knowing only."""
    why: str = ""
    """Where the rule is from: an address, a file of this host, or the recipe when empty."""
    lasting: bool = False
    """Whether it is so whatever is done on this host, such as its kind of machine."""

    def __str__(self) -> str:
        return f"{self.found}; wanted: {self.wanted}"

    def stops(self, until: str) -> bool:
        """Say whether a build up to the stage `until` would run into it."""
        return bool(self.blocks) and STAGES.index(self.blocks) <= STAGES.index(until)


@dataclass(frozen=True)
class HostComparison:
    """A recipe, and the host on which it is to be built."""

    recipe: Recipe
    host_file: HostFile
    host: Host


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort by the stage that is blocked, the earliest first, notes last.

    What cannot be changed on this host comes before all: there is no use in mending the rest.
    """

    def place(finding: Finding) -> tuple[bool, int]:
        # The sort is stable: within a stage the order of the requirements stays.
        blocks = STAGES.index(finding.blocks) if finding.blocks else len(STAGES)
        return not finding.lasting, blocks

    return sorted(findings, key=place)
