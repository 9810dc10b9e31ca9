"""What a recipe makes of its ./configure, before and without running it."""

import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tfwright.configure import validation
from tfwright.configure.answers import UNKNOWN_PYTHON, complete
from tfwright.configure.dialect import Dialect, of_recipe, of_tensorflow
from tfwright.configure.interview import Interview
from tfwright.configure.traits import Scripts
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ConfigureTable, Recipe
from tfwright.errors import RecipeError

UNKNOWN_CUDA = Path("@CUDA_TOOLKIT_PATH@")
UNKNOWN_CUDNN = Path("@CUDNN_INSTALL_PATH@")


class ConfiguredHost(NamedTuple):
    """What of a host decides the answers."""

    system: str
    """As ``uname -s`` names it."""
    python: str = "3"
    """The version of the target Python."""
    cuda: Path | None = None
    cudnn: Path | None = None


def interview(
    recipe: Recipe,
    host_file: HostFile,
    scripts: Scripts | None = None,
    python: Mapping[str, str] = UNKNOWN_PYTHON,
    host: ConfiguredHost | None = None,
) -> Interview:
    """Return the questions of a tree's ./configure, with the recipe's answers.

    `scripts` are the files of the tree that show what it asks and writes, where they can: a commit
    between two releases asks as it does. `python` answers the questions about Python. Without a
    host, paths that are not known yet are written ``@NAME@``.
    """
    if host is None:
        target = recipe.host.python
        # "any": only the first digit gets into the file.
        version = target if target != "any" else str(sys.version_info.major)
        host = ConfiguredHost(system(recipe), version, UNKNOWN_CUDA, UNKNOWN_CUDNN)
    answers = complete(recipe, host_file, python, host.cuda, host.cudnn)
    own = recipe.configure.prompts
    if recipe.source.own_interface:
        spoken = of_recipe(host.system, own)
    else:
        spoken = of_tensorflow(recipe.source.exact, host.system, own, scripts)
    return Interview(spoken, answers, recipe.configure.by, host.python)


def system(recipe: Recipe) -> str:
    """Return the system that the recipe is for; ours, where it fits any."""
    return platform.system() if recipe.host.system == "any" else recipe.host.system


def check_answers(interview: Interview) -> None:
    """Raise RecipeError for answers that cannot be meant, or for questions without an answer."""
    # A harmless fault changes nothing in the wheel; `remarks` reports it.
    serious = [fault for fault in validation.faults(interview) if not fault.harmless]
    found = [(str(fault), fault.remedy) for fault in serious]
    if missing := unanswered_error(interview):
        if not found:
            raise missing
        # Both at once: after a correction nothing else should come to light.
        found.append((missing.what, missing.remedy))
    if len(found) == 1:
        what, remedy = found[0]
        raise RecipeError(f"[configure.answers] {what}", remedy=remedy)
    if found:
        lines = [f"  {what}" for what, _ in found]
        raise RecipeError(
            "\n".join([f"[configure.answers] has {len(found)} faults:", *lines]),
            remedy="\n".join(dict.fromkeys(remedy for _, remedy in found)),
        )


def unanswered_error(interview: Interview) -> RecipeError | None:
    """Return the error for questions without an answer; None if there are none.

    A question that depends on an answer with a fault is not counted yet.
    """
    wrong = {fault.variable for fault in validation.faults(interview) if not fault.harmless}
    prompts = [
        prompt
        for prompt in interview.unanswered()
        if wrong.isdisjoint(re.findall(r"\w+", prompt.when or ""))
    ]
    if not prompts:
        return None
    from tfwright.configure import answering

    return answering.missing_answers(prompts)


def remarks(interview: Interview) -> list[str]:
    """Return a line for each answer that changes nothing."""
    faults = [fault for fault in validation.faults(interview) if fault.harmless]
    return [f"[configure.answers] {fault}. {fault.remedy}" for fault in faults]


def render(interview: Interview, table: ConfigureTable) -> str | None:
    """Render the file; return None where the recipe says nothing of an interface of its own."""
    from tfwright.configure import bazelrc, rendering

    changes = table.bazelrc
    answers = interview.answers.items()
    places = {name: value for name, value in answers if isinstance(value, str)}
    if not interview.dialect.own:
        return bazelrc.amend(rendering.render(interview), changes.adds, changes.omits, places)
    # Nothing is known of what such a program writes until somebody has recorded it.
    if not changes.lines:
        return None
    recorded = bazelrc.fill_places("\n".join(changes.lines), places)
    return bazelrc.amend(recorded, changes.adds, changes.omits, places)


def written_files(table: ConfigureTable, dialect: Dialect) -> tuple[str, ...]:
    """Return the paths, in the tree, of the files that ./configure writes for Bazel."""
    from tfwright.configure import bazelrc

    if table.writes:
        return (table.writes,)
    # Bazel reads .bazelrc at the root of each workspace, whoever wrote it.
    if dialect.own:
        return (".bazelrc",)
    own_file = dialect.traits["own_bazelrc"]
    return bazelrc.written_files(dialect.release, own_file=own_file)
