"""Why ./configure ended without writing its file, as its output tells."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tfwright.configure.interview import By
from tfwright.documents.recipe import Recipe
from tfwright.errors import Evidence, RecipeError, TfwrightError, ToolError, invoke
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command
from tfwright.tools.process.dialogue import Spoken

_TOO_OLD = re.compile(r"Please upgrade your bazel installation to version (\S+) or higher")
_TOO_NEW = re.compile(r"Please downgrade your bazel installation to version (\S+) or lower")
_CRASH = re.compile(r"Traceback \(most recent call last\):.*", re.DOTALL)
_NOT_FOUND = re.compile(
    r"Could not find any (?P<what>\S+?)\*?(?: matching version '(?P<version>[^']*)')? "
)
SEARCHED_FILES = 20
"""Lines of a report that some file was not found: the first is the reason, then folders follow."""


def configure_error(
    spoken: Spoken, command: Command, log: Path, recipe: Recipe, asked: Sequence[str]
) -> TfwrightError:
    """Return the error that says why ./configure failed; `asked` are the variables it asked for."""
    # The status proves nothing: several releases exit with 0 after an error.
    crash = _CRASH.search(spoken.text)
    lines = dialogue.last_lines(crash[0] if crash else spoken.text)
    evidence = Evidence(command=command.argv, status=spoken.status, log=log, lines=lines)
    # Up to 1.12 configure.py exits with 0 after this, having written nothing.
    for pattern, limit in ((_TOO_OLD, "newer"), (_TOO_NEW, "older")):
        found = pattern.search(spoken.text)
        if found:
            return RecipeError(
                f"This TensorFlow wants Bazel {found[1]} or {limit}; the recipe pins "
                f"Bazel {recipe.bazel.version}",
                remedy=f'Set version = "{found[1]}" in [bazel].',
                evidence=evidence,
            )
    # What find_cuda_config.py (1.14 and later) did not find comes before the crash that follows.
    # The last one: a first search runs before any question, and may fail harmlessly.
    if missing := [*_NOT_FOUND.finditer(spoken.text)][-1:]:
        found = missing[0]
        version = f" of version {found['version']}" if found["version"] else ""
        rest = spoken.text[found.start() :].splitlines()[:SEARCHED_FILES]
        searched = tuple(line.rstrip()[: dialogue.LONGEST_LINE] for line in rest if line.strip())
        return RecipeError(
            f"./configure did not find {found['what']}{version} in the places of CUDA",
            remedy="Correct the version in [configure.answers], or the places of CUDA and cuDNN "
            f"in the host file; '{invoke('doctor')}' shows what they hold.",
            evidence=replace(evidence, lines=searched),
        )
    if crash:
        return ToolError(
            f"./configure crashed: {lines[-1]}",
            remedy=_crash_remedy(asked, recipe.configure.by),
            evidence=evidence,
        )
    status = spoken.status
    ending = f"exited with status {status or '0 and wrote no bazelrc'}"
    if status < 0:
        ending = f"was ended by signal {-status}"
    remedy = "Its last lines say what it needs."
    if not lines:
        shell = invoke("shell --stage configure")
        remedy = f"It printed nothing; '{shell}' opens a shell in its place."
    elif status == 0:
        remedy = "Its last lines say how far it came; add a patch, so that it writes the file."
    return ToolError(f"./configure {ending}", remedy=remedy, evidence=evidence)


def _crash_remedy(asked: Sequence[str], by: By) -> str:
    if asked:
        return f"Correct what answers {asked[-1]}: it crashed after that question."
    # All answers were there before it started: nothing shows which of them it read last.
    if by == "environment":
        return (
            'Set by = "dialogue" in [configure]: the last question then shows the answer '
            "that it does not take."
        )
    return (
        "No answer is at fault: it crashed before its first question. Correct the line that "
        "the traceback names, by a patch, or choose another Python in [host]."
    )
