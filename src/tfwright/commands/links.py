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
    # Rules that lie in archives are read as well, as far as the vault has them.
    rules = reached.held(job, reached.inputs(job)).rules
    table = job.recipe.fetch
    wanted = reach.wanted(rules, table.substitutes, locked)
    origins = Origins(job.host_file, job.places.git, job.offline, table)
    store = external.store(job)
    return links.report(
        wanted,
        store,
        origins,
        job.listener.progress,
        deep=deep,
    )
