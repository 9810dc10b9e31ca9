"""The page of recipes: what each one pins, and whether it builds here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Part, Styled

if TYPE_CHECKING:
    from tfwright.recipes.listing import RecipeRow

COLUMNS = (
    # The ranks: first what a reader chooses by, last what only a build needs to know.
    Column("recipe", 0, "never"),
    Column("TF", 3, "never"),
    Column("Python", 2, "never"),
    Column("CUDA", 4, "never"),
    Column("cuDNN", 6, "never"),
    Column("Bazel", 7, "never"),
    Column("platform", 5, "never"),
    Column("patches", 8, "never", right=True),
    Column("verified until", 1, least=20),
    Column("builds here", 0, least=26),
)


def show_recipes(rows: "Sequence[RecipeRow]") -> None:
    """Print the recipes as a table."""
    if not rows:
        text.line("The directory recipes/ holds no recipe.")
        return
    text.table(COLUMNS, [_cells(row) for row in rows])


def _cells(row: "RecipeRow") -> tuple[Part, ...]:
    holds = not row.verified.startswith(("unverified", "stale"))
    verified = text.GOOD if holds else text.WARNING
    builds = text.good("yes")
    if row.builds_here != "yes":
        builds = text.warning(f"no: {row.builds_here}")
    return (
        text.bold(row.recipe),
        row.tensorflow,
        row.python,
        row.cuda,
        row.cudnn,
        row.bazel,
        row.platform,
        str(row.patches),
        Styled(row.verified, verified),
        builds,
    )
