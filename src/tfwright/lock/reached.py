"""What a recipe's tree leads to, as far as this host reads it, for `lock` and `vault --links`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfwright.pipeline import engine, external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs, Programs
from tfwright.vault import reach
from tfwright.vault.origins import VAULT, Supply, WantedArchive
from tfwright.vault.reach import Reached, Suppliers


def inputs(job: RecipeJob, *, wait: bool = False) -> Inputs:
    """Return what the fetch stage brings; it runs if it has to.

    With `wait`, another command that works on the recipe is waited for.
    """
    return engine.build(replace(job, until="fetch", wait=wait)).of(Inputs)


def held(job: RecipeJob, mirror: Path, programs: Programs | None) -> Reached:
    """Read what the rules lead to with the files that are in the vault; nothing is obtained."""
    store = external.store(job)

    def supply(wanted: Sequence[WantedArchive]) -> Supply:
        held = [archive.sha256 for archive in wanted if store.holds(archive.sha256)]
        return Supply(dict.fromkeys(held, VAULT), ())

    rules = external.read(job, RecipePins.of(job.recipe), mirror, programs)
    suppliers = Suppliers(supply, partial(external.clone, job, offline=True))
    # Without the lock: what it calls unused may have become needed since it was written.
    return reach.bring(rules, job.recipe.fetch.substitutes, None, store, suppliers)
