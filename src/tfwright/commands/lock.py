"""`invoke lock` and `invoke links`: what a recipe's inputs are now, written down, and who still has them."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfwright.errors import HostError, TfwrightError
from tfwright.pipeline import analysis, engine, external, stamps
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.invocation import Invocation
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Configured, Inputs, Tree
from tfwright.tools import files
from tfwright.tools.python import packages
from tfwright.vault import links, lock, locking, reach
from tfwright.vault.links import LinkRow
from tfwright.vault.lock import Lock
from tfwright.vault.origins import VAULT, Origins, Supply, WantedArchive
from tfwright.vault.reach import Reached, Suppliers


def write(job: BuildRequest, path: Path) -> Lock:
    """Obtain a recipe's inputs as they are now and write them down; a lock that was there before is not asked.

    Where the recipe's Bazel runs on this host, it is asked which archives its target wants.
    """
    free = replace(job, locked=None)
    inputs = _inputs(free)
    wanted = _wanted(free, inputs) if inputs.programs else None
    found = external.lock_of(
        free,
        RecipePins.of(free.recipe),
        inputs.mirror,
        _reached(free, inputs),
        inputs.programs,
        wanted,
    )
    added = {
        "requirements": _requirements(free, inputs),
        "toolkit": locking.toolkit(free.recipe.toolkit),
    }
    locked = found.model_copy(update=added)
    files.write(path, lock.write(locked))
    return locked


def rot(job: BuildRequest, *, deep: bool) -> list[LinkRow]:
    """Ask who still has the archives of a recipe; those that its lock knows to be of no use are left out."""
    locked = lock.read(job.locked) if job.locked else None
    wanted = reach.wanted(_reached(job, _inputs(job)).rules, job.recipe.fetch.substitutes, locked)
    return links.report(
        wanted,
        external.store(job),
        Origins(job.host_file, job.places.git, job.offline),
        job.listener.progress,
        deep=deep,
    )


def _inputs(job: BuildRequest) -> Inputs:
    made = engine.build(replace(job, until="fetch"))
    if not isinstance(made, Inputs):
        raise TypeError("the stage fetch makes Inputs")
    return made


def _reached(job: BuildRequest, inputs: Inputs) -> Reached:
    """Read what is reached with what is in the vault; nothing is obtained."""
    store = external.store(job)

    def held(wanted: Sequence[WantedArchive]) -> Supply:
        return Supply({one.sha256: VAULT for one in wanted if store.holds(one.sha256)}, ())

    return reach.bring(
        external.read(job, RecipePins.of(job.recipe), inputs.mirror, inputs.programs),
        job.recipe.fetch.substitutes,
        None,
        store,
        Suppliers(held, partial(external.clone, job, offline=True)),
    )


def _wanted(job: BuildRequest, inputs: Inputs) -> Mapping[str, str] | None:
    """Ask Bazel which repositories the target wants; None, and a note why, if it cannot say."""
    try:
        configured = engine.build(replace(job, until="configure"))
        tree = stamps.last(job, "source", Tree)
        if tree and isinstance(configured, Configured):
            calls = Invocation.of(
                job, job.recipe.compile, job.recipe.bazel.version, inputs, tree, configured
            )
            return analysis.wanted(calls)
    except TfwrightError as fault:
        job.listener.note(f"Which archives are needed cannot be known: {fault.what}")
    return None


def _requirements(job: BuildRequest, inputs: Inputs) -> tuple[lock.LockedRequirement, ...]:
    """Let the target Python's pip choose a file for each requirement, and return them with their digests."""
    wanted = job.recipe.host.requirements
    if not wanted:
        return ()
    if inputs.programs is None:
        what = f"Which files pip takes for {', '.join(wanted)} can only be seen on {job.recipe.host.system}"
        raise HostError(
            what,
            remedy=f"Run 'invoke lock' on a host of that system: a lock without them would be refused by every build of {job.recipe.name}.",
        )
    with tempfile.TemporaryDirectory() as folder:
        packages.bring(
            inputs.python,
            [line.partition(" --hash")[0] for line in wanted],
            Path(folder),
            job.log("lock-python"),
        )
        return locking.requirements(wanted, Path(folder))
