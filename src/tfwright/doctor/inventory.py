"""What a host has that a recipe could care about, each with what was run or read to know it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.facts import compatibility
from tfwright.host import cuda, hermetic, machine, nvidia, pythons, toolchain
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


@dataclass(frozen=True)
class HostComparison:
    """A recipe, and the host on which it is to be built."""

    recipe: Recipe
    host_file: HostFile
    host: Host

    @cached_property
    def places(self) -> cuda.CudaPlaces:
        """Where CUDA lies."""
        return cuda.CudaPlaces(self.recipe, self.host_file)

    @cached_property
    def downloads(self) -> compatibility.Hermetic | None:
        """The CUDA that Bazel downloads for the commit."""
        return hermetic.downloads(self.recipe, self.host_file)

    @cached_property
    def cuda_versions(self) -> list[Seen]:
        """The version of the CUDA that is there, as each witness has it; nvcc is started once."""
        return nvidia.cuda(self.host.place, self.places.toolkit)


class HostInventory(HostComparison):
    """What there is on the host."""

    def facts(self) -> list[Fact]:
        """Look at everything."""
        return [*self._machine(), *self._programs(), *self._nvidia(), *self._environment()]

    def _machine(self) -> Iterator[Fact]:
        host = self.host
        if image := self.recipe.host.image:
            yield Fact("image", Seen(image.shown, "the recipe"), decides=True)
        disk = host.disk(self.host_file.build_out)
        yield Fact("system", Seen(str(host), "uname -sm"), decides=True)
        yield Fact("release", host.release)
        yield Fact("glibc", host.glibc, decides=True)
        yield Fact("instruction sets", host.processor)
        yield Fact("memory", _in_gib(host.memory))
        yield Fact("swap", _in_gib(machine.swap(host.place)))
        yield Fact("build_out", Seen(str(disk), disk.by))

    def _programs(self) -> Iterator[Fact]:
        place, version = self.host.place, self.recipe.host.python
        interpreter = pythons.find(version, self.host_file, place)
        yield Fact("compiler", self.host.compiler, decides=True)
        if self.host.system == "Darwin":
            yield Fact("Xcode", self.host.xcode, decides=True)
        where = parts = NOTHING
        if version == "any":
            # It differs from host to host. Builds that take any Python bring what they need.
            where = Seen("the one that runs tfwright", "sys.base_prefix")
        elif interpreter:
            where = Seen(place.shown_path(interpreter), f"{place.shown_path(interpreter)} -c …")
            parts = pythons.installed_parts(interpreter, place)
        yield Fact(f"Python {version}", where, decides=True)
        yield Fact("  with", parts)
        # It brings the sources, whose commit decides what they are.
        yield Fact("git", self.host.git)
        yield Fact("Bazel", toolchain.bazel(place))

    def _nvidia(self) -> Iterator[Fact]:
        place, toolkit = self.host.place, self.places.toolkit
        # A CUDA that this recipe does not use decides nothing about its wheel.
        uses = cuda.needs_toolkit(self.recipe) and self.recipe.host.system in {
            self.host.system,
            "any",
        }
        # A line for each witness: where they disagree, two CUDAs are mixed.
        for seen in self.cuda_versions or [NOTHING]:
            yield Fact("CUDA", seen, decides=uses)
        ceiling = nvidia.ceiling(place, toolkit)
        if ceiling.gcc or ceiling.clang:
            limits = f"gcc to {ceiling.gcc}, clang before {ceiling.clang}"
            yield Fact("  takes", Seen(limits, ceiling.by))
        for part, library in nvidia.LIBRARIES.items():
            seen = nvidia.library(place, part, self.places.prefixes)
            yield Fact(library.title, seen, decides=uses)
        # The driver only runs what was built; nvcc compiles without one.
        yield Fact("driver", self.host.driver)
        for gpu in self.host.gpus:
            yield Fact("GPU", Seen(str(gpu), gpu.by))
        yield Fact("nouveau", nvidia.nouveau(place))

    def _environment(self) -> Iterator[Fact]:
        place = self.host.place
        if self.host.system == "Darwin":
            yield Fact("integrity protection", nvidia.protection(place))
        yield Fact("proxies", toolchain.variables(place, toolchain.PROXIES))
        yield Fact("certificates", toolchain.variables(place, toolchain.AUTHORITIES))
        # No program in a container gets the caller's.
        if not place.enclosed:
            yield Fact("library paths", toolchain.variables(place, toolchain.LIBRARY_PATHS))


def _in_gib(size: Seen) -> Seen:
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


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort by the stage that is blocked, the earliest first, notes last.

    What cannot be changed on this host comes before all: there is no use in mending the rest.
    """

    def urgency(finding: Finding) -> tuple[bool, int]:
        # The sort is stable: within a stage the order of the requirements stays.
        blocks = STAGES.index(finding.blocks) if finding.blocks else len(STAGES)
        return not finding.lasting, blocks

    return sorted(findings, key=urgency)
