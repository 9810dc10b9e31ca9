"""Jobs of other engines that carry out one build order: text for people to put into their files."""

import json
import re

from pydantic import BaseModel

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.nightly.builds import BuildOrder, NightlyBuild
from tfwright.nightly.fleets import Rebuilt
from tfwright.tools.render import render

ENGINES = ("kubernetes", "gitlab", "github", "buildkite")
SCHEMA = "schema"
IMAGE = "registry.example/tfwright:latest"
"""Stands for an image with tfwright's checkout in /srv/tfwright, where none is named."""
MINUTES = 960
"""After which an engine ends the job: twice the budget of a night."""
LONGEST_NAME = 52
"""Characters of a Kubernetes Job, whose pods have eleven more."""


def adapter(engine: str, recipe: str, image: str) -> str:
    """Return the job of an engine that builds a recipe, or the JSON schemas of an order."""
    if engine == SCHEMA:
        models: dict[str, type[BaseModel]] = {
            "order.json": BuildOrder,
            "built.json": NightlyBuild,
            "rebuilt.json": Rebuilt,
        }
        schemas = {name: model.model_json_schema() for name, model in models.items()}
        return json.dumps(schemas, indent=2) + "\n"
    if engine not in ENGINES:
        raise RecipeError(
            f"tfwright does not know the engine {engine!r}",
            remedy=f"Choose one of: {', '.join((*ENGINES, SCHEMA))}.",
        )
    if not re.fullmatch(r"[\w./:@-]+", image):
        raise RecipeError(f"{image!r} is not the name of an image", remedy="Correct --image.")
    # A name that no recipe has would fail only in the engine, an hour later.
    found = recipes.read(recipe)
    name = re.sub(r"[^a-z0-9.-]", "-", found.name.lower())[:LONGEST_NAME].strip(".-")
    values = {"name": name, "recipe": recipe, "image": image, "minutes": MINUTES}
    return render(f"adapter_{engine}.yaml.j2", values)
