"""The page of port, pin and new: what a recipe got, and what is left to decide."""

import json
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

from tfwright.documents.composing import others_on_axes
from tfwright.printable import shell_word
from tfwright.terminal import text
from tfwright.terminal.text import Style, Styled

if TYPE_CHECKING:
    from tfwright.configure.catalogue import Prompt
    from tfwright.lock.packages import Pinned
    from tfwright.port.porting import Port
    from tfwright.recipes.writing import NewRecipe

ANSWERS = {"true": "yes", "false": "no"}
COLOURS: dict[str, Style] = {"change": text.BAD, "look": text.WARNING, "fits": text.GOOD}


def show_port(port: "Port") -> None:
    """Print the verdict about each pin, what must change first; the new file on stdout."""
    # What must change comes first: it is the maintainer's list of work.
    same = defaultdict[tuple[str, str, str], list[str]](list)
    for pin in sorted(port.pins, key=lambda pin: [*COLOURS].index(pin.state)):
        same[pin.state, pin.kind, pin.says].append(pin.name)
    for (state, kind, says), names in same.items():
        text.line(
            # Filled up, so that the names stand below each other.
            Styled(f"  {state:<7}", COLOURS[state]),
            text.bold(f" {kind} {', '.join(names)}"),
            f": {says}",
            hang=10,
        )
    changes = sum(pin.state == "change" for pin in port.pins)
    if changes:
        text.tell(f"{text.counted(changes, 'pin')} must change before it can be built")
    else:
        text.tell("Nothing has to change before it can be built")
    argument = shell_word(str(port.path))
    text.then(f"invoke build --recipe {argument} --until configure")
    print(port.path)


def show_pinned(pinned: "Pinned") -> None:
    """Print what was resolved; the recipe's file on stdout."""
    for key, pins in pinned.lists.items():
        text.tell(f"  {key}: {text.counted(len(pins), 'package')}")
    for change in pinned.changes:
        text.tell(f"    {change}")
    if pinned.bazel:
        text.tell(f"  bazel.sha256: {pinned.bazel}")
    others = others_on_axes(pinned.path)
    text.then(*(f"invoke pin --recipe {shell_word(str(other))}" for other in others))
    print(pinned.path)


def show_new(made: "NewRecipe") -> None:
    """Print what is left to decide; the new file on stdout."""
    for line in made.open:
        # With standard output for the path alone, a script can take it.
        text.part(text.warning("  decide: "), line, indent=10)
    argument = shell_word(str(made.path))
    text.then(
        *([f"invoke pin --recipe {argument}"] if made.unpinned else []),
        f"invoke lint --recipe {argument}",
        f"invoke build --recipe {argument} --until configure",
    )
    print(made.path)


def ask(prompt: "Prompt", default: str) -> str:
    """Ask a person for an answer in TOML's form; without a terminal, or for Enter, the default."""
    if not sys.stdin.isatty():
        return default
    # People type y or n; TOML writes true or false.
    shown = {"true": "Y/n", "false": "y/N"}.get(default, default) if prompt.yes_no else default
    while True:
        text.tell(f"{prompt.variable}: {prompt.wording} [{shown}]")
        line = sys.stdin.readline()
        given = line.strip()
        # Nothing at all, not even a line end, is the end of the input.
        if not given:
            return default
        if not prompt.yes_no:
            # A JSON string is a TOML string, with the same escapes.
            return json.dumps(given)
        for value in ("true", "false"):
            if given.lower() in {value, ANSWERS[value], ANSWERS[value][0]}:
                return value
        text.tell(f"  {given!r} is neither yes nor no; type y or n")
