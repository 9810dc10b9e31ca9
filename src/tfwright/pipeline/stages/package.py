"""Makes the wheel: by build_pip_package, or by collecting what the :wheel target made.

What it is called is found by looking into a directory that was empty before, never by guessing:
version, tags and normalised name are TensorFlow's to decide. Where the recipe says under which
names macOS finds the libraries that the wheel needs, they are written into it here.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tfwright.documents.recipe import (
    DESTINATION,
    TENSORFLOW_TARGET,
    WHEEL_TARGET,
    CompileTable,
    PackageTable,
)
from tfwright.errors import Evidence, RecipeError, ToolError, invoke
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Built, Configured, Inputs, NcclOps, RawWheel, Tree
from tfwright.pipeline.stage import Artefact, Step
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command

BUILD_PIP_PACKAGE = "bazel-bin/tensorflow/tools/pip_package/build_pip_package"
"""TensorFlow's own program that makes the wheel, up to 2.16."""


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
    destination = _wheel_directory(job)
    # Emptied first: a wheel of an earlier version has another name, and would stay.
    for folder in (destination, _scratch_directory(job)):
        files.remove(folder)
        folder.mkdir(parents=True)
    if built.target == WHEEL_TARGET:
        for output in built.outputs:
            # Copied, since seal must not change the output that Bazel's next run compares.
            if output.path.suffix == ".whl":
                shutil.copyfile(output.path, destination / output.path.name)
    else:
        command = _command(job, table, tree.epoch)
        if not Path(command.argv[0]).is_file():
            raise RecipeError(
                f"{command.argv[0]}, which makes the wheel, does not exist; "
                f"Bazel built {built.target}",
                remedy="Correct package.program, or compile.target, which has to build it.",
            )
        remedy = f"Look into the log; '{invoke('shell --stage package')}' opens a shell there."
        runner.run(command, job.log("package"), remedy=remedy)
    wheel = _only_wheel(job)
    if table.libraries or table.rpath:
        _relink_wheel(table, wheel, job.listener.note)
    return RawWheel(wheel=Artefact.of(wheel))


def steps(
    job: Job, table: PackageTable, compiling: CompileTable, tree: Tree | None
) -> Sequence[Step]:
    """Return the run of build_pip_package, where there is one."""
    if compiling.target != TENSORFLOW_TARGET and not table.program:
        return ()
    return (_command(job, table, tree.epoch if tree else 0),)


def _command(job: Job, table: PackageTable, epoch: int) -> Command:
    """Return the run of the program, from the root of the tree as TensorFlow's insists."""
    from tfwright.tools.process.command import clean_environment

    named = () if table.project_name is None else ("--project_name", table.project_name)
    # TensorFlow's script refers to bazel-bin, and stops anywhere but in the tree's root.
    program = job.places.tree / (table.program or BUILD_PIP_PACKAGE)
    # Up to 1.8 the directory has to be the first word; the later ones take any order.
    destination = str(_wheel_directory(job))
    arguments = [argument.replace(DESTINATION, destination) for argument in table.arguments]
    # The `python` that configure put there is the target's.
    programs, temporary = (job.places.programs,), {"TMPDIR": str(_scratch_directory(job))}
    env = clean_environment(job.places.home, programs, epoch, temporary)
    return Command((str(program), *arguments, *named, *table.flags), job.places.tree, env)


def _wheel_directory(job: Job) -> Path:
    return job.places.dist / "raw"


def _scratch_directory(job: Job) -> Path:
    return job.places.dist / "scratch"


def _only_wheel(job: Job) -> Path:
    """Return the one wheel that was made."""
    made = sorted(_wheel_directory(job).iterdir())
    # Two wheels, or a wheel and a stray file: choosing between them would be a guess.
    if len(made) == 1 and made[0].suffix == ".whl":
        return made[0]
    raise ToolError(
        f"Packaging should have made one wheel, and made {len(made)} files",
        remedy="Correct [package], or the flags or patches of the recipe, so that one wheel, and "
        "nothing else, is put there.",
        evidence=Evidence(
            where=str(_wheel_directory(job)),
            log=files.path_or_none(job.log("package")),
            lines=[path.name for path in made],
        ),
    )


def _relink_wheel(table: PackageTable, path: Path, note: Callable[[str], None]) -> None:
    """Write library names and search paths into the wheel's macOS libraries; report each change."""
    from tfwright.wheel import archive, relinking
    from tfwright.wheel.relinking import WantedCommands

    with (
        archive.open_wheel(path) as wheel,
        files.replacing(path) as temporary,
        temporary.open("w+b") as stream,
    ):
        changes = relinking.relink(wheel, stream, WantedCommands(table.libraries, table.rpath))
    for change, count in sorted(changes.items()):
        note(f"{change}, in {count} {'library' if count == 1 else 'libraries'}")
    for name in table.libraries:
        prefix = f"{name} is now "
        # Most likely a mistyped name, and the wheel still has the one that macOS cannot find.
        if not any(change.startswith(prefix) for change in changes):
            note(f"package.libraries names {name}, which no library of the wheel asks for")
