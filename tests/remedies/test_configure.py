"""What is said of ./configure and of its answers, done to the letter."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import find_text, make_file, make_program
from tests.pipeline.stages.test_configure import (
    ANSWERS,
    END,
    QUESTIONS,
    START,
    WHOLE,
    Bench,
    own_interface,
)
from tests.remedies.following import CommandLine, add, commands, failing, write_recipe
from tests.upstream import commit, run_git

from tfwright.configure import answering, dialect, rendering, validation
from tfwright.configure.catalogue import Answer, Answers
from tfwright.configure.interview import By, Interview
from tfwright.documents.recipe import PromptTable
from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError, ToolError
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stages import configure
from tfwright.progress import Listener
from tfwright.tools.python import venv

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("impatient")]


@pytest.fixture
def bench(tmp_path: Path, listener: Listener) -> Bench:
    return Bench(tmp_path, listener)


def test_the_program_that_asks_is_named(bench: Bench) -> None:
    bench.changes = {"program": "configure.sh"}
    fault = failing(lambda: bench.run(WHOLE), RecipeError)
    key = re.search(r"'(\w+)' in \[configure\]", fault.remedy)
    there = re.search(r"it has (\w+)", fault.what)
    assert key
    assert there
    bench.changes = {key[1]: there[1]}
    assert bench.again()


def test_an_answer_that_is_never_asked_for_is_written_as_is_shown(bench: Bench) -> None:
    skipping = WHOLE.replace("ask 'Do you wish to build TensorFlow with MPI", ": 'Do you")
    wanted = {**ANSWERS, "TF_NEED_MPI": True, "MPI_HOME": "/usr"}
    fault = failing(lambda: bench.run(skipping, wanted), RecipeError)
    assert fault.evidence.log
    assert "MPI" not in fault.evidence.log.read_text("utf-8")
    line = find_text(r"^Write (\w+ = false);", fault.remedy)
    assert bench.again({**wanted, **tomllib.loads(line[1])})


def test_a_patch_replaces_windows_line_ends(shell: CommandLine, tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    pinned = commit(upstream, {"configure": "#!/bin/sh\r\ntrue\r\n"})
    recipe = write_recipe(tmp_path / "r/small.toml", upstream, pinned)
    (upstream / "configure").write_text("#!/bin/sh\ntrue\n", "utf-8")
    # Through a file: its lines end in both ways.
    run_git("diff", f"--output={tmp_path}/diff", "HEAD", cwd=upstream)
    diff = (tmp_path / "diff").read_bytes()
    head = "Why: a text\nUpstream: a text\nDrop when: a text.\n"
    make_file(recipe.parent / "patches/main/0001-why.patch", head.encode() + b"\n" + diff)
    line = 'patches = ["main/0001-why.patch"]'
    add(recipe, line, after='release = "1.12"')
    shell.succeeds(f"invoke build --recipe {recipe} --until source")
    tree = tmp_path / "build_out/small/tree"
    assert (tree / "configure").read_bytes() == b"#!/bin/sh\ntrue\n"


BAZELS = {"upgrade": ("newer", "0.22.0", "higher"), "downgrade": ("older", "0.20.0", "lower")}


@pytest.mark.parametrize("way", BAZELS)
def test_the_bazel_that_configure_wants_is_pinned(bench: Bench, way: str) -> None:
    _, wanted, limit = BAZELS[way]
    said = (
        f"Please {way} your bazel installation to version {wanted} or {limit} to build TensorFlow!"
    )
    check = f"bazel --batch version | grep -q {wanted} || {{ echo '{said}'; exit 1; }}\n"
    script = START.replace("bazel --batch version\n", check) + QUESTIONS + END
    fault = failing(lambda: bench.run(script), RecipeError)
    line = re.fullmatch(r'Set version = "(\S+)" in \[bazel\]\.', fault.remedy)
    assert line
    bench.bazel = line[1]
    assert bench.again()


TAKES_NUMBERS = "python3 -c 'import sys; int(sys.argv[1])' \"$CC_OPT_FLAGS\"\n"


@pytest.mark.parametrize("by", ["dialogue", "environment"])
def test_the_answer_after_which_configure_crashed_is_corrected(bench: Bench, by: str) -> None:
    after = "ask 'Would you like"
    script = WHOLE.replace(after, TAKES_NUMBERS + after)
    answers = {**ANSWERS, "CC_OPT_FLAGS": "-O2"}
    fault = failing(lambda: bench.run(script, answers, by), ToolError)
    if by == "environment":
        shown = find_text(r'by = "(dialogue)"', fault.remedy)
        fault = failing(lambda: bench.again(answers, shown[1]), ToolError)
    variable = find_text(r"^Correct what answers (\w+):", fault.remedy)
    assert bench.again({**answers, variable[1]: "2"}, by)


@pytest.mark.parametrize("says", [True, False])
def test_the_last_lines_or_a_shell_say_what_configure_needs(bench: Bench, *, says: bool) -> None:
    needed = bench.folder / "needed"
    line = f"echo 'Create {needed} first'; " if says else ""
    check = f"[ -e {needed} ] || {{ {line}exit 1; }}\n"
    script = START.replace("bazel --batch version\n", check) + QUESTIONS + END
    fault = failing(lambda: bench.run(script), ToolError)
    if says:
        assert fault.remedy == "Its last lines say what it needs."
        named = re.fullmatch(r"Create (\S+) first", fault.evidence.lines[-1])
        assert named
        needed = Path(named[1])
    else:
        (command,) = commands(fault.remedy)
        assert engine.stage_named(command.split()[-1]).name == "configure"
    needed.touch()
    assert bench.again()


@pytest.mark.parametrize("way", ["[configure.answers]", "cuda"])
def test_what_is_not_found_of_cuda_is_answered_or_placed(
    bench: Bench, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_interface(bench)
    gpu = {"variable": "TF_NEED_CUDA", "question": "GPU? ", "kind": "yes-no"}
    where = {"variable": "CUDA_TOOLKIT_PATH", "question": "CUDA is in: "}
    bench.changes["prompts"] = [gpu, where]
    script = (
        "#!/bin/bash\nread -p 'GPU? ' gpu\n"
        "read -p 'CUDA is in: ' place\n"
        '[ -e "$place/cudnn-$VERSION" ] || '
        "{ echo \"Could not find any cudnn.h matching version '$VERSION' in \"; exit 1; }\n"
        "echo build > .bazelrc\n"
    )
    for name in ("old/cudnn-7", "new/cudnn-8"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    answers: dict[str, Answer] = {
        "TF_NEED_CUDA": True,
        "VERSION": "8",
        "CUDA_TOOLKIT_PATH": str(tmp_path / "old"),
    }
    fault = failing(lambda: bench.run(script, answers), RecipeError)
    assert way in fault.remedy.replace("CUDA", "cuda")
    if way == "cuda":
        before = bench.job

        def placed(*given: object) -> RecipeJob:
            made = before(*given)  # type: ignore[arg-type]
            host_file = made.host_file.changed(cuda=tmp_path / "new")
            return replace(made, host_file=host_file)

        monkeypatch.setattr(bench, "job", placed)
        assert bench.again(answers)
    else:
        assert bench.again({**answers, "VERSION": "7"})


STRICT = """\
if [ "$CC_OPT_FLAGS" != -O2 ]; then
  echo 'It must be -O2'
  unset CC_OPT_FLAGS
  ask 'Please specify optimization flags to use during compilation when bazel option "--config=opt" is specified [Default is -march=native]: ' CC_OPT_FLAGS
fi
"""


@pytest.mark.parametrize("by", ["dialogue", "environment"])
def test_an_answer_that_is_not_accepted_is_corrected(bench: Bench, by: str) -> None:
    script = START + QUESTIONS + STRICT + END
    wrong = {**ANSWERS, "CC_OPT_FLAGS": "-O9"}
    fault = failing(lambda: bench.run(script, wrong, by), RecipeError)
    variable = re.match(r"Correct (\w+)[,;]", fault.remedy)
    said = re.search(r"must be (\S+)", "\n".join(fault.evidence.lines))
    assert variable
    assert said
    assert bench.again({**wrong, variable[1]: said[1]}, by)


def test_what_the_environment_does_not_answer_is_typed(bench: Bench) -> None:
    script = START + "unset TF_NEED_MPI\n" + QUESTIONS + END
    fault = failing(lambda: bench.run(script, by="environment"), RecipeError)
    shown = find_text(r'by = "(\w+)" in \[configure\]', fault.remedy)
    assert bench.again(by=shown[1])


def spoken(release: str, *prompts: PromptTable) -> dialect.Dialect:
    return dialect.of_tensorflow(ExactRelease.parse(release), "Linux", prompts)


def test_a_script_that_reads_without_a_question_gets_one() -> None:
    table = PromptTable(variable="WARP", question="How much warp? ")
    asked = Interview(spoken("1.8", table), {"WARP": "9"})
    typist = answering.Answerer(asked)
    fault = failing(lambda: typist.answer(""), RecipeError, "reads")
    assert "by a patch" in fault.remedy or "Add a patch" in fault.remedy
    assert typist.answer("How much warp? ") == "9"


# What is wrong with answers


def faults(
    release: str, given: Answers, by: By = "dialogue", *own: PromptTable
) -> list[validation.AnswerFault]:
    return validation.faults(Interview(spoken(release, *own), given, by))


NO_CUDA: Answers = {"TF_NEED_CUDA": False, "TF_CUDA_VERSION": "9.0"}


@pytest.mark.parametrize(
    ("wrong", "says", "right"),
    [
        (NO_CUDA, "Remove TF_CUDA_VERSION", {"TF_NEED_CUDA": False}),
        (NO_CUDA, "only with TF_NEED_CUDA; ", {**NO_CUDA, "TF_NEED_CUDA": True}),
        ({"TF_NEED_CUDAA": False}, "did you mean TF_NEED_CUDA?", {"TF_NEED_CUDA": False}),
        ({"TF_NEED_CUDAA": False}, "Correct or remove TF_NEED_CUDAA", {}),
    ],
)
def test_an_answer_is_corrected_or_removed(wrong: Answers, says: str, right: Answers) -> None:
    (fault,) = faults("1.8", wrong)
    assert says in f"{fault.what}; {fault.remedy}"
    assert faults("1.8", right) == []


def test_an_unknown_answer_is_described_as_is_said() -> None:
    given = {"TF_NEED_CUDAA": False}
    assert "[[configure.prompts]]" in faults("1.8", given)[0].remedy
    table = PromptTable(variable="TF_NEED_CUDAA", question="CUDAA? [y/N]: ", kind="yes-no")
    assert faults("1.8", given, "dialogue", table) == []


@pytest.mark.parametrize(
    ("release", "given"), [("0.11", {}), ("1.8", {"CC_OPT_FLAGS": "-O2 " * 1200})]
)
def test_the_other_way_to_answer_is_set_as_is_shown(release: str, given: Answers) -> None:
    way: By = "dialogue" if given else "environment"
    (fault,) = faults(release, given, way)
    shown = find_text(r'by = "(\w+)" in \[configure\]', fault.remedy)
    other: By = "environment" if given else "dialogue"
    assert shown[1] == other
    assert faults(release, given, other) == []


def test_an_answer_that_only_this_commit_needs_is_added() -> None:
    given: dict[str, Answer] = {
        **ANSWERS,
        **dict.fromkeys(("PYTHON_BIN_PATH", "PYTHON_LIB_PATH"), "/x"),
    }
    del given["CC_OPT_FLAGS"]

    def render() -> str:
        return rendering.render(Interview(spoken("1.13"), given))

    fault = failing(render, RecipeError)
    lines = tomllib.loads(fault.remedy.partition("already):\n")[2])
    given.update(lines["configure"]["answers"])
    assert "build:opt --copt=..." in render()


# The venv of the target Python

PYTHON = """\
#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python";;
"-m pip" | "-I "*) exit 0;;
*) exec python3 "$@";;
esac
"""


def test_a_venv_that_does_not_run_is_made_again_by_the_command(
    bench: Bench, tmp_path: Path
) -> None:
    interpreter = make_program(tmp_path / "python3.6", PYTHON)
    job = bench.job(ANSWERS)
    job.places.home.mkdir(parents=True)

    def fetched() -> Path:
        stores, log = job.places.stores, tmp_path / "log"
        return venv.make_venv(interpreter, (), stores, offline=False, log=log)

    own = make_file(fetched(), "#!/bin/sh\nexit 1\n")
    fault = failing(lambda: configure.site_packages(job, own), ToolError)
    (command,) = commands(fault.remedy)
    words = command.split()
    assert words[1:3] == ["build", "--again"]
    assert engine.stage_named(words[3]).name == "fetch"
    # What that stage does for the target Python.
    assert configure.site_packages(job, fetched())
