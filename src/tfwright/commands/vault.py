"""The vault of this host, with the recipes of this checkout."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import Evidence, SupplyError
from tfwright.vault import usage
from tfwright.vault.usage import Inventory, Thing


def look(build_out: Path) -> Inventory:
    """Return what is in the vault, and who needs it."""
    return usage.look(build_out, _recipes())


def collect(build_out: Path, report: Callable[[Sequence[Thing]], None]) -> None:
    """Remove what no recipe and no lock needs; it is reported first."""
    usage.collect(build_out, _recipes(), report)


def verify(build_out: Path, *, repair: bool) -> list[Thing]:
    """Read everything that has a digest, and return what is as it was.

    Raises SupplyError naming what is damaged; with `repair` that was removed before.
    """
    held = [thing for thing in look(build_out).things if thing.has_digest]
    damaged = [thing for thing in held if thing.damaged]
    if not damaged:
        return held
    if repair:
        usage.remove(build_out, damaged)
    lines = [str(thing.file or thing.path) for thing in damaged]
    remedy = (
        "Run 'invoke fetch' for the recipes that need them."
        if repair
        else "Run 'invoke vault --verify --repair' to remove them, then 'invoke fetch'."
    )
    state = "damaged, and removed" if repair else "damaged"
    raise SupplyError(
        f"{len(damaged)} of {len(held)} files and venvs in the vault are {state}",
        remedy=remedy,
        evidence=Evidence(lines=lines),
    )


def _recipes() -> list[tuple[Recipe, Path]]:
    return [(recipes.read(name), recipes.find(name)) for name in recipes.names()]
