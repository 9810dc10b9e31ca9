"""The recipes, as a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.commands.recipes import RecipeRow


def show_recipes(rows: "Sequence[RecipeRow]", *, as_json: bool) -> None:
    """Print the recipes as a table."""
    if as_json:
        text.as_json([row.__dict__ for row in rows])
        return
    heads = tuple(rows[0].__dict__) if rows else ()
    text.table(
        [
            tuple(name.replace("_", " ") for name in heads),
            *(tuple(str(value) for value in row.__dict__.values()) for row in rows),
        ]
    )
