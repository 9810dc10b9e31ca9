"""Answers ./configure, and renders the .tf_configure.bazelrc that the build uses.

The real ./configure runs, on a terminal of its own and in an environment of its own. What it
writes is compared with what the template gives for the same answers; if they agree, the rendered
file takes its place.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import BESIDE_THE_BUILD, Recipe, is_bazelrc_line
from tfwright.documents.toml import Table
from tfwright.errors import Evidence, RecipeError, ToolError, invoke
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Folder, Step, Writes
from tfwright.tools import files, json_text
from tfwright.tools.git.work_tree import WorkTree

if TYPE_CHECKING:
    from tfwright.configure.interview import Interview
    from tfwright.configure.program import ConfigureProgram


REVISION = 3


def run(job: Job, recipe: Recipe, host: HostFacts, inputs: Inputs, tree: Tree) -> Configured:
    """Configure a tree that is otherwise clean; leave no half-written bazelrc if it fails."""
    from tfwright.configure import expected, rendering
    from tfwright.configure.answering import Answerer

    key = _input_digest(job, recipe, host, inputs, tree)
    if same := _restore_files(job, key, tree.path):
        job.listener.note("./configure did not run again: only sources for a compiler changed")
        return same
    program = prepare_program(job, recipe, host, inputs, tree)
    interview, bazelrc = program.interview, program.written[0]
    # Answers that cannot be meant are refused before a program of the tree runs.
    expected.check_answers(interview)
    rendered = expected.render(interview, recipe.configure)
    answerer = Answerer(interview)
    with program.run_answered(answerer):
        _check_answers_used(job, recipe, interview, answerer.asked)
        name = bazelrc.relative_to(tree.path)
        if rendered is None:
            job.listener.note(f"{name} was not checked: the recipe records none of its lines")
        else:
            _check_rendered(rendered, program)
            files.write(bazelrc, rendered)
        if recipe.source.own_interface and not (tree.path / ".bazelrc").is_file():
            raise RecipeError(
                f"Bazel reads .bazelrc, which the tree does not have, and not {name}",
                remedy='If the program can write it, set writes = ".bazelrc" in [configure]. '
                f"Otherwise add it by a patch, with the line: import %workspace%/{name}",
            )
    plain, others = _changed_files(tree.path)
    made = Configured(
        bazelrc=Artefact.of(bazelrc),
        asked=tuple(answerer.asked),
        exported=rendering.exported_answers(interview),
        written=tuple(map(Artefact.of, plain)),
        others=others,
        programs=Folder.of(job.places.programs),
    )
    _save_files(job, key, made, tree.path)
    return made


class _ConfigureRecord(Table):
    """What a run of ./configure made, next to copies of the files that it wrote."""

    key: str
    made: Configured


_COMPILED = (".c", ".cc", ".cpp", ".cu", ".h", ".hpp")
"""Ends of the files that no ./configure reads."""


def _input_digest(job: Job, recipe: Recipe, host: HostFacts, fetched: Inputs, tree: Tree) -> str:
    """Return a digest of everything that ./configure may read."""
    texts = WorkTree(tree.path).plain_files(tree.content, lambda path: not path.endswith(_COMPILED))
    decided = recipe.model_dump(mode="json", exclude=set(BESIDE_THE_BUILD))
    known = [decided, host.essence(), fetched.essence(), texts, inputs(job)]
    return json_text.digest([REVISION, *known])


def _save_files(job: Job, key: str, made: Configured, tree: Path) -> None:
    """Keep what ./configure wrote, where that is whole files only."""
    kept = job.places.configured
    files.remove(kept)
    if not made.others and not WorkTree(tree).changed_files():
        for artefact in (made.bazelrc, *made.written):
            _copy(artefact.path, kept / artefact.path.relative_to(tree))
        files.write(kept / _RECORD, _ConfigureRecord(key=key, made=made).model_dump_json())


_RECORD = "configured.json"


def _restore_files(job: Job, key: str, tree: Path) -> Configured | None:
    """Bring back what ./configure wrote when all that it reads was the same; None if it was not."""
    kept = job.places.configured
    known = json_text.load_or_none(kept / _RECORD, _ConfigureRecord)
    if known is None or known.key != key:
        return None
    made = known.made
    try:
        copies = {
            artefact: kept / artefact.path.relative_to(tree)
            for artefact in (made.bazelrc, *made.written)
        }
        sound = all(files.sha256(copy) == artefact.sha256 for artefact, copy in copies.items())
    except (OSError, ValueError):
        return None
    if not sound or made.programs.changed():
        return None
    WorkTree(tree).restore()
    for artefact, copy in copies.items():
        _copy(copy, artefact.path)
    return made


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def prepare_program(
    job: Job, recipe: Recipe, host: HostFacts, inputs: Inputs, tree: Tree
) -> "ConfigureProgram":
    """Return the ./configure of a tree, which loses what an earlier run edited."""
    from tfwright.configure import expected, traits

    # An earlier ./configure may have edited tracked files; its edits are not part of the source.
    WorkTree(tree.path).restore()
    packages = site_packages(job, inputs.python)
    interview = expected.interview(
        recipe,
        job.host_file,
        traits.scripts_in(tree.path),
        # Both are stated: the default of the second is the first of a set, whose order changes
        # before 2.5.
        {"PYTHON_BIN_PATH": str(inputs.python), "PYTHON_LIB_PATH": packages},
        expected.ConfiguredHost(host.system, host.python, host.cuda, host.cudnn),
    )
    return _program(job, recipe, interview, inputs, tree)


def _program(
    job: Job, recipe: Recipe, interview: "Interview", inputs: Inputs | None, tree: Tree | None
) -> "ConfigureProgram":
    from tfwright.configure.program import ConfigureProgram

    places = job.places
    return ConfigureProgram(
        recipe=recipe,
        tree=tree.path if tree else places.tree,
        interview=interview,
        bazel=inputs.bazel.path if inputs else Path(),
        python=inputs.python if inputs else Path(),
        programs=places.programs,
        home=places.home,
        log=job.log("configure"),
        epoch=tree.epoch if tree else 0,
    )


def site_packages(job: Job, python: Path) -> str:
    """Ask the target Python where its packages lie."""
    from tfwright.tools.process import runner
    from tfwright.tools.process.command import Command, clean_environment

    # sysconfig is in Python 2.7, too; site.getsitepackages is missing in old virtualenvs.
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    argv = (str(python), "-c", code)
    command = Command(argv, job.places.own, clean_environment(job.places.home))
    remedy = f"Run '{invoke('build --again fetch')}' to create the target Python's venv again."
    return runner.run(command, job.log("configure-python"), remedy=remedy).strip()


def _check_answers_used(
    job: Job, recipe: Recipe, interview: "Interview", asked: Sequence[str]
) -> None:
    """Note the recipe's answers that were not asked for; a yes among them is an error."""
    answers = recipe.configure.answers
    stated = {prompt.variable for prompt in interview.dialect.prompts if prompt.stated}
    taken = {*asked, *interview.exports(), *stated}
    rest = [variable for variable in answers if variable not in taken]
    # A "no" that was never asked for is what the build does anyway, hence only a note.
    wanted = [variable for variable in rest if answers[variable] is True]
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


def _check_rendered(rendered: str, program: "ConfigureProgram") -> None:
    """Insist that the rendered file and the one that ./configure wrote say the same."""
    from tfwright.configure import bazelrc, stanzas

    difference = bazelrc.compare(rendered, program.text())
    if not difference:
        return
    answers = program.interview.answers
    places = {name: str(answers[name]) for name in ("PYTHON_BIN_PATH", "PYTHON_LIB_PATH")}
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
        evidence=Evidence(log=program.log, lines=difference.lines()),
    )


def damage(job: Job, configured: Configured) -> str | None:
    """Name a file that appeared in the tree after this stage."""
    known = {artefact.path for artefact in configured.written}
    plain, others = _changed_files(job.places.tree)
    new = [path.name for path in plain if path not in known]
    new += sorted({*others} - {*configured.others})
    return f"{new[0]} is new in the tree" if new else None


def _changed_files(tree: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Return a tree's files that are not of its commit, or not as there, and what is not a file.

    Of a link it is said where it leads: rules follow one to a directory.
    """
    plain, others = list[Path](), list[str]()
    for name in WorkTree(tree).foreign_files():
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
    from tfwright.configure.answers import UNKNOWN_PYTHON

    # Before the first fetch the venv has no place yet.
    python = dict(UNKNOWN_PYTHON)
    if fetched and fetched.programs:
        python["PYTHON_BIN_PATH"] = str(fetched.python)
    host = expected.ConfiguredHost(expected.system(recipe))
    interview = expected.interview(recipe, job.host_file, _scripts(recipe, tree), python, host)
    program = _program(job, recipe, interview, None, tree)
    return (
        program.command,
        Writes(program.written[0], render_bazelrc(recipe, job.host_file, tree)),
    )


def render_bazelrc(recipe: Recipe, host_file: HostFile, tree: Tree | None = None) -> str:
    """Return the bazelrc that the recipe gives on this host, as far as it is known without a tree.

    Raises RecipeError naming what the recipe does not answer, or answers wrongly.
    """
    from tfwright.configure import expected

    # Without a tree the tables decide what this release writes.
    interview = expected.interview(recipe, host_file, _scripts(recipe, tree))
    expected.check_answers(interview)
    return expected.render(interview, recipe.configure) or ""


def _scripts(recipe: Recipe, tree: Tree | None) -> Mapping[str, str]:
    """Return what shows how ./configure writes, of the tree that is there if it is the recipe's."""
    from tfwright.configure import traits

    # The tree on the disk may be of the commit that the recipe pinned before.
    same = tree is not None and tree.commit == recipe.source.commit
    return traits.scripts_in(tree.path) if tree and same else {}
