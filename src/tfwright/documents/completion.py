"""The commands that a remedy names, completed with the recipe that they are about."""

import re

_UNNAMED = re.compile(
    r"'invoke (build|bundle|clean|cost|doctor|fetch|image|lock|patch|pin|plan|port|record|shell|"
    r"toolkit|vault --links)\b"
    r"(?![^']*--(recipe|unpack))[^']*(?=')"
)
"""A command of a remedy that takes a recipe, and names none."""


def naming_recipe(remedy: str, argument: str) -> str:
    """Add ``--recipe`` to the commands of a remedy that would be about the demo without it.

    What fails below a command or the pipeline knows no recipe.
    """
    # At the end: a word that a command takes has to come first.
    # A function, since a path may have backslashes, which a template would interpret.
    return _UNNAMED.sub(lambda found: f"{found[0]} --recipe {argument}", remedy)
