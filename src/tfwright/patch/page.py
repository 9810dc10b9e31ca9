"""The page of patch: what is asked about a patch, and what was written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.errors import RecipeError
from tfwright.printable import shell_word
from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.patch.writing import WrittenPatch
    from tfwright.tools.git.patching import PatchHeader

QUESTIONS = {
    "why": ("--why", "What fails without it, with the message that people search for"),
    "upstream": ("--upstream", "Where it was reported or solved, or 'none' and the reason"),
    "drop_when": ("--drop-when", "What must be true for it to go"),
}


def ask_header(header: "PatchHeader") -> "PatchHeader":
    """Return a complete header; what is missing is asked for on a terminal.

    Raises RecipeError where there is none to ask.
    """
    answers = dict(vars(header))
    # A header is required: a patch without its reason is never dropped again.
    lacking = [field for field, value in answers.items() if not value.strip()]
    if lacking and not sys.stdin.isatty():
        options = " and ".join(QUESTIONS[field][0] for field in lacking)
        raise RecipeError(
            "The header of the patch is not complete",
            remedy=f"Add {options}, each with a sentence.",
        )
    for field in lacking:
        while not answers[field].strip():
            text.tell(f"{QUESTIONS[field][1]}:")
            # An empty line asks again; the end of the input cannot.
            if (line := text.read_line()) is None:
                raise RecipeError("No answer was given", remedy="Run the command again.")
            answers[field] = line
    return type(header)(**{field: value.strip() for field, value in answers.items()})


def show_tree(tree: Path, recipe: str, which: str) -> None:
    """Say where to edit, and what to run afterwards."""
    from tfwright.patch.writing import unresolved_files

    left = unresolved_files(tree)
    text.tell(f"Edit the files in {tree}")
    for file in left:
        kind = "did not fit" if file.endswith(".rej") else "in conflict"
        text.tell(f"  {kind}: {file}", text.WARNING)
    if left:
        text.tell("Make these changes by hand; delete git's marks, and each FILE.rej.")
    text.next_commands(f"invoke patch --recipe {recipe} --refresh {shell_word(which)} --write")
    print(tree)


def show_patch(written: "WrittenPatch", recipe: str = "") -> None:
    """Print the path of a patch; what it changes goes to standard error."""
    for file in written.files:
        text.tell(f"  changes {file}")
    if written.added:
        text.tell("  entered at the end of source.patches")
    for name in written.left_out:
        text.tell(f"  left out: {name}, which .gitignore of the tree names", text.WARNING)
    for name in written.shared:
        text.tell(f"  {name} has this patch, too: see that it still fits there", text.WARNING)
    for name in written.unfit:
        text.tell(f"  {name} comes later, and does not fit after it", text.WARNING)
    if written.unfit:
        first = shell_word(written.unfit[0])
        text.next_commands(f"invoke patch --recipe {recipe} --refresh {first}")
    print(written.path)
