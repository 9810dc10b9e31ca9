"""The page of record: what ./configure asks, and what was written down."""

import sys
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Styled

if TYPE_CHECKING:
    from tfwright.commands.record import RecordedDialogue
    from tfwright.configure.recording import HeardQuestion


def ask(question: "HeardQuestion") -> str:
    """Ask a person what ./configure asks; without a terminal, take its default."""
    text.line(Styled(question.variable, text.HEADING), f": {question.text.strip()}")
    if not sys.stdin.isatty():
        shown = question.default or "an empty line"
        text.tell(f"  answered with its default, {shown}: no terminal to ask on")
        return ""
    return sys.stdin.readline().rstrip("\n")


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
    text.tell(f"Then: invoke build --recipe {recipe} --until configure")
    print(recorded.path)
