"""Makes the wheel: by build_pip_package, or by collecting what the :wheel target made.

What it is called is found by looking into a directory that was empty before, never by guessing:
version, tags and normalised name are TensorFlow's to decide. Where the recipe says under which
names macOS finds the libraries that the wheel needs, they are written into it here.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tfwright.documents.recipe import (
    DESTINATION,
    TENSORFLOW_TARGET,
    WHEEL_TARGET,
    PackageTable,
    Recipe,
)
from tfwright.documents.release import Release
from tfwright.errors import Evidence, RecipeError, ToolError
from tfwright.pipeline.results import Built, Configured, Inputs, NcclOps, RawWheel, Tree
from tfwright.pipeline.stage import Artefact, Job, Step
from tfwright.pipeline.stages import source
from tfwright.tools import files
from tfwright.tools.process import environment, runner
from tfwright.tools.process.runner import Command
from tfwright.wheel import archive, relinking
from tfwright.wheel.binary.load_commands import WantedCommands

FIRST_WITH_PROJECT_NAME = Release(1, 9)
"""Before it, --gpu and --nightly_flag choose among fixed names."""


def run(
    job: Job,
    table: PackageTable,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
    built: Built,
    nccl: NcclOps,
) -> RawWheel:
    """Make the wheel with the tree's own means."""
    for folder in (_destination(job), _scratch(job)):
        files.remove(folder)
        folder.mkdir(parents=True)
    if built.target == WHEEL_TARGET:
        _collect(built, _destination(job))
    else:
        job.recipe.insist_on_wheel()
        remedy = "Look into the log; 'invoke shell --stage package' opens a shell there."
        runner.run(_command(job, table, tree.epoch), job.log("package"), remedy=remedy)
    wheel = _only_wheel(job)
    if table.libraries or table.rpath:
        _relink(job, table, wheel)
    return RawWheel(wheel=Artefact.of(wheel))


def steps(job: Job) -> Sequence[Step]:
    """Return the run of build_pip_package, where there is one."""
    return (
        (_command(job, job.recipe.package, source.epoch(job)),)
        if job.recipe.compile.target != WHEEL_TARGET and _program(job.recipe)
        else ()
    )


def _program(recipe: Recipe) -> str:
    """Return the path, in the tree, of the program that makes the wheel; empty if none does."""
    if recipe.package.program:
        return recipe.package.program
    if recipe.compile.target == TENSORFLOW_TARGET:
        return "bazel-bin/tensorflow/tools/pip_package/build_pip_package"
    return ""


def _command(job: Job, table: PackageTable, epoch: int) -> Command:
    """Return the run of the program, from the root of the tree as TensorFlow's insists."""
    program = job.places.tree / _program(job.recipe)
    # Up to 1.8 the directory has to be the first word; the later ones take any order.
    arguments = [
        argument.replace(DESTINATION, str(_destination(job))) for argument in table.arguments
    ]
    argv = (str(program), *arguments, *_project_name(job.recipe, table), *table.flags)
    # The `python` that configure put there is the target's.
    env = environment.clean(
        job.places.home, (job.places.programs,), epoch, {"TMPDIR": str(_scratch(job))}
    )
    return Command(argv, job.places.tree, env)


def _project_name(recipe: Recipe, table: PackageTable) -> tuple[str, ...]:
    """Return the arguments that name the wheel; raise RecipeError where it cannot be named."""
    if table.project_name is None:
        return ()
    if recipe.source.release < FIRST_WITH_PROJECT_NAME:
        what = f"package.project_name: build_pip_package of TensorFlow {recipe.source.release} does not know --project_name"
        raise RecipeError(
            what,
            remedy='Choose among its fixed names with package.flags = ["--gpu"] or ["--nightly_flag"].',
        )
    return ("--project_name", table.project_name)


def _destination(job: Job) -> Path:
    return job.places.dist / "raw"


def _scratch(job: Job) -> Path:
    return job.places.dist / "scratch"


def _collect(built: Built, destination: Path) -> None:
    """Copy the wheels among a target's outputs."""
    for output in built.outputs:
        if output.path.suffix == ".whl":
            shutil.copyfile(output.path, destination / output.path.name)


def _only_wheel(job: Job) -> Path:
    """Return the one wheel that was made."""
    made = sorted(_destination(job).iterdir())
    if len(made) == 1 and made[0].suffix == ".whl":
        return made[0]
    log = job.log("package")
    evidence = Evidence(
        where=str(_destination(job)),
        log=log if log.is_file() else None,
        lines=[path.name for path in made],
    )
    raise ToolError(
        f"Packaging should have made one wheel, and made {len(made)} files",
        remedy="Look into the log for what it did instead.",
        evidence=evidence,
    )


def _relink(job: Job, table: PackageTable, path: Path) -> None:
    """Write into the wheel's macOS libraries where their own libraries are found, and say what changed."""
    with (
        archive.opened(path) as wheel,
        files.replacing(path) as temporary,
        temporary.open("w+b") as stream,
    ):
        changes = relinking.relink(wheel, stream, WantedCommands(table.libraries, table.rpath))
    for change, count in sorted(changes.items()):
        job.listener.note(f"{change}, in {count} {'library' if count == 1 else 'libraries'}")
    for name in table.libraries:
        if not any(change.startswith(f"{name} is now ") for change in changes):
            job.listener.note(
                f"package.libraries names {name}, which no library of the wheel asks for"
            )
