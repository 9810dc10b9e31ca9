"""`invoke record`: the questions of a ./configure that tfwright does not know, as recipe lines.

The real program of the recipe's tree runs on a terminal of its own. The recipe's answers are typed;
whatever else it asks, a person answers once. Questions, answers and the lines in which the written
file differs from TensorFlow's become the recipe's.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.configure import bazelrc, expected, stanzas
from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError, TfwrightError
from tfwright.pipeline import containers, engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stages import configure
from tfwright.recipes.recording import Ask, RecordedQuestion, Recorder
from tfwright.tools import files, toml_editing
from tfwright.tools.git.work_tree import WorkTree


@dataclass(frozen=True)
class RecordedDialogue:
    """What was added to a recipe."""

    path: Path
    questions: tuple[RecordedQuestion, ...]
    answers: tuple[str, ...]
    """The variables that were answered."""
    lines: tuple[str, ...]
    """The lines of the written file that this ./configure has more or less than TensorFlow's."""


def record(job: RecipeJob, path: Path, ask: Ask) -> RecordedDialogue:
    """Run ./configure once, and write what the recipe lacks into it.

    No archive is fetched for it, and nothing that ./configure writes stays, so that the stage runs
    again afterwards. Raises what check, fetch and source raise for what they bring, and ToolError
    if ./configure fails or hangs.
    """
    # In the environment every question would be an error; here each one is to be answered.
    spoken = job.recipe.configure.changed(by="dialogue")
    recipe = job.recipe.changed(configure=spoken)
    with engine.recipe_lock(job), containers.stage_container(job, "configure"):
        host, inputs, tree = engine.prepare_tree(replace(job, until="source"))
        program = configure.prepare_program(job.job, recipe, host, inputs, tree)
        script = _script_text(tree.path, recipe.configure.program)
        recorder = Recorder(program.interview, ask=ask, script=script)
        try:
            with program.run_answered(recorder):
                written = program.text()
        except (KeyboardInterrupt, TfwrightError):
            # A person typed these answers: the next run begins where this one stopped.
            if recorder.answers:
                _write_recorded(path, recorder)
                job.listener.note(
                    f"Kept in {path}: {', '.join(recorder.answers)}. "
                    f"Run 'invoke record --recipe {job.argument}' again to go on from there."
                )
            raise
        program.remove()
        WorkTree(tree.path).restore()
    _write_recorded(path, recorder)
    lines = _enter_difference(path, recorder, written)
    return RecordedDialogue(path, tuple(recorder.questions), tuple(recorder.answers), lines)


def _script_text(tree: Path, program: str) -> str:
    """Return the text of the programs that may name the variables; empty if there is none."""
    texts = []
    for name in dict.fromkeys(("configure.py", "configure", program)):
        script = tree / name
        if script.is_file() and not script.is_symlink():
            texts.append(script.read_text("utf-8", "replace"))
    return "\n".join(texts)


def _write_recorded(path: Path, recorder: Recorder) -> None:
    """Write answers and questions into the recipe.

    Raises RecipeError if it would not load any more; they are then in a file next to it.
    """
    before = path.read_text("utf-8")
    for variable, answer in recorder.answers.items():
        toml_editing.put(path, ("configure", "answers", variable), answer)
    tables = []
    for question in recorder.questions:
        lines = stanzas.table(question.text, question.variable, yes_no=question.yes_no)
        tables.append("\n".join(["", "# Asked by this tree's ./configure; recorded.", *lines, ""]))
    # TOML lets an array of tables stand anywhere, so the file's order is left alone.
    toml_editing.write(path, path.read_text("utf-8") + "".join(tables))
    _check_loads(path, before)


def _check_loads(path: Path, before: str) -> None:
    """Put the recipe back as it was if it does not load any more; nothing recorded is lost."""
    try:
        recipes.read(str(path))
    except RecipeError as fault:
        recorded = path.with_name(f"{path.name}.recorded")
        files.write(recorded, path.read_text("utf-8"))
        toml_editing.write(path, before)
        raise RecipeError(
            f"What was recorded does not fit the recipe: {fault.what}",
            remedy=f"The recipe is as it was. Take what fits from {recorded}; correct the rest.",
        ) from fault


def _enter_difference(path: Path, recorder: Recorder, written: str) -> tuple[str, ...]:
    """Write down how the file differs from what is rendered from the same answers."""
    table = recipes.read(str(path)).configure
    before = recorder.interview
    answers = {**before.answers, **recorder.answers}
    interview = replace(before, answers=answers, by=table.by)
    rendered = expected.render(interview, table) or ""
    difference = bazelrc.compare(rendered, written)
    if before.dialect.own:
        sides = {"lines": difference.only_written}
    else:
        sides = {"adds": difference.only_written, "omits": difference.only_rendered}
    entered = []
    # Answers that are paths: another host has them elsewhere.
    places = {
        name: value
        for name, value in answers.items()
        if isinstance(value, str) and value.startswith("/")
    }
    before_lines = path.read_text("utf-8")
    for key, settings in sides.items():
        if settings:
            new = [stanzas.portable_line(setting, places) for setting in settings]
            known = getattr(table.bazelrc, key)
            toml_editing.put(path, ("configure", "bazelrc", key), [*known, *new])
            entered += new
    _check_loads(path, before_lines)
    return tuple(entered)
