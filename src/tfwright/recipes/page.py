"""The pages of recipes, new and record: the table of recipes, and what is asked for a recipe.

The table says what each recipe pins, how far it was verified, and whether it builds here.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfwright.build import verified
from tfwright.doctor import requirements
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError, invoke
from tfwright.printable import printable_lines, shell_word
from tfwright.terminal import text
from tfwright.terminal.text import Column, Part

if TYPE_CHECKING:
    from tfwright.configure.catalogue import Prompt
    from tfwright.recipes.recording import RecordedQuestion
    from tfwright.recipes.session import RecordedDialogue
    from tfwright.recipes.writing import NewRecipe


def ask_question(question: "RecordedQuestion") -> str:
    """Ask a person what ./configure asks; without a terminal, take its default.

    Raises RecipeError at the end of the input: Ctrl-D is not an answer.
    """
    if question.refused:
        text.tell(f"  {printable_lines(question.refused)}", text.WARNING)
    shown = question.text.strip()
    text.line(text.bold(question.variable), f": {printable_lines(shown)}", to=sys.stderr)
    if not sys.stdin.isatty():
        default = question.default or "an empty line"
        text.tell(f"  answered with its default, {default}: no terminal to ask on")
        return ""
    if (answer := text.read_line()) is not None:
        return answer
    raise RecipeError(
        f"The input ended before {question.variable} was answered",
        remedy=f"Run '{invoke('record')}' again; what was answered before is kept.",
    )


def show_new(made: "NewRecipe") -> None:
    """Print what is left to decide; the new file on stdout."""
    for line in made.open:
        # With standard output for the path alone, a script can take it.
        text.tell_labelled(text.warning("  decide: "), line, indent=10)
    argument = shell_word(str(made.path))
    text.next_commands(
        *([f"invoke pin --recipe {argument}"] if made.unpinned else []),
        f"invoke lint --recipe {argument}",
        f"invoke build --recipe {argument} --until configure",
    )
    print(made.path)


def ask_answer(prompt: "Prompt", default: str) -> str:
    """Ask a person for an answer in TOML's form; without a terminal, or for Enter, the default."""
    if not sys.stdin.isatty():
        return default
    # People type y or n; TOML writes true or false.
    shown = {"true": "Y/n", "false": "y/N"}.get(default, default) if prompt.yes_no else default
    while True:
        text.tell(f"{prompt.variable}: {prompt.wording} [{shown}]")
        reply = (text.read_line() or "").strip()
        if not reply:
            return default
        if not prompt.yes_no:
            # A JSON string is a TOML string, with the same escapes.
            return json.dumps(reply)
        for value, word in (("true", "yes"), ("false", "no")):
            if reply.lower() in {value, word, word[0]}:
                return value
        text.tell(f"  {reply!r} is neither yes nor no; type y or n")


def show_recorded(recorded: "RecordedDialogue", recipe: str) -> None:
    """Print what the recipe gained; its path on stdout."""
    for question in recorded.questions:
        text.tell(f"  [[configure.prompts]] {question.variable}")
    for variable in recorded.answers:
        text.tell(f"  [configure.answers] {variable}")
    for line in recorded.lines:
        text.tell(f"  [configure.bazelrc] {line}")
    if not (recorded.questions or recorded.answers or recorded.lines):
        text.tell("The recipe answers all that ./configure asks; nothing was written.")
    text.next_commands(f"invoke build --recipe {recipe} --until configure")
    print(recorded.path)


@dataclass(frozen=True)
class RecipeRow:
    """One recipe in the table of `invoke recipes`."""

    recipe: str
    tensorflow: str
    bazel: str
    python: str
    cuda: str
    cudnn: str
    platform: str
    patches: int
    builds_here: str
    verified: str
    """Until which stage, and when; empty if it never was."""
    stale: str
    """What changed since then."""
    fault: str = ""
    """Why it cannot be read."""


# Probes are kept for the process: all rows together ask this host's programs once.
def recipe_rows(host_file: HostFile) -> list[RecipeRow]:
    """Return a row for each recipe of recipes/."""
    found = []
    for name in recipes.names():
        try:
            found.append(_row(recipes.read(name), host_file))
        except RecipeError as fault:
            # The others can be chosen from all the same.
            row = RecipeRow(name, "-", "-", "-", "-", "-", "-", 0, "invalid", "", "", fault.what)
            found.append(row)
    return found


def _row(recipe: Recipe, host_file: HostFile) -> RecipeRow:
    host = recipe.host
    return RecipeRow(
        recipe=recipe.name,
        tensorflow="-" if recipe.source.own_interface else str(recipe.source.release),
        bazel=recipe.bazel.version,
        python=host.python,
        cuda=host.cuda or "-",
        cudnn=host.cudnn or "-",
        platform=host.system if host.system == "any" else f"{host.system}-{host.machine}",
        patches=len(recipe.source.patches),
        # `invoke toolkit` may have made the CUDA of this recipe.
        builds_here=requirements.obstacle(recipe, host_file.of(recipe)) or "yes",
        verified=str(recipe.verified or ""),
        stale=verified.stale(recipe),
    )


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
    Column("builds here", cut="end", least=14),
)


def show_recipes(rows: Sequence[RecipeRow]) -> None:
    """Print the recipes as a table."""
    text.table(COLUMNS, map(_cells, rows), empty="The directory recipes/ holds no recipe.")
    if any(row.stale for row in rows):
        text.tell(
            "stale: the recipe changed after that run, or the run recorded no checksums of it; "
            "'invoke build --recipe R --verified-by NAME' verifies it again"
        )
    for row in rows:
        if row.fault:
            text.tell(f"{row.recipe}: {row.fault}")


def _cells(row: RecipeRow) -> tuple[Part, ...]:
    until = text.good(row.verified) if row.verified else text.warning("unverified")
    if row.stale:
        # The reason comes first, since a narrow terminal cuts the end. The line below the table
        # says what no checksums mean; in a narrow column the stage says more.
        reason = "" if row.stale == verified.NO_CHECKSUMS else f"{row.stale}; "
        until = text.warning(f"stale: {reason}{row.verified}")
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
        until,
        builds,
    )
