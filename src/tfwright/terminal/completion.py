"""What a shell offers behind the words of a command: its options, recipes, stages, GPUs.

invoke prints the scripts for bash, zsh and fish, which ask `--complete`. Alone it would complete
the names of commands and options.
"""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from invoke.exceptions import Exit

if TYPE_CHECKING:
    from invoke import Collection
    from invoke.parser import ParseResult


def _recipes() -> list[str]:
    from tfwright.documents import recipe

    return recipe.names()


def _stages() -> tuple[str, ...]:
    from tfwright.progress import STAGES

    return STAGES


def _gpus() -> list[str]:
    from tfwright.facts import gpus

    # A shell takes blanks for the end of a word; hyphens are read like them.
    return [re.sub(r"\s+", "-", name) for name in gpus.names() if re.fullmatch(r"[\w -]+", name)]


VALUES: dict[str, Callable[[], Iterable[str]]] = {
    "recipe": _recipes,
    "like": _recipes,
    "until": _stages,
    "again": _stages,
    "gpu": _gpus,
}
"""What the values of options are, by the option's name."""


def complete(names: list[str], core: "ParseResult", collection: "Collection", **_: object) -> Exit:
    """Print what may come next, a line each; the shell leaves out what was not begun.

    Stands in for the function of that name in invoke, with its parameters.
    """
    words = re.sub(rf"^({'|'.join(names)}) ", "", core.remainder).split()
    for word in candidates(words, collection):
        print(word)
    raise Exit


def candidates(words: list[str], collection: "Collection") -> Iterable[str]:
    """Return what may follow `words`, of which the last may be half typed; nothing for files."""
    tasks = collection.tasks
    if not words or words[0] not in tasks:
        return sorted(tasks)
    options = {
        f"--{name}" if len(name) > 1 else f"-{name}": argument
        for argument in tasks[words[0]].get_arguments()
        for name in argument.names
    }
    # The last word is the option itself, or what was typed of its value.
    for place in (len(words) - 1, len(words) - 2):
        argument = options.get(words[place]) if place else None
        if argument is None or not argument.takes_value:
            continue
        known = list(VALUES.get(argument.name, list)())
        # A whole value is followed by the next option.
        if place == len(words) - 1 or words[-1] not in known:
            return known
    takes_word = any(argument.positional for argument in options.values())
    if takes_word and not words[-1].startswith("-"):
        return ()
    return [flag.replace("_", "-") for flag in options if flag.startswith("--")]
