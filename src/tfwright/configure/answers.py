"""The answers of one build: the recipe's, and what this host adds to them."""

from collections.abc import Mapping
from pathlib import Path

from tfwright.configure.catalogue import Answer, Answers
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release

UNKNOWN_PYTHON = {"PYTHON_BIN_PATH": "@PYTHON_BIN_PATH@", "PYTHON_LIB_PATH": "@PYTHON_LIB_PATH@"}
"""Takes the place of the target Python until its path is known."""
BASE_PATHS_SINCE = Release(1, 14)
"""From here on, one question for the base paths of CUDA and cuDNN replaces one for each."""
LAST_WITH_TOOLKIT = Release(2, 17)
"""Later releases download CUDA themselves."""


def complete(
    recipe: Recipe,
    host_file: HostFile,
    python: Mapping[str, str],
    cuda: Path | None = None,
    cudnn: Path | None = None,
) -> Answers:
    """Return the recipe's answers together with the target Python and the places of CUDA.

    The host file decides about those places before the recipe does; `cuda` and `cudnn`, as found
    on this host, are used where neither says anything.
    """
    answers: dict[str, Answer] = {**recipe.configure.answers, **python}
    # Without CUDA no release asks for any of these places.
    if answers.get("TF_NEED_CUDA") is not True:
        return answers
    if recipe.source.own_interface:
        # Its own program asks for them, if at all.
        asked = {prompt.variable for prompt in recipe.configure.prompts}
        places = {
            "CUDA_TOOLKIT_PATH": host_file.cuda or cuda,
            "GCC_HOST_COMPILER_PATH": host_file.compiler,
        }
        found = {name: str(place) for name, place in places.items() if place and name in asked}
        return {**answers, **found}
    if answers.get("TF_NEED_TENSORRT") is True and recipe.host.tensorrt:
        answers.setdefault("TF_TENSORRT_VERSION", recipe.host.tensorrt)
    # Clang compiles CUDA code by itself; gcc is only asked for as the host compiler of nvcc.
    if host_file.compiler and answers.get("TF_CUDA_CLANG") is not True:
        answers["GCC_HOST_COMPILER_PATH"] = str(host_file.compiler)
    toolkit = host_file.cuda or answers.get("CUDA_TOOLKIT_PATH") or cuda
    # cuDNN is unpacked into the toolkit in most cases, so that is the last resort.
    library = host_file.cudnn or answers.get("CUDNN_INSTALL_PATH") or cudnn or toolkit
    if toolkit and recipe.source.release <= LAST_WITH_TOOLKIT:
        answers |= {"CUDA_TOOLKIT_PATH": str(toolkit), "CUDNN_INSTALL_PATH": str(library)}
        if recipe.source.release >= BASE_PATHS_SINCE:
            # find_cuda_config.py searches these bases in their order, and stops at the first hit:
            # those of the host file, then the recipe's; where neither has one, what was found.
            stated = [str(path) for path in (host_file.cuda, host_file.cudnn) if path]
            own = str(recipe.configure.answers.get("TF_CUDA_PATHS") or "").split(",")
            paths = [*stated, *filter(None, own)] or [str(toolkit), str(library)]
            answers["TF_CUDA_PATHS"] = ",".join(dict.fromkeys(paths))
    return answers
