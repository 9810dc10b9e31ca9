"""What a recipe's tree leads to: brought here, locked by checksum, and asked for at its sources."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tfwright.errors import Evidence, HostError, RecipeError, SupplyError, TfwrightError, invoke
from tfwright.pipeline import containers, engine, external
from tfwright.pipeline.compile import attempts
from tfwright.pipeline.compile.invocation import Invocation
from tfwright.pipeline.external import ExternalRules, RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Configured, Inputs, Tree
from tfwright.progress import SILENCE
from tfwright.tools import files
from tfwright.tools.http import client
from tfwright.tools.python import packages
from tfwright.vault import links, lock, locking, reach, substitutes
from tfwright.vault.links import LinkRow
from tfwright.vault.lock import Lock
from tfwright.vault.origins import Origins, WantedArchive


def fetch_inputs(job: RecipeJob, *, wait: bool = False) -> Inputs:
    """Return what the fetch stage brings; it runs if it has to.

    With `wait`, another command that works on the recipe is waited for.
    """
    return engine.build(replace(job, until="fetch", wait=wait)).of(Inputs)


def ask_sources(job: RecipeJob, *, deep: bool) -> list[LinkRow]:
    """Ask all sources of the archives of a recipe, without those that its lock knows to be unused.

    With `deep` they are asked for the bytes, not only whether they have any.
    """
    pairs = [(archive, _origins(job)) for archive in _archives(job)]
    return links.ask_sources(pairs, external.store(job), job.listener.progress, deep=deep)


def ask_sources_together(jobs: Sequence[RecipeJob]) -> list[list[LinkRow]]:
    """Ask the servers of all archives of some recipes, each address once; the rows are by recipe.

    What a lock file lists is not looked for in the recipe's tree again.
    """
    sought = []
    for job in jobs:
        locked = lock.read(job.locked) if job.locked else None
        listed = locked.archives if locked else ()
        found = [
            WantedArchive(each.names[0] if each.names else each.sha256[:16], each.sha256, urls)
            for each in listed
            # A package URL names no server that could be asked.
            if each.needed is not False and (urls := tuple(filter(client.is_web_url, each.urls)))
        ]
        # A recipe that cannot be read is reported by whatever builds it.
        with suppress(TfwrightError):
            # The lines of its stages would stand among those of a night.
            found = found if locked else _archives(replace(job, listener=SILENCE))
        sought.append(found)
    pairs = [
        (archive, _origins(job))
        for job, found in zip(jobs, sought, strict=True)
        for archive in found
    ]
    rows = iter(links.ask_sources(pairs, external.store(jobs[0]), SILENCE.progress, deep=False))
    return [list(islice(rows, len(found))) for found in sought]


def _origins(job: RecipeJob) -> Origins:
    return Origins(job.host_file, job.places.git, job.offline, job.recipe.fetch)


def _archives(job: RecipeJob) -> list[WantedArchive]:
    """Return the archives of a recipe, without those that its lock knows to be unused.

    Where the fetch stage stops, substitutes that do not fit the tree are left out: what they should
    replace is what the sources are to be asked for.
    """
    locked = lock.read(job.locked) if job.locked else None
    try:
        made = fetch_inputs(job)
        repository, programs = made.mirror, made.programs
    except (RecipeError, SupplyError) as fault:
        job.listener.note(f"fetch stops; the sources are asked all the same: {fault.what}")
        repository, programs = external.fetch_commit(job, job.recipe.source), None
        rules = ExternalRules(job, RecipePins.of(job.recipe), repository).rules()
        fetch = job.recipe.fetch
        kept = substitutes.fitting_tables(fetch.substitutes, rules.repositories)
        job = replace(job, recipe=job.recipe.changed(fetch=fetch.changed(substitutes=kept)))
    reached = ExternalRules(job, RecipePins.of(job.recipe), repository, programs).from_vault()
    return reach.wanted_archives(reached.rules, job.recipe.fetch.substitutes, locked)


def write(job: RecipeJob, path: Path) -> Lock:
    """Obtain a recipe's inputs as they are now and write them down, whatever the lock said before.

    Where the recipe's Bazel runs on this host, it is asked which archives its target wants. A lock
    that knows that is never replaced by one that does not: then HostError or the reason is raised.
    Raises HostError too where this host has another Bazel in place of the recipe's.
    """
    job.check_pinned_bazel("The lock file")
    # The old lock must not leave out or refuse anything while the new one is made.
    free = replace(job, locked=None)
    inputs = fetch_inputs(free)
    wanted, fault = _wanted_repositories(free, inputs)
    recipe = free.recipe.changed(fetch=inputs.used_substitutes(free.recipe.fetch))
    here = ExternalRules(free, RecipePins.of(recipe), inputs.mirror, inputs.programs)
    found = here.lock(here.from_vault(), wanted)
    added = {
        "requirements": _lock_requirements(free, inputs),
        "toolkit": locking.toolkit(free.recipe.toolkit),
        "image": locking.image(free.recipe, free.places.vault),
    }
    locked = found.changed(**added)
    # Refused before anything is written: the better lock is what builds depend on.
    if wanted is None and path.is_file() and lock.read(path).knows_needs:
        system = job.recipe.host.system
        why = fault.what if fault else f"the recipe's Bazel runs only on {system}"
        first = fault.remedy if fault else f"Run the command on {system}."
        raise HostError(
            f"{path.name} was not replaced: it states which archives the build needs, and the new "
            f"lock file would not: {why}",
            remedy=_with_sentence(
                first, f"To write a lock file without that, remove {path} first."
            ),
            evidence=fault.evidence if fault else Evidence(where=str(path)),
        )
    files.write(path, lock.write(locked))
    if fault:
        # The lock is useful all the same, but a script has to see the failure in the exit status.
        raise HostError(
            f"{path.name} was written without a record of which archives the build needs: "
            f"{fault.what}",
            remedy=_with_sentence(fault.remedy, f"Then run '{invoke('lock')}' again."),
            evidence=fault.evidence,
        )
    return locked


def _with_sentence(remedy: str, then: str) -> str:
    """Add a sentence to a remedy, on a line of its own behind lines that are there to be copied."""
    end = "\n" if "\n" in remedy else " "
    return f"{remedy}{end}{then}"


def _wanted_repositories(
    job: RecipeJob, inputs: Inputs
) -> tuple[Mapping[str, str] | None, TfwrightError | None]:
    """Ask Bazel which repositories the target wants; None, and the reason, if it cannot say."""
    if inputs.programs is None:
        return None, None
    try:
        # Bazel loads what ./configure writes, so an analysis needs a configured tree.
        made = engine.build(replace(job, until="configure", all_inputs=True))
        recipe, tree, configured = job.recipe, made.of(Tree), made.of(Configured)
        # Where the build runs it: this host may not have the libraries that it wants.
        with containers.stage_container(job, "compile"):
            bazel = Invocation.of(job, recipe.compile, inputs, tree, configured)
            return attempts.needed_repositories(bazel), None
    # Not raised: the rest of the lock is worth writing, and the caller reports the fault.
    except TfwrightError as fault:
        return None, fault


def _lock_requirements(job: RecipeJob, inputs: Inputs) -> tuple[lock.LockedRequirement, ...]:
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
    with containers.stage_container(job, "fetch"), files.scratch_directory() as folder:
        packages.download(inputs.python, pins, folder, job.log("lock-python"))
        return locking.requirements(wanted, folder)
