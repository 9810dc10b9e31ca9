"""Builds a target in a process of its own, which the tests stop: run with the job as JSON."""

import json
import sys

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import CompileTable, Recipe
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stages import compile as stage
from tfwright.terminal import console

if __name__ == "__main__":
    values = json.loads(sys.argv[1])
    recipe = Recipe.model_validate(values["recipe"])
    job = RecipeJob(recipe=recipe, host_file=HostFile.model_validate(values["settings"]))
    table = CompileTable(target=values["target"])
    host = HostFacts.model_validate(values["HostFacts"])
    inputs = Inputs.model_validate(values["Inputs"])
    tree = Tree.model_validate(values["Tree"])
    configured = Configured.model_validate(values["Configured"])
    with console.sigterm_as_interrupt():
        stage.run(
            job, table, recipe.bazel, recipe.configure, recipe.nccl, host, inputs, tree, configured
        )
