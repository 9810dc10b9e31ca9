"""`invoke vault --links`: which sources still have the archives of a recipe."""

from tfwright.commands import reached
from tfwright.pipeline import external
from tfwright.pipeline.job import BuildRequest
from tfwright.vault import links, lock, reach
from tfwright.vault.links import LinkRow
from tfwright.vault.origins import Origins


def check(job: BuildRequest, *, deep: bool) -> list[LinkRow]:
    """Ask all sources of the archives of a recipe, without those that its lock knows to be unused.

    With `deep` they are asked for the bytes, not only whether they have any.
    """
    locked = lock.read(job.locked) if job.locked else None
    rules = reached.held(job, reached.inputs(job)).rules
    wanted = reach.wanted(rules, job.recipe.fetch.substitutes, locked)
    origins = Origins(job.host_file, job.places.git, job.offline, job.recipe.fetch)
    return links.report(wanted, external.store(job), origins, job.listener.progress, deep=deep)
