"""The page of record: what ./configure asks, and what was written down."""

import sys
from typing import TYPE_CHECKING

from tfwright.errors import RecipeError, invoke
from tfwright.printable import printable_lines
from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.record.recording import HeardQuestion
    from tfwright.record.session import RecordedDialogue


def ask(question: "HeardQuestion") -> str:
    """Ask a person what ./configure asks; without a terminal, take its default.

    Raises RecipeError at the end of the input: Ctrl-D is not an answer.
    """
    shown = question.text.strip()
    text.line(text.bold(question.variable), f": {printable_lines(shown)}", to=sys.stderr)
    if not sys.stdin.isatty():
        default = question.default or "an empty line"
        text.tell(f"  answered with its default, {default}: no terminal to ask on")
        return ""
    while line := sys.stdin.readline():
        answer = line.rstrip("\n")
        if answer.isprintable():
            return answer
        # An arrow key, say: ./configure would get it, and no recipe can hold it.
        text.tell("  that line has characters that cannot be printed; type it again")
    raise RecipeError(
        f"The input ended before {question.variable} was answered",
        remedy=f"Run '{invoke('record')}' again; what was answered before is kept.",
    )


def show(recorded: "RecordedDialogue", recipe: str) -> None:
    """Print what the recipe gained; its path on stdout."""
    for question in recorded.questions:
        text.tell(f"  [[configure.prompts]] {question.variable}")
    for variable in recorded.answers:
        text.tell(f"  [configure.answers] {variable}")
    for line in recorded.lines:
        text.tell(f"  [configure.bazelrc] {line}")
    if not (recorded.questions or recorded.answers or recorded.lines):
        text.tell("The recipe answers all that ./configure asks; nothing was written.")
    text.then(f"invoke build --recipe {recipe} --until configure")
    print(recorded.path)
