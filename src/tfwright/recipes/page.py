"""The page of recipes: what each one pins, and whether it builds here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Part, Styled

if TYPE_CHECKING:
    from tfwright.recipes.listing import RecipeRow

COLUMNS = (
    # The ranks: first what a reader chooses by, last what only a build needs to know.
    Column("recipe"),
    Column("TF", rank=3),
    Column("Python", rank=2),
    Column("CUDA", rank=4),
    Column("cuDNN", rank=6),
    Column("Bazel", rank=7),
    Column("platform", rank=5),
    Column("patches", rank=8, right=True),
    Column("verified until", rank=1, cut="end", least=20),
    Column("builds here", cut="end", least=26),
)


def show_recipes(rows: "Sequence[RecipeRow]") -> None:
    """Print the recipes as a table."""
    text.table(COLUMNS, map(_cells, rows), empty="The directory recipes/ holds no recipe.")


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
