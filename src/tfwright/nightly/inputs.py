"""What a build was made from, kept next to it: the recipe, its patches and the lock file.

`invoke bisect` needs both ends exactly as they were. The recipe's file, the patches and the lock
file change after a build, and a build that failed has no wheel whose record would hold them.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tfwright.documents.recipe import Recipe, SourceTable
from tfwright.tools import files
from tfwright.wheel.seal import build_record
from tfwright.wheel.seal.build_record import RecipeContent

FOLDER = "inputs"
RECIPE = "recipe.json"
LOCK = "recipe.lock"
PATCHES = "patches"


@dataclass(frozen=True)
class KeptInputs:
    """The inputs of one build."""

    recipe: Recipe
    locked: Path | None = None
    """The lock file; None if the recipe had none."""


def keep(inputs: KeptInputs, build: Path) -> None:
    """Copy the inputs of a build into its directory."""
    folder = build / FOLDER
    put_patches(inputs.recipe.source, folder)
    content = build_record.recipe_content(inputs.recipe)
    files.write(folder / RECIPE, content.model_dump_json(indent=1))
    if inputs.locked and inputs.locked.is_file():
        shutil.copyfile(inputs.locked, folder / LOCK)


def put_patches(source: SourceTable, folder: Path) -> SourceTable:
    """Copy the patches and assets of a source into `folder`; return the source that uses them."""
    for name in source.named_files:
        target = folder / PATCHES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.file(name), target)
    return source.located(folder)


def read(build: Path) -> KeptInputs | None:
    """Return the inputs of a build; None if it has none, or none that this version can read."""
    folder = build / FOLDER
    try:
        text = files.content(folder / RECIPE)
        kept = RecipeContent.model_validate_json(text)
        recipe = build_record.recipe_of(kept)
    except (OSError, ValidationError):
        return None
    # Its own patches come first: those of the checkout may be others by now.
    own = recipe.changed(source=recipe.source.located(folder))
    lock = folder / LOCK
    return KeptInputs(own, files.existing(lock))
