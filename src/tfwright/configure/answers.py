"""The answers of one build: the recipe's, and what this host adds to them."""

from collections.abc import Mapping
from pathlib import Path

from tfwright.configure import catalogue
from tfwright.configure.bazelrc import as_text
from tfwright.configure.catalogue import Answer, Answers
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release

UNKNOWN_PYTHON = {"PYTHON_BIN_PATH": "@PYTHON_BIN_PATH@", "PYTHON_LIB_PATH": "@PYTHON_LIB_PATH@"}
"""Stands for the target Python where its place is not known yet."""
BASE_PATHS_SINCE = Release(1, 14)
"""From here on, one question for the base paths of CUDA and cuDNN replaces one for each."""


def complete(
    recipe: Recipe,
    host_file: HostFile,
    python: Mapping[str, str],
    cuda: Path | None = None,
    cudnn: Path | None = None,
) -> Answers:
    """Return the recipe's answers together with the target Python and the places of CUDA.

    The host file decides about those places before the recipe does; `cuda` and `cudnn`, as found
    on this host, stand in where neither says anything.
    """
    answers: dict[str, Answer] = {**recipe.configure.answers, **python}
    if not answers.get("TF_NEED_CUDA"):
        return answers
    toolkit = host_file.cuda or answers.get("CUDA_TOOLKIT_PATH") or cuda
    library = host_file.cudnn or answers.get("CUDNN_INSTALL_PATH") or cudnn or toolkit
    if toolkit and recipe.source.release <= Release(2, 17):
        answers |= {"CUDA_TOOLKIT_PATH": str(toolkit), "CUDNN_INSTALL_PATH": str(library)}
        if recipe.source.release >= BASE_PATHS_SINCE:
            answers["TF_CUDA_PATHS"] = ",".join(
                dict.fromkeys([*_first(recipe, host_file, toolkit, library), *_paths(recipe)])
            )
    return answers


def _paths(recipe: Recipe) -> list[str]:
    """Return the base paths that a recipe answers."""
    return [
        path for path in str(recipe.configure.answers.get("TF_CUDA_PATHS") or "").split(",") if path
    ]


def _first(recipe: Recipe, host_file: HostFile, *found: object) -> list[str]:
    """Return the base paths that come before the recipe's: those of the host file, or what was found if the recipe has none."""
    return [str(path) for path in (host_file.cuda, host_file.cudnn) if path] or (
        [] if _paths(recipe) else [str(path) for path in found]
    )


def exports(release: Release, system: str, answers: Answers, *, everything: bool) -> dict[str, str]:
    """Return the answers that ./configure is to find in its environment.

    These are the ones that it reads nowhere else, and all that it could ask for if `everything`
    is set. An answer that the release does not know is left out, since some would still act.
    """
    known = [
        prompt for prompt in catalogue.prompts(release, system) if everything or prompt.environment
    ]
    return {
        prompt.variable: _exported(prompt.variable, answers[prompt.variable], release)
        for prompt in known
        if prompt.variable in answers
    }


def _exported(variable: str, value: Answer, release: Release) -> str:
    # 1.5 takes any text that is not empty for a yes, here alone.
    no = "" if variable == "TF_SET_ANDROID_WORKSPACE" and release == Release(1, 5) else "0"
    return as_text(value, "1", no)
