"""The vault of this host, with the recipes of this checkout."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import Evidence, SupplyError
from tfwright.tools import files
from tfwright.vault import bundle, usage, verification
from tfwright.vault.usage import Inventory, VaultEntry
from tfwright.vault.verification import Damage


def look(build_out: Path) -> Inventory:
    """Return what is in the vault, and who needs it."""
    return usage.look(build_out, _recipes())


def collect(
    build_out: Path,
    report: Callable[[Sequence[VaultEntry]], None],
    names: Sequence[str] = (),
    locks: Sequence[Path] = (),
) -> None:
    """Remove what no recipe and no lock needs; it is reported first.

    `names` are recipes beyond those of this checkout, `locks` lock files beyond theirs.
    """
    # What an interrupted unpacking left behind is in no inventory.
    bundle.discard_leftovers(build_out)
    usage.collect(build_out, _recipes(names), report, locks)


def verify(build_out: Path, *, repair: bool) -> list[VaultEntry]:
    """Read everything that is kept, mirrors and toolkits included; return the vault's entries.

    Raises SupplyError naming what is damaged; with `repair` what can be fetched again was removed.
    """
    # Leftovers have nothing to verify; `invoke vault --gc` removes them.
    things = look(build_out).things
    entries = [
        entry for entry in things if entry.file or entry.kind == usage.VENV
    ]
    damages = list(verification.damages(build_out, entries))
    if not damages:
        return entries
    removed = [damage for damage in damages if repair and damage.removable]
    for damage in removed:
        files.remove(damage.path)
    if removed:
        usage.rewrite_pages(build_out)
    # A toolkit is not removed: it is large, and a person accepted its licence.
    left = [damage for damage in damages if damage not in removed]
    what = f"{len(damages)} of the kept inputs are damaged"
    if removed:
        what += f", {len(removed)} were removed"
    raise SupplyError(
        what,
        remedy=_remedy(removed, left),
        evidence=Evidence(
            lines=[f"{damage.path}: {damage.why}" for damage in damages]
        ),
    )


def _remedy(removed: Sequence[Damage], left: Sequence[Damage]) -> str:
    """Say which commands restore the inputs."""
    steps = []
    if any(damage.removable for damage in left):
        steps.append(
            "Run 'invoke vault --verify --repair' to remove them, then 'invoke fetch'."
        )
    if any(not damage.removable for damage in left):
        steps.append("Install the toolkit again with 'invoke toolkit'.")
    if removed:
        steps.append("Run 'invoke fetch' for the recipes that need them.")
    return " ".join(steps)


def _recipes(names: Sequence[str] = ()) -> list[tuple[Recipe, Path]]:
    everything = dict.fromkeys((*recipes.names(), *names))
    return [(recipes.read(name), recipes.find(name)) for name in everything]
