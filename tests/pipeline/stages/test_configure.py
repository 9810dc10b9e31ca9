"""The configure stage, with small configure scripts on a real pty in a real git repository."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_folder, make_program
from tests.results import facts_of, inputs_of, tree_of
from tests.upstream import run_git

from tfwright.configure import dialect, rendering
from tfwright.configure.interview import Interview
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError, TfwrightError, ToolError
from tfwright.host import pythons
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Stage, Writes
from tfwright.pipeline.stages import configure
from tfwright.progress import Listener
from tfwright.tools.process.command import Command

pytestmark = pytest.mark.medium

COMMIT = "0123456789" * 4
SOURCE = {"url": "https://example.org/tensorflow.git", "commit": COMMIT}
FEATURES = (
    *("TF_ENABLE_XLA", "TF_NEED_OPENCL_SYCL", "TF_NEED_ROCM", "TF_NEED_CUDA"),
    *("TF_DOWNLOAD_CLANG", "TF_NEED_MPI", "TF_SET_ANDROID_WORKSPACE"),
)
ANSWERS: dict[str, bool | str] = {**dict.fromkeys(FEATURES, False), "CC_OPT_FLAGS": "-O2"}
START = """\
#!/bin/bash
set -e
cd "$(dirname "$0")"
bazel --batch version
rc=.tf_configure.bazelrc
: > $rc
ask() { if [ -z "${!2+set}" ]; then read -p "$1" "$2"; fi; }
ask 'Please specify the location of python. [Default is /usr/bin/python]: ' PYTHON_BIN_PATH
if [ -z "$PYTHON_LIB_PATH" ]; then
  printf 'Found possible Python library paths:\\n  /lib\\nPlease input the desired Python library path to use.  Default is [/lib]\\n'
  read PYTHON_LIB_PATH
fi
echo "build --action_env PYTHON_BIN_PATH=\\"$PYTHON_BIN_PATH\\"" >> $rc
echo "build --action_env PYTHON_LIB_PATH=\\"$PYTHON_LIB_PATH\\"" >> $rc
echo "build --python_path=\\"$PYTHON_BIN_PATH\\"" >> $rc
"""
QUESTIONS = """\
for item in 'XLA JIT=TF_ENABLE_XLA' 'OpenCL SYCL=TF_NEED_OPENCL_SYCL' ROCm=TF_NEED_ROCM CUDA=TF_NEED_CUDA; do
  ask "Do you wish to build TensorFlow with ${item%=*} support? [y/N]: " "${item#*=}"
done
ask 'Do you wish to download a fresh release of clang? (Experimental) [y/N]: ' TF_DOWNLOAD_CLANG
ask 'Do you wish to build TensorFlow with MPI support? [y/N]: ' TF_NEED_MPI
ask 'Please specify optimization flags to use during compilation when bazel option "--config=opt" is specified [Default is -march=native]: ' CC_OPT_FLAGS
ask 'Would you like to interactively configure ./WORKSPACE for Android builds? [y/N]: ' TF_SET_ANDROID_WORKSPACE
"""
END = """\
cat >> $rc <<RC
build:xla --define with_xla_support=true
build --action_env TF_NEED_OPENCL_SYCL="0"
build --action_env TF_NEED_ROCM="0"
build --action_env TF_NEED_CUDA="0"
build --action_env TF_DOWNLOAD_CLANG="0"
build:opt --copt=$CC_OPT_FLAGS
build:opt --host_copt=-march=native
build:opt --define with_default_optimizations=true
build:v2 --define=tf_api_version=2
RC
"""
WHOLE = START + QUESTIONS + END


class Bench:
    """A tree of TensorFlow 1.13 whose configure the test writes."""

    def __init__(self, folder: Path, listener: Listener) -> None:
        self.folder, self.listener = folder, listener
        self.source: dict[str, object] = {"branch": "r1.13"}
        self.changes: dict[str, object] = {}
        self.bazel = "0.21.0"
        self.more: list[str] = []
        """Further files of the commit."""
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.bazelrc = self.tree / ".tf_configure.bazelrc"

    def job(self, answers: Mapping[str, object], by: str = "dialogue") -> RecipeJob:
        recipe = {
            "name": "small",
            "summary": "A recipe for tests",
            "source": {**SOURCE, **self.source},
            "host": {"system": "Linux", "python": "any"},
            "bazel": {"version": self.bazel},
            "compile": {"target": "//:wheel"},
            "configure": {"by": by, "answers": answers, "timeout": 10, **self.changes},
        }
        return RecipeJob(
            recipe=Recipe.model_validate(recipe),
            host_file=HostFile(build_out=self.folder / "build_out"),
            listener=self.listener,
        )

    def run(
        self, script: str, answers: Mapping[str, object] | None = None, by: str = "dialogue"
    ) -> Configured:
        """Commit the script as ./configure, and run the stage on it."""
        self.commit(script)
        return self.again(answers, by)

    def again(
        self, answers: Mapping[str, object] | None = None, by: str = "dialogue"
    ) -> Configured:
        """Run the stage on the tree as it is."""
        job = self.job(ANSWERS if answers is None else answers, by)
        return configure.run(job, job.recipe, *self.parts(job))

    def parts(self, job: RecipeJob) -> tuple[HostFacts, Inputs, Tree]:
        """Return what the earlier stages made."""
        job.places.home.mkdir(parents=True, exist_ok=True)
        bazel = make_program(
            self.folder / "bazel-0.21.0-linux-x86_64",
            f"#!/bin/sh\necho Build label: {self.bazel}\n",
        )
        python = pythons.running_python()
        facts = facts_of(python, python=pythons.version_of(python))
        inputs = inputs_of(self.tree, bazel, python, commit=COMMIT)
        there = (self.folder / "tree.git").is_dir()
        content = run_git("rev-parse", "HEAD^{tree}", cwd=self.tree) if there else ""
        tree = tree_of(job, path=self.tree, commit=COMMIT, release="1.13", content=content)
        return facts, inputs, tree

    def commit(self, script: str) -> None:
        make_program(self.tree / "configure", script)
        (self.tree / "tracked.cc").write_text("as upstream\n")
        run_git("init", "-q", "--separate-git-dir", self.folder / "tree.git", cwd=self.tree)
        run_git("add", "configure", "tracked.cc", *self.more, cwd=self.tree)
        run_git("commit", "-q", "-m", "tree", cwd=self.tree)

    def fails(
        self, script: str, kind: type[TfwrightError], match: str, **changed: object
    ) -> TfwrightError:
        """Run a script that must fail, and leave nothing behind."""
        with pytest.raises(kind, match=match) as caught:
            self.run(script, {**ANSWERS, **changed})
        assert not self.bazelrc.exists()
        return caught.value


@pytest.fixture
def bench(tmp_path: Path, listener: Listener) -> Bench:
    return Bench(tmp_path, listener)


def test_the_rendered_file_takes_the_place_of_the_written_one(bench: Bench) -> None:
    configured = bench.run(WHOLE)
    assert configured.bazelrc == Artefact.of(bench.bazelrc)
    spoken = dialect.of_tensorflow(ExactRelease(1, 13), "Linux")
    answers = {**ANSWERS, **_python(bench)}
    own = pythons.version_of(pythons.running_python())
    assert bench.bazelrc.read_text() == rendering.render(
        Interview(spoken, answers, "dialogue", own)
    )
    assert configured.asked[:3] == ("PYTHON_BIN_PATH", "PYTHON_LIB_PATH", "TF_ENABLE_XLA")


def _python(bench: Bench) -> dict[str, bool | str]:
    lines = dict(
        line.split(" ")[2].split("=", 1) for line in bench.bazelrc.read_text().splitlines()[:2]
    )
    return {name: value.strip('"') for name, value in lines.items()}


def test_both_ways_of_answering_give_the_same_file(bench: Bench) -> None:
    typed = bench.run(WHOLE).bazelrc.sha256
    watched = bench.run(WHOLE + "\n# again", by="environment")
    assert watched.bazelrc.sha256 == typed
    assert watched.asked == ()


def test_with_answers_in_the_environment_any_prompt_is_an_error(bench: Bench) -> None:
    with fails(RecipeError, "TF_NEED_MPI"):
        bench.run(START + "unset TF_NEED_MPI\n" + QUESTIONS + END, by="environment")
    assert not bench.bazelrc.exists()


def test_the_callers_environment_does_not_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NEED_CUDA", "1")
    assert "TF_NEED_CUDA" in bench.run(WHOLE).asked


def test_a_refused_answer_stops_at_the_second_asking(bench: Bench) -> None:
    loop = "while ask 'Do you wish to build TensorFlow with MPI support? [y/N]: ' TF_NEED_MPI; do echo \"Invalid selection: $TF_NEED_MPI\"; unset TF_NEED_MPI; done\n"
    fault = bench.fails(START + loop, RecipeError, "does not accept 'n' for TF_NEED_MPI")
    assert "Invalid selection: n" in fault.evidence.lines


def test_missing_answers_are_named_all_at_once_before_anything_runs(bench: Bench) -> None:
    with fails(RecipeError, "TF_NEED_ROCM = false", "TF_NEED_MPI = false"):
        given = {name: ANSWERS[name] for name in {*ANSWERS} - {"TF_NEED_MPI", "TF_NEED_ROCM"}}
        bench.run("#!/bin/sh\ntouch ran\n", given)
    assert not (bench.tree / "ran").exists()


def test_exit_status_0_without_a_file_is_a_failure(bench: Bench) -> None:
    bench.fails(
        "#!/bin/sh\necho Configuration finished\n",
        ToolError,
        "exited with status 0 and wrote no bazelrc",
    )


@pytest.mark.parametrize("command", ["mkfifo", "mkdir", "ln -s /etc/passwd"])
def test_a_bazelrc_that_is_no_file_is_not_read(bench: Bench, command: str) -> None:
    script = f"#!/bin/sh\n{command} .tf_configure.bazelrc\n"
    with pytest.raises(ToolError, match=r"pipe or directory|wrote no bazelrc"):
        bench.run(script)


def test_a_file_of_an_earlier_run_does_not_count(bench: Bench) -> None:
    bench.bazelrc.write_text("build --copt=-old\n")
    bench.fails("#!/bin/sh\ntrue\n", ToolError, "wrote no bazelrc")


def test_a_crash_is_told_by_its_last_line(bench: Bench) -> None:
    fault = bench.fails(
        START + "python3 -c 'int(\"y\")'\n",
        ToolError,
        "crashed: ValueError: invalid literal for int",
    )
    assert fault.evidence.lines[0].startswith("Traceback")
    assert "PYTHON_LIB_PATH" in fault.remedy


def test_a_crash_before_the_first_question_is_not_blamed_on_an_answer(bench: Bench) -> None:
    script = "#!/bin/sh\npython3 -c 'int(\"y\")'\n"
    fault = bench.fails(script, ToolError, "crashed: ValueError")
    assert "before its first question" in fault.remedy


def test_a_bazel_that_is_too_old_is_a_fault_of_the_recipe_even_with_status_0(bench: Bench) -> None:
    script = "#!/bin/sh\necho 'Please upgrade your bazel installation to version 0.24.1 or higher to build TensorFlow!'\n"
    fault = bench.fails(
        script, RecipeError, r"wants Bazel 0\.24\.1 or newer; the recipe pins Bazel 0\.21\.0"
    )
    assert 'version = "0.24.1"' in fault.remedy


def test_a_written_line_that_no_recipe_may_state_is_not_a_line_to_add(bench: Bench) -> None:
    fault = bench.fails(
        f"{WHOLE}echo import other.bazelrc >> .tf_configure.bazelrc\n", ToolError, "is not what"
    )
    assert "import other.bazelrc" in fault.remedy
    assert "Add a patch" in fault.remedy
    assert "adds" not in fault.remedy


def test_a_signal_that_ended_configure_is_named(bench: Bench) -> None:
    bench.fails("#!/bin/sh\nkill -9 $$\n", ToolError, "was ended by signal 9")


def test_a_no_that_is_never_asked_for_is_noted(bench: Bench, notes: list[str]) -> None:
    answers = {**ANSWERS, "TF_NEED_GDR": False}
    bench.run(WHOLE, answers)
    assert notes == ["never asked for: TF_NEED_GDR"]


def test_an_answer_that_the_release_does_not_ask_for_is_refused_before_anything_runs(
    bench: Bench,
) -> None:
    fault = bench.fails("#!/bin/sh\ntouch ran\n", RecipeError, "built in", TF_NEED_KAFKA=True)
    assert "Remove TF_NEED_KAFKA" in fault.remedy
    assert not (bench.tree / "ran").exists()


def test_a_yes_that_configure_skips_is_an_error(bench: Bench) -> None:
    skipping = WHOLE.replace("ask 'Do you wish to build TensorFlow with MPI", ": 'Do you")
    bench.fails(skipping, RecipeError, "wants TF_NEED_MPI", TF_NEED_MPI=True, MPI_HOME="/usr")


def test_the_lines_of_a_patched_configure_are_data_of_the_recipe(bench: Bench) -> None:
    script = WHOLE.replace("tf_api_version=2", "tf_api_version=3")
    fault = bench.fails(script, ToolError, "is not what tfwright renders")
    assert fault.evidence.lines == (
        "- rendered only: build:v2 --define=tf_api_version=2",
        "+ written only:  build:v2 --define=tf_api_version=3",
    )
    bench.changes = tomllib.loads(fault.remedy.partition("already):\n")[2])["configure"]
    assert bench.again().bazelrc == Artefact.of(bench.bazelrc)
    assert "tf_api_version=3" in bench.bazelrc.read_text()
    assert "tf_api_version=2" not in bench.bazelrc.read_text()


def test_a_question_of_a_patched_configure_is_data_of_the_recipe(bench: Bench) -> None:
    warp = "ask 'Do you wish to build TensorFlow with Warp support? [y/N]: ' TF_NEED_WARP\n"
    script = WHOLE.replace("cat >> $rc", warp + "cat >> $rc", 1)
    fault = bench.fails(script, RecipeError, "with Warp support")
    document = tomllib.loads(fault.remedy.partition("already):\n")[2])["configure"]
    bench.changes = {"prompts": document["prompts"]}
    assert document["answers"] == {"TF_NEED_WARP": False}
    configured = bench.again({**ANSWERS, **document["answers"]})
    assert "TF_NEED_WARP" in configured.asked


OWN = """\
#!/bin/bash
read -p 'Y for CPU, N for GPU. [Y/n] ' gpu
echo "build --define=cpu=$gpu --python_path=$(which python3)" > .bazelrc
echo "build --action_env FLAVOUR=$FLAVOUR" >> .bazelrc
"""


def own_interface(bench: Bench, **bazelrc: object) -> None:
    """Make the bench's recipe one for a repository with an interface of its own."""
    prompt = {"variable": "TF_NEED_CUDA", "question": "Y for CPU, N for GPU. [Y/n] "}
    prompt |= {"kind": "yes-no", "yes": "N", "no": "Y"}
    bench.source = {"interface": "own", "branch": "master"}
    bench.changes = {"program": "configure", "prompts": [prompt], "bazelrc": bazelrc}


def test_an_interface_of_its_own_needs_no_release(bench: Bench, notes: list[str]) -> None:
    own_interface(bench)
    configured = bench.run(OWN, {"TF_NEED_CUDA": False, "FLAVOUR": "vanilla"})
    assert configured.asked == ("TF_NEED_CUDA",)
    text = (bench.tree / ".bazelrc").read_text()
    assert "--define=cpu=Y" in text
    assert "FLAVOUR=vanilla" in text
    assert notes == [".bazelrc was not checked: the recipe records none of its lines"]


def test_recorded_lines_are_held_against_what_is_written(bench: Bench) -> None:
    lines = [
        "build --define=cpu=Y",
        "build --python_path=@PROGRAMS@/python3",
        "build --action_env=FLAVOUR=vanilla",
    ]
    own_interface(bench, lines=lines)
    programs = str(bench.folder / "build_out/small/bin")
    answers = {"TF_NEED_CUDA": False, "FLAVOUR": "vanilla", "PROGRAMS": programs}
    assert bench.run(OWN, answers).bazelrc == Artefact.of(bench.tree / ".bazelrc")
    with fails(ToolError, "renders"):
        bench.again({**answers, "FLAVOUR": "other"})


def test_a_file_that_bazel_would_not_read_is_named_before_it_is_missed(bench: Bench) -> None:
    own_interface(bench)
    bench.changes["writes"] = ".own.bazelrc"
    answers = {"TF_NEED_CUDA": False, "FLAVOUR": "vanilla"}
    with fails(RecipeError, ".own") as caught:
        bench.run(OWN.replace(".bazelrc", ".own.bazelrc"), answers)
    assert not (bench.tree / ".own.bazelrc").exists()
    line = caught.value.remedy.rpartition(": ")[2]
    assert line == "import %workspace%/.own.bazelrc"
    (bench.tree / ".bazelrc").write_text(f"{line}\n")
    run_git("add", ".bazelrc", cwd=bench.tree)
    run_git("commit", "--quiet", "--message=rc", cwd=bench.tree)
    made = bench.again(answers)
    assert made.bazelrc.path == bench.tree / ".own.bazelrc"


def test_a_program_that_the_tree_does_not_have_is_named_with_those_that_it_has(
    bench: Bench,
) -> None:
    bench.changes = {"program": "configure.sh"}
    fault = bench.fails(WHOLE, RecipeError, r"no configure\.sh; it has configure$")
    assert "'program' in [configure]" in fault.remedy


def test_windows_line_ends_are_named_as_the_cause(bench: Bench) -> None:
    bench.fails(WHOLE.replace("\n", "\r\n"), RecipeError, "Windows line ends")


def test_a_toolkit_that_lacks_a_version_is_blamed_and_not_the_question_before(bench: Bench) -> None:
    report = "Could not find any cudnn.h matching version '99' in any subdirectory:\n        ''\n"
    fault = bench.fails(
        f'#!/bin/sh\nprintf "{report}"\nexit 1\n', RecipeError, "find cudnn.h of version 99"
    )
    assert "[configure.answers]" in fault.remedy


def test_what_an_earlier_configure_edited_is_put_back_first(bench: Bench) -> None:
    script = WHOLE + "\ngrep -q 'as upstream' tracked.cc && echo edited > tracked.cc\n"
    first = bench.run(script)
    assert (bench.tree / "tracked.cc").read_text() == "edited\n"
    assert bench.again() == first


@pytest.mark.parametrize("changed", ["kernel.cc", "version.txt"])
def test_a_change_of_a_compiled_source_alone_does_not_run_configure_again(
    bench: Bench, changed: str
) -> None:
    count = bench.folder / "runs"
    script = f"{WHOLE}\necho made > made.txt\necho ran >> {count}\n"
    bench.more = [changed]
    (bench.tree / changed).write_text("first\n")
    first = bench.run(script)
    (bench.tree / changed).write_text("second\n")
    # As the stage before does: nothing is left of what ./configure wrote.
    (bench.tree / "made.txt").unlink()
    bench.bazelrc.unlink()
    bench.commit(script)
    assert bench.again() == first
    assert (bench.tree / "made.txt").read_text() == "made\n"
    assert count.read_text().count("ran") == (1 if changed == "kernel.cc" else 2)


def test_the_plan_shows_the_command_and_the_file_without_a_tree(bench: Bench) -> None:
    command, file = Stage(configure).steps(bench.job(ANSWERS), {})
    assert isinstance(command, Command)
    assert command.env["PATH"].startswith(str(bench.folder / "build_out/small/bin:"))
    assert isinstance(file, Writes)
    assert 'PYTHON_BIN_PATH="@PYTHON_BIN_PATH@"' in file.content


def test_another_toolkit_in_the_host_file_is_a_reason_to_configure_again(bench: Bench) -> None:
    job = bench.job(ANSWERS)
    other = RecipeJob(
        recipe=job.recipe, host_file=HostFile(build_out=job.host_file.build_out, cuda=bench.folder)
    )
    assert configure.inputs(job) != configure.inputs(other)


@pytest.mark.parametrize("kind", ["link to a directory", "repository of its own"])
def test_what_is_no_file_and_appeared_in_the_tree_is_damage(
    bench: Bench, tmp_path: Path, kind: str
) -> None:
    configured = bench.run(WHOLE)
    job = bench.job(ANSWERS)
    for name in ("tree", "tree.git"):
        (job.places.own / name).symlink_to(tmp_path / name)
    # The paths of the stage's own files are those of another directory.
    written = [
        artefact.model_copy(update={"path": job.places.tree / artefact.path.name})
        for artefact in configured.written
    ]
    configured = configured.model_copy(update={"written": tuple(written)})
    assert configure.damage(job, configured) is None
    strange = bench.tree / "strange"
    if kind == "repository of its own":
        strange.mkdir()
        run_git("init", "-q", cwd=strange)
    else:
        strange.symlink_to(tmp_path)
    assert "strange" in str(configure.damage(job, configured))


def test_the_programs_on_the_path_of_later_stages_are_those_of_configure_alone(
    bench: Bench,
) -> None:
    programs = make_folder(bench.job(ANSWERS).places.programs)
    (programs / "cp").write_text("#!/bin/sh\n")
    folder = bench.run(WHOLE).programs
    assert not (programs / "cp").exists()
    assert not folder.changed()
    (programs / "cp").write_text("#!/bin/sh\n")
    assert folder.changed()


def test_the_command_in_a_plan_has_the_python_that_was_fetched(bench: Bench) -> None:
    job = bench.job(ANSWERS, "environment")
    _, inputs, _ = bench.parts(job)
    command, _ = Stage(configure).steps(job, {Inputs: inputs})
    assert isinstance(command, Command)
    assert command.env["PYTHON_BIN_PATH"] == str(inputs.python)


def test_a_file_that_appears_in_the_configured_tree_is_damage(bench: Bench) -> None:
    configured = bench.run(WHOLE)
    recipe = bench.job(ANSWERS).recipe
    # The directories of a build are named by its recipe.
    job = RecipeJob(
        recipe=recipe.changed(name=bench.folder.name),
        host_file=HostFile(build_out=bench.folder.parent),
    )
    assert job.places.tree == bench.tree
    assert configure.damage(job, configured) is None
    (bench.tree / "strange.h").touch()
    assert configure.damage(job, configured) == "strange.h is new in the tree"
