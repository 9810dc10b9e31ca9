"""Where a recipe expects CUDA and cuDNN on this host, and which GPUs it builds for."""

import re
from collections.abc import Iterable
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.facts.compatibility import is_older, version_numbers
from tfwright.host.place import Place

HERMETIC_SINCE = Release(2, 18)
"""From here on Bazel downloads CUDA; https://www.tensorflow.org/install/source says how."""


def wanted(recipe: Recipe) -> bool:
    """Say whether the recipe builds with CUDA, wherever that comes from."""
    return recipe.configure.answers.get("TF_NEED_CUDA") is True


def version(recipe: Recipe) -> str:
    """Return the CUDA that a recipe is for: as it says of the host, or else answers ./configure."""
    answers = recipe.configure.answers
    # From 2.18 on the variable has another name.
    answered = answers.get("TF_CUDA_VERSION") or answers.get("HERMETIC_CUDA_VERSION")
    return recipe.host.cuda or str(answered or "")


def needed(recipe: Recipe) -> bool:
    """Say whether the recipe builds with a CUDA that must be installed."""
    return wanted(recipe) and recipe.source.release < HERMETIC_SINCE


def toolkit(recipe: Recipe, host_file: HostFile) -> Path:
    """Return where the CUDA toolkit must be: as the host file says, else as the recipe says."""
    return host_file.cuda or _answered(recipe, "CUDA_TOOLKIT_PATH") or Path("/usr/local/cuda")


def cudnn(recipe: Recipe, host_file: HostFile) -> Path:
    """Return where cuDNN must be: by default with the toolkit, as TensorFlow has it."""
    return host_file.cudnn or _answered(recipe, "CUDNN_INSTALL_PATH") or toolkit(recipe, host_file)


def prefixes(recipe: Recipe, host_file: HostFile) -> list[Path]:
    """Return where CUDA's libraries may be: from 1.14 on, in any of TF_CUDA_PATHS."""
    paths = str(recipe.configure.answers.get("TF_CUDA_PATHS") or "").split(",")
    named = [Path(path) for path in paths if path]
    # A dictionary keeps the order, in which the first place that has a library wins.
    return list(dict.fromkeys([cudnn(recipe, host_file), *named]))


def of_host(recipe: Recipe, host_file: HostFile) -> bool:
    """Say whether a recipe's CUDA lies on the host, where an image sees what the host file names.

    Otherwise it lies in the image, whose digest decides it.
    """
    return recipe.host.image is None or host_file.cuda is not None


def present(recipe: Recipe, host_file: HostFile, place: Place) -> tuple[Path | None, Path | None]:
    """Return the toolkit and the cuDNN that a recipe needs and a host has."""
    if not needed(recipe):
        return None, None
    cuda = toolkit(recipe, host_file)
    library = cudnn(recipe, host_file)
    return (cuda if place.exists(cuda) else None, library if place.exists(library) else None)


def capabilities(recipe: Recipe) -> list[str]:
    """Return the compute capabilities that a recipe makes machine code for, as ``12.0``."""
    answers = recipe.configure.answers
    text = str(
        answers.get("TF_CUDA_COMPUTE_CAPABILITIES")
        or answers.get("HERMETIC_CUDA_COMPUTE_CAPABILITIES")
        or ""
    )
    return of_machine_code(filter(None, text.split(",")))


def of_machine_code(names: Iterable[str]) -> list[str]:
    """Return the compute capabilities of some GPU code, which is named ``sm_120`` or ``12.0``."""
    # compute_120 is PTX, which the driver compiles, and lto_120 is for a linker.
    return [capability(name) for name in names if not name.startswith(("compute_", "lto_"))]


def capability(text: str) -> str:
    """Return a compute capability as NVIDIA writes it, ``3.0``, from that or from ``sm_30``."""
    # The last digit is the minor version: sm_120 is 12.0.
    found = re.fullmatch(r"(?:sm_|compute_)(\d+)(\d)[af]?", text)
    return f"{found[1]}.{found[2]}" if found else text.rstrip("af")


def runs_on(built: list[str], gpu: str) -> bool:
    """Say whether machine code for some compute capabilities runs on a GPU."""
    # It runs on GPUs of the same major version whose minor version is the same or higher.
    major = version_numbers(gpu)[:1]
    # No number at all: an index is written by strangers, and a recipe by people.
    alike = [made_for for made_for in built if version_numbers(made_for)[:1] == major]
    return any(not is_older(gpu, made_for) for made_for in alike)


def _answered(recipe: Recipe, variable: str) -> Path | None:
    """Return the path that a recipe answers; from 1.14 on it is the first of TF_CUDA_PATHS."""
    answers = recipe.configure.answers
    text = str(answers.get(variable) or answers.get("TF_CUDA_PATHS") or "")
    path = text.partition(",")[0]
    return Path(path) if path else None
