"""`invoke bisect`: which change broke a recipe: a table of it, a patch, or a commit of its source.

The steps lead from what made the last good wheel to what fails now: first each changed table of the
recipe, then each commit. A good build's recipe is read from the record inside its wheel.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfwright.commands.nightly import targets
from tfwright.documents import host_file, nightly
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import Target
from tfwright.documents.recipe import Recipe
from tfwright.documents.stages import NAMES
from tfwright.errors import HostError, RecipeError, TfwrightError
from tfwright.nightly import due, halving
from tfwright.nightly import state as states
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.halving import Culprits, TrialAnswer
from tfwright.pipeline import engine
from tfwright.pipeline.job import BuildRequest
from tfwright.progress import SILENCE, Listener
from tfwright.tools.git import remote
from tfwright.wheel import archive
from tfwright.wheel.seal import build_record

FOLDER = "bisect"
"""Below build_out: trials share the vault and the caches, and leave the recipe's own tree alone."""


@dataclass(frozen=True)
class BisectStep:
    """One change on the way from good to bad, with the recipe after it."""

    said: str
    recipe: Recipe


@dataclass(frozen=True)
class Bisection:
    """What is to be found out."""

    good: NightlyBuild
    bad: NightlyBuild
    start: Recipe
    """What made the last good wheel."""
    steps: tuple[BisectStep, ...]
    stage: str
    """The stage that failed: a trial ends with it."""
    host_changes: tuple[str, ...]
    """What of the host changed in between, which no trial can take back."""


def prepare(name: str, good: str = "", bad: str = "") -> Bisection:
    """Read the two builds and list the steps between them.

    Raises RecipeError if one of the builds is missing, or nothing that can be tried changed.
    """
    wanted, host = nightly.read(), host_file.read()
    target = next((item for item in nightly.targets(wanted) if item.name == name), None)
    if target is None:
        raise RecipeError(
            f"nightly.toml has no recipe {name!r}", remedy="Name one that a night builds."
        )
    with states.opened(wanted.directory) as state:
        kept = state.builds(name)
        passed = good or next((item.id for item in reversed(kept) if item.good), "")
        failed = bad or next((item.id for item in reversed(kept) if not item.good), "")
        first, last = state.build(passed), state.build(failed)
    if first is None or last is None:
        missing = "good" if first is None else "failed"
        raise RecipeError(
            f"{name} has no {missing} build to start from",
            remedy="Name one with --good and --bad; the page lists the identifiers.",
        )
    home = wanted.directory / "site" / "builds"
    # The recipe file has changed since; the wheel's own record has not.
    start = _recipe_of(home / first.id / first.wheel)
    steps = tuple(steps_between(start, _recipe_now(target, last), host))
    changed = due.differing(first.fingerprint, last.fingerprint)
    of_host = tuple(part for part in changed if part in targets.OF_HOST)
    if not steps and not of_host:
        raise RecipeError(
            f"Nothing that decides the wheel changed between {first.id} and {last.id}",
            remedy="Look at the log of the failed build: it may be a flaw of that night.",
        )
    # A failure outside the stages, such as a check of the host, needs the whole pipeline.
    stage = last.broken.stage if last.broken and last.broken.stage in NAMES else NAMES[-1]
    return Bisection(first, last, start, steps, stage, of_host)


def _recipe_of(wheel: Path) -> Recipe:
    """Return the recipe that a wheel was built from, as its own record has it."""
    with archive.opened(wheel) as content:
        record = build_record.read(content)
    if record is None:
        raise RecipeError(
            f"{wheel.name} has no build record", remedy="Choose another build with --good."
        )
    return build_record.recipe_of(record)


def _recipe_now(target: Target, bad: NightlyBuild) -> Recipe:
    """Return the recipe as it is now, with the commit that failed."""
    found = targets.recipe_of(target)
    source = found.source.model_copy(update={"commit": bad.commit or found.source.commit})
    return found.model_copy(update={"source": source})


def steps_between(good: Recipe, bad: Recipe, host: HostFile) -> Iterator[BisectStep]:
    """Yield each change from one recipe to the other: tables and patches first, then commits."""
    now = good.model_copy(update={"name": bad.name})
    for table in type(bad).model_fields:
        if table in {"name", "summary", "verified", "source"}:
            continue
        if getattr(now, table) != getattr(bad, table):
            now = now.model_copy(update={table: getattr(bad, table)})
            yield BisectStep(f"the recipe's [{table}]", now)
    # The commits come last, each with the patches of the failing build.
    source = bad.source.model_copy(update={"commit": good.source.commit})
    if now.source != source:
        now = now.model_copy(update={"source": source})
        yield BisectStep(_said_source(good, bad), now)
    if good.source.commit != bad.source.commit:
        for commit, subject in _commits(good, bad, host):
            own = source.model_copy(update={"commit": commit})
            yield BisectStep(f"{commit[:12]} {subject}", now.model_copy(update={"source": own}))


def _said_source(good: Recipe, bad: Recipe) -> str:
    """Name the patches that came or went, else the table."""
    before, after = set(good.source.patches), set(bad.source.patches)
    changed = sorted(before ^ after)
    return f"patches: {', '.join(changed)}" if changed else "the recipe's [source]"


def _commits(good: Recipe, bad: Recipe, host: HostFile) -> list[tuple[str, str]]:
    """Return the commits after the good one up to the bad one, oldest first."""
    store = host.build_out / "git"
    store.mkdir(parents=True, exist_ok=True)
    address = targets.origin_of(bad.source.url, host)
    found = remote.subjects(store, address, good.source.commit, bad.source.commit)
    # Without a list of the commits between the two, the last one is the only step.
    return found[::-1] or [(bad.source.commit, "and all before it")]


def bisect(
    wanted: Bisection, hear: Callable[[str], None], listener: Listener = SILENCE
) -> Culprits[BisectStep] | None:
    """Try steps until it is known which one breaks; None if it is the host.

    Every trial keeps the caches, and ends with the stage that failed. Raises HostError if this host
    cannot build the recipe at all.
    """

    def tried(step: BisectStep) -> TrialAnswer:
        answer = _tried(step.recipe, wanted.stage, listener)
        hear(f"{answer}: {step.said}")
        return answer

    # What was good before has to be good now; else the host is what changed.
    start = wanted.start.model_copy(update={"name": wanted.bad.target})
    if _tried(start, wanted.stage, listener) != "good":
        return None
    return halving.first_bad(wanted.steps, tried) if wanted.steps else None


def _tried(found: Recipe, stage: str, listener: Listener) -> TrialAnswer:
    """Build a recipe up to the stage that failed."""
    host = host_file.read()
    place = host.build_out / FOLDER
    cache = host.cache.model_copy(update={"directory": host.cache_directory})
    own = host.of(found).model_copy(update={"build_out": place, "cache": cache})
    place.mkdir(parents=True, exist_ok=True)
    # Stages look for both below build_out; the links let trials share downloads and clones.
    for name in ("vault", "git"):
        shared, link = host.build_out / name, place / name
        shared.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(shared, target_is_directory=True)
    request = BuildRequest(recipe=found, host_file=own, listener=listener, until=stage)
    try:
        engine.build(request)
    except HostError:
        raise
    except TfwrightError as fault:
        # A failure in an earlier stage is another fault, and says nothing about this one.
        return "bad" if fault.stage == stage else "skip"
    return "good"
