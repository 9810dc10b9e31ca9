"""Where a recipe expects CUDA and cuDNN on this host."""

from pathlib import Path

from tfwright.recipe import Recipe
from tfwright.release import Release
from tfwright.settings import Settings

HERMETIC_SINCE = Release(2, 18)
"""From here on Bazel downloads CUDA; https://www.tensorflow.org/install/source says how."""


def needed(recipe: Recipe) -> bool:
    """Say whether the recipe builds with a CUDA that must be installed."""
    return recipe.configure.answers.get("TF_NEED_CUDA") is True and recipe.source.release < HERMETIC_SINCE


def toolkit(recipe: Recipe, settings: Settings) -> Path:
    """Return where the CUDA toolkit must be: the host file's place, else what the recipe answers."""
    return settings.cuda or _answered(recipe, "CUDA_TOOLKIT_PATH") or Path("/usr/local/cuda")


def cudnn(recipe: Recipe, settings: Settings) -> Path:
    """Return where cuDNN must be: by default with the toolkit, as TensorFlow has it."""
    return settings.cudnn or _answered(recipe, "CUDNN_INSTALL_PATH") or toolkit(recipe, settings)


def present(recipe: Recipe, settings: Settings) -> tuple[Path | None, Path | None]:
    """Return the toolkit and the cuDNN that a recipe needs and this host has."""
    if not needed(recipe):
        return None, None
    places = toolkit(recipe, settings), cudnn(recipe, settings)
    return places[0] if places[0].is_dir() else None, places[1] if places[1].is_dir() else None


def _answered(recipe: Recipe, variable: str) -> Path | None:
    """Return the path that a recipe answers; from 1.14 on it is the first of TF_CUDA_PATHS."""
    answers = recipe.configure.answers
    path = str(answers.get(variable) or answers.get("TF_CUDA_PATHS") or "").partition(",")[0]
    return Path(path) if path else None
