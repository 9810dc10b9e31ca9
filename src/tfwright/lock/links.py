"""`invoke vault --links`: which sources still have the archives of a recipe."""

from dataclasses import replace

from tfwright.errors import RecipeError, SupplyError
from tfwright.lock import reached
from tfwright.pipeline import external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.rules.model import Rules
from tfwright.vault import links, lock, reach, substitutes
from tfwright.vault.links import LinkRow
from tfwright.vault.origins import Origins


def check(job: RecipeJob, *, deep: bool) -> list[LinkRow]:
    """Ask all sources of the archives of a recipe, without those that its lock knows to be unused.

    With `deep` they are asked for the bytes, not only whether they have any.
    """
    locked = lock.read(job.locked) if job.locked else None
    job, rules = _read(job)
    table = job.recipe.fetch
    wanted = reach.wanted(rules, table.substitutes, locked)
    origins = Origins(job.host_file, job.places.git, job.offline, table)
    store = external.store(job)
    return links.report(wanted, store, origins, job.listener.progress, deep=deep)


def _read(job: RecipeJob) -> tuple[RecipeJob, Rules]:
    """Return the rules, also those that lie in archives, as far as the vault has them.

    Where the fetch stage stops, the job is without the substitutes that do not fit the tree: what
    they should replace is what the sources are to be asked for.
    """
    try:
        made = reached.inputs(job)
    except (RecipeError, SupplyError) as fault:
        job.listener.note(f"fetch stops; the sources are asked all the same: {fault.what}")
        repository = external.repository(job.job, job.recipe.source)
        job = _with_fitting(job, external.read(job, RecipePins.of(job.recipe), repository, None))
        return job, reached.held(job, repository, None).rules
    return job, reached.held(job, made.mirror, made.programs).rules


def _with_fitting(job: RecipeJob, rules: Rules) -> RecipeJob:
    fetch = job.recipe.fetch
    kept = substitutes.fitting(fetch.substitutes, rules.repositories)
    fetch = fetch.changed(substitutes=kept)
    return replace(job, recipe=job.recipe.changed(fetch=fetch))
