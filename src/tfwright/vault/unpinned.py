"""Downloads that no checksum holds: what declares each, and what to write into the recipe."""

from collections.abc import Collection, Iterator, Sequence

from tfwright.errors import Evidence, RecipeError
from tfwright.rules.model import Repository
from tfwright.vault import substitutes


def error(recipe: str, found: Sequence[Repository], *, locked: bool = False) -> RecipeError:
    """Return the error that names every download of a build without a checksum.

    `recipe` is named as the command line takes it; `locked` says whether it has a lock file.
    """
    names = list(dict.fromkeys(entry.name for entry in found))
    what = "1 download" if len(names) == 1 else f"{len(names)} downloads"
    verb = "has" if len(names) == 1 else "have"
    tables = {entry.name for entry in found if substitutes.table_for(entry)}
    return RecipeError(
        f"{what} that {recipe} needs {verb} no checksum: {', '.join(names)}",
        remedy=remedy(recipe, names, tables, locked=locked),
        evidence=Evidence(lines=[line for entry in found for line in lines(entry)]),
    )


def lines(entry: Repository) -> Iterator[str]:
    """Yield where a download is declared, and the table that pins it where one can."""
    yield f"{place(entry)}: {entry.name}: {_why(entry)}"
    yield from substitutes.table_for(entry)


def place(entry: Repository) -> str:
    """Return the file and line of a declaration."""
    return f"{entry.file}:{entry.line}"


def remedy(recipe: str, names: Sequence[str], tables: Collection[str], *, locked: bool) -> str:
    """Say how to pin downloads: those of `tables` in the recipe, the others by a patch."""
    steps = []
    if tables:
        steps.append(
            "Add the tables above to the recipe, then run "
            f"'invoke pin --recipe {recipe}', which writes each sha256."
        )
    if others := [name for name in names if name not in tables]:
        steps.append(
            f"Pin {', '.join(others)} by a patch of the tree: a sha256, or the whole commit id."
        )
    if locked:
        # The one that is there lists what was not pinned then.
        steps.append(f"Write the lock file again afterwards: 'invoke lock --recipe {recipe}'.")
    return " ".join(steps)


def _why(entry: Repository) -> str:
    if entry.by_url:
        return f"{entry.rule} names no sha256"
    if entry.commit:
        return f"{entry.rule} takes {entry.commit}, which may move, and no whole commit id"
    # A branch, or what a rule downloads in code of its own.
    return f"{entry.rule} names neither a sha256 nor a whole commit id"
