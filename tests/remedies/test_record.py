"""What is said of a ./configure that asks something else, done to the letter with `invoke record`."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import Typed, find_text
from tests.pipeline.stages.test_configure import ANSWERS, WHOLE, Bench
from tests.remedies.following import commands, failing

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stage import Result
from tfwright.pipeline.stages import configure
from tfwright.progress import Listener
from tfwright.recipes import page, session
from tfwright.recipes.recording import Ask

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("impatient")]

RECIPE = """\
summary = "A recipe for tests"

[source]
url = "https://example.org/tensorflow.git"
branch = "r1.13"
commit = "{commit}"

[host]
system = "Linux"
python = "any"

[bazel]
version = "0.21.0"

[compile]
target = "//:wheel"

[configure.answers]
{answers}
"""
WARP = "ask 'Do you wish to build TensorFlow with {0} support? [y/N]: ' TF_NEED_{0}\n"
ASKING = WHOLE.replace("cat >> $rc", f"{WARP.format('WARP')}{WARP.format('WEFT')}cat >> $rc", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write the recipe of a tree that asks two questions which no catalogue has."""
    lines = [
        f'{name} = "{value}"' if isinstance(value, str) else f"{name} = false"
        for name, value in ANSWERS.items()
    ]
    path = tmp_path / "small.toml"
    text = RECIPE.format(commit="0123456789" * 4, answers="\n".join(lines))
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def configured(
    tmp_path: Path, path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], object]:
    """Return what configures the tree by the recipe as it is now."""
    bench = Bench(tmp_path, listener)
    bench.commit(ASKING)
    of_bench = bench.job

    def job(*_: object) -> RecipeJob:
        made = of_bench(ANSWERS)
        read = recipes.read(str(path))
        return RecipeJob(recipe=read, host_file=made.host_file, listener=listener)

    def run(job: RecipeJob, _: Recipe, *parts: Result) -> object:
        monkeypatch.setattr(engine, "prepare_tree", lambda _: parts)
        return stage(job, job.recipe, *parts)  # type: ignore[arg-type]

    stage = configure.run
    monkeypatch.setattr(bench, "job", job)
    monkeypatch.setattr(configure, "run", run)
    return bench.again


def record(path: Path, ask: Ask) -> object:
    """Do what `invoke record` does."""
    host_file = HostFile(build_out=path.parent / "build_out")
    request = RecipeJob.of(str(path), host_file)
    return session.record(request, path, ask)


def test_an_unknown_question_is_recorded_by_the_command_that_is_named(
    path: Path, configured: Callable[[], object]
) -> None:
    fault = failing(configured, RecipeError)
    (command,) = commands(fault.remedy)
    assert command == "invoke record"
    record(path, lambda _: "y")
    assert configured()


def test_recording_goes_on_after_the_last_answer_that_was_kept(
    path: Path, configured: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(configured, RecipeError)
    monkeypatch.setattr("sys.stdin", Typed("y\n"))
    fault = failing(lambda: record(path, page.ask_question), RecipeError, "TF_NEED_WEFT")
    assert commands(fault.remedy) == ["invoke record"]
    # Only the second question is asked again.
    monkeypatch.setattr("sys.stdin", Typed("n\n"))
    record(path, page.ask_question)
    answers = recipes.read(str(path)).configure.answers
    assert (answers["TF_NEED_WARP"], answers["TF_NEED_WEFT"]) == (True, False)
    assert configured()


def test_what_was_recorded_is_taken_from_the_file_that_is_named(
    path: Path, configured: Callable[[], object]
) -> None:
    failing(configured, RecipeError)
    # TOML lets no table be added to such a list.
    text = path.read_text("utf-8")
    wrong = text.replace("[configure.answers]", "[configure]\nprompts = []\n\n[configure.answers]")
    path.write_text(wrong, "utf-8")
    fault = failing(lambda: record(path, lambda _: "y"), RecipeError)
    assert path.read_text("utf-8") == wrong
    named = find_text(r"Take what fits from (\S+);", fault.remedy)
    recorded = Path(named[1])
    right = recorded.read_text("utf-8").replace("prompts = []\n", "")
    recorded.write_text(right, "utf-8")
    shutil.copy(recorded, path)
    # What it writes for Bazel is recorded once the recipe loads.
    record(path, lambda _: "y")
    assert configured()
