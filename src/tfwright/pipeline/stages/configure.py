"""Answers ./configure, and renders the .tf_configure.bazelrc that the build uses.

The real ./configure runs, on a terminal of its own and in an environment of its own. What it
writes is compared with what the template gives for the same answers; if they agree, the rendered
file takes its place.
"""

import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tfwright.configure import answering, bazelrc, catalogue
from tfwright.configure.answers import UNKNOWN_PYTHON, complete, exports
from tfwright.configure.catalogue import Answers
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ConfigureTable, Recipe
from tfwright.documents.release import Release
from tfwright.errors import Evidence, RecipeError, ToolError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Step, Writes
from tfwright.tools import files, git
from tfwright.tools.process import dialogue, environment, runner
from tfwright.tools.process.runner import Command
from tfwright.tools.render import TEMPLATES

_TOO_OLD = re.compile(r"Please upgrade your bazel installation to version (\S+) or higher")
_TOO_NEW = re.compile(r"Please downgrade your bazel installation to version (\S+) or lower")
_CRASH = re.compile(r"Traceback \(most recent call last\):.*", re.DOTALL)
LAST_THAT_CLEANS = Release(1, 2)
"""Up to here ./configure makes Bazel clean, expunge and fetch, which is not its business here."""
LAST_WITH_SERVER = Release(1, 3)
"""Up to here it starts Bazel without --batch, and leaves a server behind."""


def run(job: Job, recipe: Recipe, host: HostFacts, inputs: Inputs, tree: Tree) -> Configured:
    """Configure a tree that is otherwise clean; leave no half-written bazelrc if it fails."""
    table = recipe.configure
    python = {
        "PYTHON_BIN_PATH": str(inputs.python),
        "PYTHON_LIB_PATH": _site_packages(job, inputs.python),
    }
    answers = complete(recipe, job.host_file, python, host.cuda, host.cudnn)
    rendered = _render(tree.release, host.system, answers, table, host.python)
    command = _command(job, recipe, tree.path, host.system, answers, tree.epoch)
    _prepare_programs(job, inputs, tree.release)
    git.restore(tree.path)
    with _whole_or_nothing([tree.path / name for name in bazelrc.written_in(tree.release)]):
        asked = _converse(job, recipe, command, host.system, answers)
        never_asked = _never_asked(job, table, tree.release, host.system, asked)
        _agree(rendered, _written(tree), job.log("configure"))
        target = tree.path / bazelrc.name(tree.release)
        files.write(target, rendered)
    return Configured(
        bazelrc=Artefact.of(target),
        asked=asked,
        never_asked=never_asked,
        exported=bazelrc.exported(tree.release, answers),
    )


def inputs(job: Job) -> Mapping[str, str]:
    """Return the digests of the template and the catalogue, and the places that the host file gives."""
    host_file = job.host_file
    return {
        f"templates/{bazelrc.TEMPLATE}": files.sha256(TEMPLATES / bazelrc.TEMPLATE),
        catalogue.FILE.name: files.sha256(catalogue.FILE),
        "the host file's cuda and cudnn": f"{host_file.cuda} {host_file.cudnn}",
    }


def steps(job: Job, recipe: Recipe, fetched: Inputs | None, tree: Tree | None) -> Sequence[Step]:
    """Return the run of ./configure and the file that takes the place of the one it writes."""
    system = _system(recipe)
    python = {
        **UNKNOWN_PYTHON,
        **({"PYTHON_BIN_PATH": str(fetched.python)} if fetched and fetched.programs else {}),
    }
    answers = complete(recipe, job.host_file, python)
    command = _command(job, recipe, job.places.tree, system, answers, tree.epoch if tree else 0)
    target = job.places.tree / bazelrc.name(recipe.source.release)
    return (command, Writes(target, rendered(recipe, job.host_file)))


def rendered(recipe: Recipe, host_file: HostFile) -> str:
    """Return the bazelrc that the recipe gives on this host, as far as that is known without a tree.

    Places that are not known yet stand as ``@NAME@``. Raises RecipeError naming what the recipe
    does not answer.
    """
    release = recipe.source.release
    answers = complete(
        recipe,
        host_file,
        UNKNOWN_PYTHON,
        Path("@CUDA_TOOLKIT_PATH@"),
        Path("@CUDNN_INSTALL_PATH@"),
    )
    wanted = recipe.host.python
    version = wanted if wanted != "any" else str(sys.version_info.major)
    return _render(release, _system(recipe), answers, recipe.configure, version)


def _system(recipe: Recipe) -> str:
    """Return the system that the recipe is for; ours, where it fits any."""
    return platform.system() if recipe.host.system == "any" else recipe.host.system


def _render(
    release: Release, system: str, answers: Answers, table: ConfigureTable, python: str
) -> str:
    """Render the file, once it is certain that no expected question lacks its answer."""
    lacking = catalogue.unanswered(release, system, answers)
    if lacking:
        raise answering.missing(lacking)
    return bazelrc.render(release, system, answers, by=table.by, python=python)


def _site_packages(job: Job, python: Path) -> str:
    """Ask the target Python where its packages lie."""
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    command = Command((str(python), "-c", code), job.places.own, environment.clean(job.places.home))
    return runner.run(
        command,
        job.log("configure-python"),
        remedy="Run 'invoke build --again fetch' to make the target Python's venv anew.",
    ).strip()


def _command(
    job: Job, recipe: Recipe, tree: Path, system: str, answers: Answers, epoch: int
) -> Command:
    """Return the run of ./configure: first on its PATH are the pinned Bazel and the target Python."""
    everything = recipe.configure.by == "environment"
    given = exports(recipe.source.release, system, answers, everything=everything)
    return Command(
        (str(tree / "configure"),),
        tree,
        environment.clean(job.places.home, (job.places.programs,), epoch, given),
    )


def _prepare_programs(job: Job, inputs: Inputs, release: Release) -> None:
    """Put `bazel` and `python` under these very names into a directory for PATH.

    Scripts and no links: a venv's Python that is started through a link does not find its venv.
    """
    bazel = f'exec "{inputs.bazel.path}"'
    if release <= LAST_WITH_SERVER:
        bazel += " --batch"
    if release <= LAST_THAT_CLEANS:
        bazel = f'case "$1" in clean | fetch) exit 0 ;; esac\n{bazel}'
    python = f'exec "{inputs.python}"'
    for name, line in {"bazel": bazel, "python": python, "python3": python}.items():
        files.write(job.places.programs / name, f'#!/bin/sh\n{line} "$@"\n', mode=0o755)


@contextmanager
def _whole_or_nothing(paths: Sequence[Path]) -> Iterator[None]:
    """Take away the files that ./configure writes: old ones before it runs, half ones after it failed."""
    for path in paths:
        files.remove(path)
    try:
        yield
    except BaseException:
        for path in paths:
            files.remove(path)
        raise


def _converse(
    job: Job, recipe: Recipe, command: Command, system: str, answers: Answers
) -> tuple[str, ...]:
    """Run ./configure to its end; return the variables that it asked for."""
    table, release = recipe.configure, recipe.source.release
    respondent = (answering.Typist if table.by == "dialogue" else answering.Watcher)(
        release, system, answers
    )
    spoken = dialogue.converse(command, job.log("configure"), respondent, timeout=table.timeout)
    written = [command.cwd / name for name in bazelrc.written_in(release)]
    if spoken.status != 0 or not all(path.is_file() for path in written):
        _explain(job, recipe.bazel.version, command, spoken)
    return tuple(respondent.asked)


def _explain(job: Job, version: str, command: Command, spoken: dialogue.Spoken) -> NoReturn:
    """Say why ./configure wrote nothing, whatever its exit status: several releases exit with 0 then."""
    crash = _CRASH.search(spoken.text)
    evidence = Evidence(
        command=command.argv,
        status=spoken.status,
        log=job.log("configure"),
        lines=dialogue.last_lines(crash[0] if crash else spoken.text),
    )
    pinned = f"the recipe pins Bazel {version}"
    if old := _TOO_OLD.search(spoken.text):
        raise RecipeError(
            f"This TensorFlow wants Bazel {old[1]} or newer; {pinned}",
            remedy=f'Set version = "{old[1]}" in [bazel].',
            evidence=evidence,
        )
    if new := _TOO_NEW.search(spoken.text):
        raise RecipeError(
            f"This TensorFlow wants Bazel {new[1]} or older; {pinned}",
            remedy=f'Set version = "{new[1]}" in [bazel].',
            evidence=evidence,
        )
    if crash:
        raise ToolError(
            f"./configure crashed: {evidence.lines[-1]}",
            remedy="Correct the answer that it fell over; its questions stand in the log.",
            evidence=evidence,
        )
    ending = (
        f"exited with status {spoken.status}"
        if spoken.status
        else "exited with status 0 and wrote no bazelrc"
    )
    raise ToolError(
        f"./configure {ending}", remedy="Do what its last lines ask for.", evidence=evidence
    )


def _never_asked(
    job: Job, table: ConfigureTable, release: Release, system: str, asked: Sequence[str]
) -> tuple[str, ...]:
    """Return the recipe's answers that nobody wanted; a yes among them is an error."""
    taken = set(asked) | set(
        exports(release, system, table.answers, everything=table.by == "environment")
    )
    rest = tuple(variable for variable in table.answers if variable not in taken)
    wanted = [variable for variable in rest if table.answers[variable] is True]
    if wanted:
        raise RecipeError(
            f"The recipe wants {', '.join(wanted)}, and ./configure never asked for it: it would be left out without a word",
            remedy=f"Take the answer out of the recipe if TensorFlow {release} has no such question on {system}; the log holds all that were asked.",
            evidence=Evidence(log=job.log("configure")),
        )
    if rest:
        job.listener.note(f"never asked for: {', '.join(rest)}")
    return rest


def _written(tree: Tree) -> str:
    """Return all that ./configure wrote for Bazel."""
    return "\n".join(
        (tree.path / name).read_text("utf-8") for name in bazelrc.written_in(tree.release)
    )


def _agree(rendered: str, written: str, log: Path) -> None:
    """Insist that the template and TensorFlow say the same."""
    difference = bazelrc.compare(rendered, written)
    if difference:
        raise ToolError(
            f"What ./configure wrote is not what {bazelrc.TEMPLATE} renders from the same answers",
            remedy="If the answers are right and TensorFlow is unchanged, correct the template; if a patch changed configure, add its lines there.",
            evidence=Evidence(log=log, lines=difference.lines()),
        )
