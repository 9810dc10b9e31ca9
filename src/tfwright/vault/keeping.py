"""`invoke vault`: the vault of this host, with the recipes of this checkout."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import Evidence, SupplyError, invoke
from tfwright.tools import files
from tfwright.tools.git import mirror
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
    inventory = look(build_out)
    entries = [entry for entry in inventory.things if entry.file or entry.kind == usage.VENV]
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
    what = f"{_counted(len(damages))} damaged"
    if removed:
        what += f", {len(removed)} removed"
    users = _users(build_out, inventory, damages)
    raise SupplyError(
        what,
        remedy=_remedy(removed, left, users),
        evidence=Evidence(lines=[f"{damage.path}: {damage.why}" for damage in damages]),
    )


def _counted(damaged: int) -> str:
    if damaged == 1:
        return "1 of the kept inputs is"
    return f"{damaged} of the kept inputs are"


def _users(build_out: Path, inventory: Inventory, damages: Sequence[Damage]) -> list[str]:
    """Return the recipes that need what is damaged, as far as they are known."""
    paths = {damage.path for damage in damages}
    found = set[str]()
    for entry in inventory.things:
        if entry.path in paths:
            found.update(inventory.users(entry))
    for recipe, _ in _recipes():
        if mirror.place(build_out / "git", recipe.source.url) in paths:
            found.add(recipe.name)
    return sorted(found)


def _remedy(removed: Sequence[Damage], left: Sequence[Damage], users: Sequence[str]) -> str:
    """Say which commands restore the inputs, which `users` need."""
    steps = []
    needing = "for the recipes that need them"
    if users:
        needing += f": --recipe {', --recipe '.join(users)}"
    if any(damage.removable for damage in left):
        steps.append(
            f"Run 'invoke vault --verify --repair' to remove them, then 'invoke fetch' {needing}."
        )
    if any(not damage.removable for damage in left):
        steps.append(f"Install the toolkit again with '{invoke('toolkit')}'.")
    if removed:
        steps.append(f"Run 'invoke fetch' {needing}.")
    return " ".join(steps)


def _recipes(names: Sequence[str] = ()) -> list[tuple[Recipe, Path]]:
    everything = dict.fromkeys((*recipes.names(), *names))
    return [(recipes.read(name), recipes.find(name)) for name in everything]
