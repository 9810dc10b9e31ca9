"""`invoke lock`: every input of a recipe by its checksum, in a file next to the recipe."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tfwright.errors import Evidence, HostError, TfwrightError, invoke
from tfwright.lock import reached
from tfwright.pipeline import analysis, engine, external, stamps
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.invocation import Invocation
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Configured, Inputs, Tree
from tfwright.tools import files
from tfwright.tools.python import packages
from tfwright.vault import lock, locking
from tfwright.vault.lock import Lock


def write(job: BuildRequest, path: Path) -> Lock:
    """Obtain a recipe's inputs as they are now and write them down, whatever the lock said before.

    Where the recipe's Bazel runs on this host, it is asked which archives its target wants. A lock
    that knows that is never replaced by one that does not: then HostError or the reason is raised.
    """
    # The old lock must not leave out or refuse anything while the new one is made.
    free = replace(job, locked=None)
    inputs = reached.inputs(free)
    wanted, fault = _wanted(free, inputs)
    found = external.lock_of(
        free,
        RecipePins.of(free.recipe),
        inputs.mirror,
        reached.held(free, inputs.mirror, inputs.programs),
        inputs.programs,
        wanted,
    )
    added = {
        "requirements": _requirements(free, inputs),
        "toolkit": locking.toolkit(free.recipe.toolkit),
        "image": locking.image(free.recipe, free.places.vault),
    }
    locked = found.model_copy(update=added)
    # Refused before anything is written: the better lock is what builds depend on.
    if wanted is None and path.is_file() and _knows_needs(lock.read(path)):
        raise _worse(path, job.recipe.host.system, fault)
    files.write(path, lock.write(locked))
    if fault:
        # The lock is useful all the same, but a script has to see the failure in the exit status.
        raise _incomplete(path, fault)
    return locked


def _knows_needs(locked: Lock) -> bool:
    """Tell whether Bazel was asked when a lock was written."""
    needs = [archive.needed for archive in locked.archives]
    needs += [clone.needed for clone in locked.clones]
    return any(need is not None for need in needs)


def _worse(path: Path, system: str, fault: TfwrightError | None) -> HostError:
    """Return the error for a lock that would know less than the one that is there."""
    why = fault.what if fault else f"the recipe's Bazel runs only on {system}"
    first = fault.remedy if fault else f"Run the command on {system}."
    return HostError(
        f"{path.name} was not replaced: it states which archives the build needs, and the new "
        f"lock file would not: {why}",
        remedy=_followed(first, f"To write a lock file without that, remove {path} first."),
        evidence=fault.evidence if fault else Evidence(where=str(path)),
    )


def _incomplete(path: Path, fault: TfwrightError) -> HostError:
    """Return the error for a lock that was written without asking Bazel."""
    return HostError(
        f"{path.name} was written without a record of which archives the build needs: {fault.what}",
        remedy=_followed(fault.remedy, f"Then run '{invoke('lock')}' again."),
        evidence=fault.evidence,
    )


def _followed(remedy: str, then: str) -> str:
    """Add a sentence to a remedy, on a line of its own behind lines that are there to be copied."""
    end = "\n" if "\n" in remedy else " "
    return f"{remedy}{end}{then}"


def _wanted(
    job: BuildRequest, inputs: Inputs
) -> tuple[Mapping[str, str] | None, TfwrightError | None]:
    """Ask Bazel which repositories the target wants; None, and the reason, if it cannot say."""
    if inputs.programs is None:
        return None, None
    try:
        # Bazel loads what ./configure writes, so an analysis needs a configured tree.
        configured = engine.build(replace(job, until="configure"))
        tree = stamps.last(job, "source", Tree)
        if tree and isinstance(configured, Configured):
            table = job.recipe.compile
            version = job.recipe.bazel.version
            calls = Invocation.of(job, table, version, inputs, tree, configured)
            return analysis.wanted(calls), None
    # Not raised: the rest of the lock is worth writing,
    # and the caller reports the fault.
    except TfwrightError as fault:
        return None, fault
    return None, None


def _requirements(job: BuildRequest, inputs: Inputs) -> tuple[lock.LockedRequirement, ...]:
    """Let the target Python's pip choose a file for each requirement, with its checksum."""
    wanted = job.recipe.host.requirements
    system = job.recipe.host.system
    if not wanted:
        return ()
    if inputs.programs is None:
        raise HostError(
            f"Only a host with {system} can tell which files pip takes for {', '.join(wanted)}",
            remedy=f"Run '{invoke('lock')}' on {system}: every build of {job.recipe.name} would "
            "refuse a lock file without them.",
        )
    # pip chooses freely here: the hashes of the recipe, if it has any, are verified by builds.
    pins = [line.partition(" --hash")[0] for line in wanted]
    with tempfile.TemporaryDirectory() as folder:
        packages.bring(inputs.python, pins, Path(folder), job.log("lock-python"))
        return locking.requirements(wanted, Path(folder))
