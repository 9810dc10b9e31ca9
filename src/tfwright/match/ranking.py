"""Which recipes fit a wish, and what keeps the others from it."""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_above, is_of_line, is_older
from tfwright.host import cuda, hermetic
from tfwright.host.cuda import CudaInForce
from tfwright.host.probes import Host
from tfwright.match import fit, releases
from tfwright.match.wish import Wish
from tfwright.progress import STAGES

NO_CUDA = "no CUDA"


@dataclass(frozen=True)
class Candidate:
    """A recipe, and how it differs from what is wished."""

    recipe: str
    summary: str
    differs: tuple[str, ...]
    elsewhere: bool
    """Whether it is for another system or machine: then nothing else brings it near."""
    copy: str = ""
    """The compute capability that a copy of the recipe can name; empty if that is no use."""
    verified: str = ""
    """The last stage that was seen to succeed, and when; empty for a recipe without reports."""
    stale: str = ""
    """What changed since then."""


def rank(
    recipes: Iterable[Recipe],
    wanted: Wish,
    host: Host,
    host_file: HostFile,
    stale: Callable[[Recipe], str],
) -> list[Candidate]:
    """Compare all recipes of TensorFlow with a wish, the nearest first.

    The recipes that fit have no differences. Of those that are equally near the one that was
    verified farthest comes first, then the newest, or the one nearest to the wished release.
    """
    asked = Release.parse(wanted.release) if wanted.release else None
    # What does not fit is near where it is of about the release that a new recipe would be of.
    around = asked or next(iter(releases.fitting_releases(wanted)), None)
    found = list[tuple[tuple[int, ...], Candidate]]()
    for recipe in recipes:
        # The bundled demonstration fits every host, and is of no use to who wants TensorFlow.
        if not recipe.source.of_tensorflow:
            continue
        comparison = _Comparison(recipe, wanted, host, host_file)
        places = (recipe.host.system, wanted.system), (recipe.host.machine, wanted.machine)
        other_platform = [f"for {has}" for has, wish in places if wish and has not in {"any", wish}]
        differs = (*other_platform, *comparison.differences())
        elsewhere = bool(other_platform)
        verified = STAGES.index(recipe.verified.until) if recipe.verified else -1
        distance = release_position(recipe.source.release)
        target = around if differs else asked
        distance = abs(distance - release_position(target)) if target else -distance
        # A recipe for another system is never near, however few its differences are. Other GPUs
        # can be named in a recipe; one without CUDA has none to name.
        far = (elsewhere, NO_CUDA in differs, len(differs))
        near = (distance, -verified) if differs else (-verified, distance)
        until = str(recipe.verified or "")
        candidate = Candidate(
            recipe.name, recipe.summary, differs, elsewhere, comparison.copy, until, stale(recipe)
        )
        found.append(((*far, *near), candidate))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]


def release_position(release: Release) -> int:
    """Return a number by which releases are near each other: 2.0 comes after 1.15."""
    # 1.15 was the last of its line, and no line after the second is known yet.
    return (0, 16, 32, 64)[min(release.major, 3)] + release.minor


@dataclass(frozen=True)
class _Comparison:
    """A recipe that is held against a wish."""

    recipe: Recipe
    wanted: Wish
    host: Host
    host_file: HostFile

    @functools.cached_property
    def in_force(self) -> CudaInForce | None:
        """The CUDA that it builds with."""
        return cuda.in_force(self.recipe, hermetic.downloads(self.recipe, self.host_file))

    @property
    def copy(self) -> str:
        """The compute capability that a copy of the recipe could name to serve the wish."""
        gpu, in_force = self.wanted.gpu, self.in_force
        if in_force is None or not gpu or cuda.runs_on(in_force.capabilities, gpu):
            return ""
        row = compatibility.cuda(in_force.version)
        of_tensorflow = not is_older(gpu, releases.OLDEST_CAPABILITY)
        return gpu if row and row.compiles_for(gpu) and of_tensorflow else ""

    def differences(self) -> Iterator[str]:
        """Say what differs besides system and machine."""
        recipe, wanted, table = self.recipe, self.wanted, self.recipe.host
        version = str(recipe.source.version or recipe.source.release)
        if wanted.release and not is_of_line(version, wanted.release):
            yield f"TensorFlow {version}"
        if wanted.python and table.python not in {"any", wanted.python}:
            yield f"Python {table.python}"
        if wanted.cpu and recipe.verify.cpu and is_above(recipe.verify.cpu, wanted.cpu):
            yield f"needs a CPU with {recipe.verify.cpu}"
        macos = recipe.verify.macos or table.macos or ""
        if wanted.macos and is_older(wanted.macos, macos):
            yield f"macOS {macos}"
        if self.in_force:
            yield from self._cuda_differences(self.in_force)
        elif wanted.cuda or wanted.gpu:
            yield NO_CUDA
        # Without a promise, the wheel may need symbols of the glibc that it was linked with.
        promised = recipe.verify.glibc or hermetic.sysroot(recipe)
        needed = promised or self.host.glibc.value
        if wanted.glibc and table.system != "Darwin" and is_older(wanted.glibc, needed):
            yield f"glibc {needed}" if promised else f"glibc {needed} if built here"

    def _cuda_differences(self, in_force: CudaInForce) -> Iterator[str]:
        wanted, recipe = self.wanted, self.recipe
        if not (wanted.cuda or wanted.gpu):
            yield f"made for GPUs, with CUDA {in_force.version}"
            return
        row = compatibility.cuda(in_force.version)
        needed = compatibility.drivers(row, wanted.gpu, recipe.host.driver or "")
        if misfit := needed.misfit(wanted.driver):
            yield misfit
        if compatibility.has_no_driver(wanted.macos):
            yield f"needs {compatibility.MAC_DRIVER}"
        # Another CUDA can be installed, so it is a difference and no reason to leave it out.
        if wanted.cuda and not is_of_line(in_force.version, wanted.cuda):
            yield f"CUDA {in_force.version}"
        built = in_force.capabilities
        if wanted.gpu and not cuda.runs_on(built, wanted.gpu):
            architectures = recipe.verify.architectures
            text = fit.code_for_others(built, architectures, in_force.version, wanted.gpu)
            yield f"{text}; a copy can name {self.copy}" if self.copy else text
