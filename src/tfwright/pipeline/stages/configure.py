"""Answers ./configure, and renders the .tf_configure.bazelrc that the build uses.

The real ./configure runs, on a terminal of its own and in an environment of its own. What it
writes is compared with what the template gives for the same answers; if they agree, the rendered
file takes its place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ConfigureTable, Recipe, is_bazelrc_line
from tfwright.documents.release import Release
from tfwright.errors import Evidence, RecipeError, ToolError, invoke
from tfwright.pipeline import questions
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Folder, Step, Writes
from tfwright.tools import files
from tfwright.tools.git.work_tree import WorkTree
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command

if TYPE_CHECKING:
    from tfwright.configure.answering import Answerer
    from tfwright.configure.interview import Interview


REVISION = 3
LAST_THAT_CLEANS = Release(1, 2)
"""Up to here ./configure makes Bazel clean, expunge and fetch, which is not its business here."""
LAST_WITH_SERVER = Release(1, 3)
"""Up to here it starts Bazel without --batch, and leaves a server behind."""
LONGEST_BAZELRC = 1 << 20
"""Bytes; what ./configure writes has a few kilobytes."""


def run(job: Job, recipe: Recipe, host: HostFacts, inputs: Inputs, tree: Tree) -> Configured:
    """Configure a tree that is otherwise clean; leave no half-written bazelrc if it fails."""
    from tfwright.configure import expected, rendering, traits

    table = recipe.configure
    python = _target_python(job, inputs)
    # An earlier ./configure may have edited tracked files; its edits are not part of the source.
    WorkTree(tree.path).restore()
    scripts = traits.scripts_in(tree.path)
    interview = questions.on_host(job, recipe, host, python, scripts)
    # Answers that cannot be meant are refused before a program of the tree runs.
    expected.insist_on_answers(interview)
    rendered = expected.render(interview, table)
    command = _command(job, table, tree.path, interview, tree.epoch)
    _require_program(tree.path, table)
    _prepare_programs(job, inputs, interview)
    written = expected.written_in(table, interview.dialect)
    with _whole_or_nothing([tree.path / name for name in written]):
        asked = _converse(job, recipe, command, interview, written)
        never_asked = _never_asked(job, table, interview, asked)
        _settle(job, tree.path, written, rendered, python)
        if recipe.source.interface == "own":
            _require_bazelrc(tree.path, written[0])
    plain, others = _strangers(tree.path)
    return Configured(
        bazelrc=Artefact.of(tree.path / written[0]),
        asked=asked,
        never_asked=never_asked,
        exported=rendering.exported(interview),
        written=tuple(map(Artefact.of, plain)),
        others=others,
        programs=Folder.of(job.places.programs),
    )


def _require_bazelrc(tree: Path, written: str) -> None:
    """Insist on the file that Bazel reads, which may import what the program writes."""
    if not (tree / ".bazelrc").is_file():
        raise RecipeError(
            f"Bazel reads .bazelrc, which the tree does not have, and not {written}",
            remedy='If the program can write it, set writes = ".bazelrc" in [configure]. Otherwise '
            f"add it by a patch, with the line: import %workspace%/{written}",
        )


def rehearse(
    job: Job,
    recipe: Recipe,
    parts: tuple[HostFacts, Inputs, Tree],
    respond: "Callable[[Interview], Answerer]",
) -> str:
    """Let somebody else answer ./configure in the tree; return what it writes for Bazel.

    Nothing that it writes stays, so that the stage runs again afterwards.
    """
    from tfwright.configure import expected, traits

    host, inputs, tree = parts
    WorkTree(tree.path).restore()
    python = _target_python(job, inputs)
    scripts = traits.scripts_in(tree.path)
    interview = questions.on_host(job, recipe, host, python, scripts)
    command = _command(job, recipe.configure, tree.path, interview, tree.epoch)
    _require_program(tree.path, recipe.configure)
    _prepare_programs(job, inputs, interview)
    written = expected.written_in(recipe.configure, interview.dialect)
    paths = [tree.path / name for name in written]
    with _whole_or_nothing(paths):
        _talk(job, recipe, command, respond(interview), written)
        text = _text_of(tree.path, written)
    for path in paths:
        files.remove(path)
    WorkTree(tree.path).restore()
    return text


def _target_python(job: Job, inputs: Inputs) -> dict[str, str]:
    """Return the answers to the questions about Python, which the fetched venv decides."""
    return {
        "PYTHON_BIN_PATH": str(inputs.python),
        # Stated as well: the default is the first of a
        # set, whose order changes before 2.5.
        "PYTHON_LIB_PATH": _site_packages(job, inputs.python),
    }


def _settle(
    job: Job, tree: Path, written: Sequence[str], rendered: str | None, places: Mapping[str, str]
) -> None:
    """Put the rendered file in the place of the written one, if the two agree."""
    if rendered is None:
        job.listener.note(f"{written[0]} was not checked: the recipe records none of its lines")
        return
    _agree(rendered, _text_of(tree, written), job.log("configure"), places)
    files.write(tree / written[0], rendered)


def damage(job: Job, configured: Configured) -> str | None:
    """Name a file that appeared in the tree after this stage."""
    known = {artefact.path for artefact in configured.written}
    plain, others = _strangers(job.places.tree)
    new = [path.name for path in plain if path not in known]
    new += sorted({*others} - {*configured.others})
    return f"{new[0]} is new in the tree" if new else None


def _strangers(tree: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Return a tree's files that are not of its commit, or not as there, and what is not a file.

    Of a link it is said where it leads: rules follow one to a directory.
    """
    plain, others = list[Path](), list[str]()
    for name in WorkTree(tree).strangers():
        path = tree / name
        if path.is_file():
            plain.append(path)
        elif path.is_symlink():
            others.append(f"{name} -> {path.readlink()}")
        # What is gone from the commit is named as well, by the stage before.
        elif path.exists():
            others.append(name)
    return plain, tuple(others)


def inputs(job: Job) -> Mapping[str, str]:
    """Return the digests of template and catalogues, and the places that the host file gives."""
    from tfwright.configure import catalogue, rendering, traits
    from tfwright.tools.render import TEMPLATES

    host_file = job.host_file
    # What tfwright knows of ./configure decides the rendered file, as the recipe does.
    documents = {
        f"templates/{rendering.TEMPLATE}": TEMPLATES / rendering.TEMPLATE,
        catalogue.FILE.name: catalogue.FILE,
        traits.FILE.name: traits.FILE,
    }
    return {
        **{name: files.sha256(path) for name, path in documents.items()},
        "the host file's cuda and cudnn": f"{host_file.cuda} {host_file.cudnn}",
    }


def steps(job: Job, recipe: Recipe, fetched: Inputs | None, tree: Tree | None) -> Sequence[Step]:
    """Return the run of ./configure and the file that takes the place of the one it writes."""
    from tfwright.configure import expected
    from tfwright.configure.answers import UNKNOWN_PYTHON, complete
    from tfwright.configure.interview import Interview

    # Before the first fetch the venv has no place yet.
    python = dict(UNKNOWN_PYTHON)
    if fetched and fetched.programs:
        python["PYTHON_BIN_PATH"] = str(fetched.python)
    table = recipe.configure
    scripts = questions.scripts_of_last(recipe, tree)
    dialect = expected.dialect(recipe, expected.system(recipe), scripts)
    interview = Interview(dialect, complete(recipe, job.host_file, python), table.by)
    command = _command(job, table, job.places.tree, interview, tree.epoch if tree else 0)
    target = job.places.tree / expected.written_in(table, dialect)[0]
    return (command, Writes(target, rendered(recipe, job.host_file, tree)))


def rendered(recipe: Recipe, host_file: HostFile, tree: Tree | None = None) -> str:
    """Return the bazelrc that the recipe gives on this host, as far as it is known without a tree.

    Raises RecipeError naming what the recipe does not answer, or answers wrongly.
    """
    from tfwright.configure import expected

    # Without a tree the tables decide what this release writes.
    interview = expected.interview(recipe, host_file, questions.scripts_of_last(recipe, tree))
    expected.insist_on_answers(interview)
    return expected.render(interview, recipe.configure) or ""


def _site_packages(job: Job, python: Path) -> str:
    """Ask the target Python where its packages lie."""
    from tfwright.tools.process import environment

    # sysconfig is in Python 2.7, too; site.getsitepackages is missing in old
    # virtualenvs.
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    argv = (str(python), "-c", code)
    command = Command(argv, job.places.own, environment.clean(job.places.home))
    remedy = f"Run '{invoke('build --again fetch')}' to create the target Python's venv again."
    return runner.run(command, job.log("configure-python"), remedy=remedy).strip()


def _command(
    job: Job, table: ConfigureTable, tree: Path, interview: "Interview", epoch: int
) -> Command:
    """Return the run of ./configure, with the pinned Bazel and target Python first on its PATH."""
    from tfwright.tools.process import environment

    places = job.places
    clean = environment.clean(places.home, (places.programs,), epoch, interview.exports())
    return Command((str(tree / table.program),), tree, clean)


def _require_program(tree: Path, table: ConfigureTable) -> None:
    """Insist that the tree has the program, and name what it has instead."""
    path = tree / table.program
    if not path.is_file():
        raise RecipeError(
            f"The source tree has no {table.program}{_instead(path.parent)}",
            remedy="Set 'program' in [configure] to the program that asks the questions.",
        )
    # The kernel takes the carriage return for a part of the interpreter's name.
    with path.open("rb") as script:
        if script.readline(200).endswith(b"\r\n"):
            raise RecipeError(
                f"{table.program} has Windows line ends, so the system does not find its shell",
                remedy="Add a patch to the recipe that replaces them by plain line ends.",
            )


def _prepare_programs(job: Job, inputs: Inputs, interview: "Interview") -> None:
    """Put `bazel`, `python` and `pip` under these very names into a directory for PATH.

    Scripts and no links: a venv's Python that is started through a link does not find its venv.
    """
    dialect = interview.dialect
    bazel = f'exec "{inputs.bazel.path}"'
    if not dialect.own and dialect.release <= LAST_WITH_SERVER:
        bazel += " --batch"
    # `bazel fetch` would go to the network for minutes,
    # and clean what compile can resume.
    if not dialect.own and dialect.release <= LAST_THAT_CLEANS:
        bazel = f'case "$1" in clean | fetch) exit 0 ;; esac\n{bazel}'
    python = f'exec "{inputs.python}"'
    pip = f"{python} -m pip"
    lines = {"bazel": bazel, "python": python, "python3": python, "pip": pip, "pip3": pip}
    # 1.12 and 1.13 prefer an NCCL that ldconfig knows to the one that the recipe answers.
    if dialect.traits.get("nccl_by_library") and interview.answers.get("TF_NEED_CUDA"):
        lines["ldconfig"] = "exit 0"
    # What is left from an earlier run, or was put there, would hide the host's own programs.
    files.remove(job.places.programs)
    for name, line in lines.items():
        files.write(job.places.programs / name, f'#!/bin/sh\n{line} "$@"\n', mode=0o755)


@contextmanager
def _whole_or_nothing(paths: Sequence[Path]) -> Iterator[None]:
    """Remove the files that ./configure writes: old ones before it runs, half ones if it fails."""
    for path in paths:
        files.remove(path)
    try:
        yield
    # BaseException: Ctrl-C in the middle of the questions leaves a half file as well.
    except BaseException:
        for path in paths:
            files.remove(path)
        raise


def _converse(
    job: Job, recipe: Recipe, command: Command, interview: "Interview", written: Sequence[str]
) -> tuple[str, ...]:
    """Run ./configure to its end; return the variables that it asked for."""
    from tfwright.configure import answering

    kind = answering.Typist if recipe.configure.by == "dialogue" else answering.Watcher
    return _talk(job, recipe, command, kind(interview), written)


def _talk(
    job: Job, recipe: Recipe, command: Command, respondent: "Answerer", written: Sequence[str]
) -> tuple[str, ...]:
    from tfwright.configure import failures
    from tfwright.tools.process import dialogue

    log = job.log("configure")
    spoken = dialogue.converse(command, log, respondent, timeout=recipe.configure.timeout)
    # A script that runs out of answers may still end with 0, and write nothing.
    if spoken.status != 0 or not all((command.cwd / name).is_file() for name in written):
        # Which of its messages mean the recipe and which the host is known there.
        raise failures.explained(spoken, command, log, recipe, respondent.asked)
    return tuple(respondent.asked)


def _never_asked(
    job: Job, table: ConfigureTable, interview: "Interview", asked: Sequence[str]
) -> tuple[str, ...]:
    """Return the recipe's answers that were not asked for; a yes among them is an error."""
    recipe = table.answers
    stated = {prompt.variable for prompt in interview.dialect.prompts if prompt.stated}
    taken = {*asked, *interview.exports(), *stated}
    rest = tuple(variable for variable in recipe if variable not in taken)
    # A "no" that was never asked for is what the build does anyway, hence only a note.
    wanted = [variable for variable in rest if recipe[variable] is True]
    if wanted:
        raise RecipeError(
            f"The recipe wants {', '.join(wanted)}, but ./configure never asked for it, "
            "so it would be left out",
            remedy=f"Write {' and '.join(f'{name} = false' for name in wanted)}; the log holds "
            "all that it asked.",
            evidence=Evidence(log=job.log("configure")),
        )
    if rest:
        job.listener.note(f"never asked for: {', '.join(rest)}")
    return rest


def _text_of(tree: Path, written: Sequence[str]) -> str:
    """Return all that ./configure wrote for Bazel."""
    texts = list[str]()
    for name in written:
        path = tree / name
        # The tree decides what lies there: a link could lead to any file of the host, and a pipe
        # has no end.
        plain = path.is_file() and not path.is_symlink()
        if not plain or path.stat().st_size > LONGEST_BAZELRC:
            raise ToolError(
                f"./configure made {name} a link, pipe or directory, or longer than "
                f"{LONGEST_BAZELRC:,} bytes",
                remedy=f"Add a patch to the recipe, so that ./configure writes {name} as a plain "
                "file.",
            )
        texts.append(files.text(path))
    return "\n".join(texts)


def _agree(rendered: str, written: str, log: Path, places: Mapping[str, str]) -> None:
    """Insist that the rendered file and the one that ./configure wrote say the same."""
    from tfwright.configure import bazelrc, stanzas

    difference = bazelrc.compare(rendered, written)
    if not difference:
        return
    lines = map(str, difference.only_written)
    refused = [line for line in lines if not is_bazelrc_line(line)]
    # The lines that differ, ready to be pasted, are worth more than both files.
    remedy = (
        "If the answers are right, then this ./configure differs from TensorFlow's, "
        f"by a patch or in a fork. Add its lines to the recipe {stanzas.WHERE}:\n"
        + stanzas.difference(difference, places)
    )
    if refused:
        remedy = (
            "Add a patch to the recipe, so that ./configure does not write what no recipe may "
            "state:\n" + "\n".join(f"{stanzas.INDENT}{line}" for line in refused)
        )
    raise ToolError(
        "What ./configure wrote is not what tfwright renders from the same answers",
        remedy=remedy,
        evidence=Evidence(log=log, lines=difference.lines()),
    )


def _instead(folder: Path) -> str:
    """Name the programs that a tree has for configuring it."""
    found = folder.glob("configure*")
    others = sorted(program.name for program in found if program.is_file())
    return f"; it has {', '.join(others)}" if others else ""
