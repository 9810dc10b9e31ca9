"""The configure stage, with small configure scripts on a real pty in a real git repository."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfwright.configure import bazelrc
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, TfwrightError, ToolError
from tfwright.host import pythons
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Programs, Tree
from tfwright.pipeline.stage import Artefact, Stage, Writes
from tfwright.pipeline.stages import configure
from tfwright.progress import Listener
from tfwright.tools.process.runner import Command

COMMIT = "0123456789" * 4
ANSWERS: dict[str, bool | str] = {
    "TF_ENABLE_XLA": False,
    "TF_NEED_OPENCL_SYCL": False,
    "TF_NEED_ROCM": False,
    "TF_NEED_CUDA": False,
    "TF_DOWNLOAD_CLANG": False,
    "TF_NEED_MPI": False,
    "TF_SET_ANDROID_WORKSPACE": False,
    "CC_OPT_FLAGS": "-O2",
}
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
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.bazelrc = self.tree / ".tf_configure.bazelrc"

    def job(self, answers: Mapping[str, object], by: str = "dialogue") -> BuildRequest:
        recipe = {
            "name": "small",
            "summary": "A recipe for tests",
            "source": {
                "url": "https://example.org/tensorflow.git",
                "branch": "r1.13",
                "commit": COMMIT,
            },
            "host": {"system": "Linux", "python": "any"},
            "bazel": {"version": "0.21.0"},
            "configure": {"by": by, "answers": answers, "timeout": 10},
        }
        return BuildRequest(
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
        job.places.home.mkdir(parents=True, exist_ok=True)
        bazel = self.folder / "bazel-0.21.0-linux-x86_64"
        bazel.write_text("#!/bin/sh\necho Build label: 0.21.0\n")
        bazel.chmod(0o755)
        python = pythons.own()
        facts = HostFacts(
            system="Linux",
            machine="x86_64",
            glibc="",
            interpreter=python,
            python=pythons.version_of(python),
            compiler="",
        )
        inputs = Inputs(
            mirror=self.tree,
            commit=COMMIT,
            epoch=1,
            programs=Programs(bazel=Artefact.of(bazel), bazel_origin="here", python=python),
        )
        tree = Tree(path=self.tree, commit=COMMIT, epoch=1, release=Release(1, 13), content="")
        return configure.run(job, job.recipe, facts, inputs, tree)

    def commit(self, script: str) -> None:
        (self.tree / "configure").write_text(script)
        (self.tree / "configure").chmod(0o755)
        (self.tree / "tracked.cc").write_text("as upstream\n")
        git = ["git", "-C", str(self.tree), "-c", "user.name=t", "-c", "user.email=t@example.org"]
        for arguments in (
            ["init", "-q", "--separate-git-dir", str(self.folder / "tree.git")],
            ["add", "configure", "tracked.cc"],
            ["commit", "-q", "-m", "tree"],
        ):
            subprocess.run([*git, *arguments], check=True)

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
    assert bench.bazelrc.read_text() == bazelrc.render(
        Release(1, 13),
        "Linux",
        {**ANSWERS, **_python(bench)},
        by="dialogue",
        python=pythons.version_of(pythons.own()),
    )
    assert configured.asked[:3] == ("PYTHON_BIN_PATH", "PYTHON_LIB_PATH", "TF_ENABLE_XLA")
    assert configured.never_asked == ()


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
    with pytest.raises(RecipeError, match="does not take TF_NEED_MPI='0' from the environment"):
        bench.run(START + "unset TF_NEED_MPI\n" + QUESTIONS + END, by="environment")
    assert not bench.bazelrc.exists()


def test_the_callers_environment_does_not_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NEED_CUDA", "1")
    assert "TF_NEED_CUDA" in bench.run(WHOLE).asked


def test_an_unknown_question_stops_the_stage_with_the_lines_to_add(bench: Bench) -> None:
    fault = bench.fails(
        START
        + "ask 'Do you wish to build TensorFlow with Warp support? [y/N]: ' TF_NEED_WARP\n"
        + END,
        RecipeError,
        "with Warp support",
    )
    assert 'variable = "TF_NEED_WARP"' in fault.remedy
    assert "TF_NEED_WARP = false" in fault.remedy


def test_a_refused_answer_stops_at_the_second_asking(bench: Bench) -> None:
    loop = "while ask 'Do you wish to build TensorFlow with MPI support? [y/N]: ' TF_NEED_MPI; do echo \"Invalid selection: $TF_NEED_MPI\"; unset TF_NEED_MPI; done\n"
    fault = bench.fails(START + loop, RecipeError, "does not take 'n' for TF_NEED_MPI")
    assert "Invalid selection: n" in fault.evidence.lines


def test_missing_answers_are_named_all_at_once_before_anything_runs(bench: Bench) -> None:
    with pytest.raises(RecipeError, match="TF_NEED_ROCM, TF_NEED_MPI") as caught:
        bench.run(
            "#!/bin/sh\ntouch ran\n",
            {
                name: value
                for name, value in ANSWERS.items()
                if name not in {"TF_NEED_MPI", "TF_NEED_ROCM"}
            },
        )
    assert "TF_NEED_ROCM = false\n    TF_NEED_MPI = false" in caught.value.remedy
    assert not (bench.tree / "ran").exists()


def test_exit_status_0_without_a_file_is_a_failure(bench: Bench) -> None:
    bench.fails(
        "#!/bin/sh\necho Configuration finished\n",
        ToolError,
        "exited with status 0 and wrote no bazelrc",
    )


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


def test_a_bazel_that_is_too_old_is_a_fault_of_the_recipe_even_with_status_0(bench: Bench) -> None:
    script = "#!/bin/sh\necho 'Please upgrade your bazel installation to version 0.24.1 or higher to build TensorFlow!'\n"
    fault = bench.fails(
        script, RecipeError, r"wants Bazel 0\.24\.1 or newer; the recipe pins Bazel 0\.21\.0"
    )
    assert 'version = "0.24.1"' in fault.remedy


def test_a_difference_shows_both_sides_and_is_an_error(bench: Bench) -> None:
    fault = bench.fails(
        WHOLE.replace("tf_api_version=2", "tf_api_version=3"), ToolError, "is not what"
    )
    assert fault.evidence.lines == (
        "- rendered only: build:v2 --define=tf_api_version=2",
        "+ written only:  build:v2 --define=tf_api_version=3",
    )


def test_a_no_that_nobody_asked_for_is_noted(bench: Bench, notes: list[str]) -> None:
    assert bench.run(WHOLE, {**ANSWERS, "TF_NEED_KAFKA": False}).never_asked == ("TF_NEED_KAFKA",)
    assert notes == ["never asked for: TF_NEED_KAFKA"]


def test_a_yes_that_nobody_asked_for_is_an_error(bench: Bench) -> None:
    bench.fails(
        WHOLE, RecipeError, "wants TF_NEED_KAFKA, and ./configure never asked", TF_NEED_KAFKA=True
    )


def test_what_an_earlier_configure_edited_is_put_back_first(bench: Bench) -> None:
    script = WHOLE + "\ngrep -q 'as upstream' tracked.cc && echo edited > tracked.cc\n"
    first = bench.run(script)
    assert (bench.tree / "tracked.cc").read_text() == "edited\n"
    assert bench.again() == first


def test_the_plan_shows_the_command_and_the_file_without_a_tree(bench: Bench) -> None:
    command, file = Stage(configure).steps(bench.job(ANSWERS), {})
    assert isinstance(command, Command)
    assert command.env["PATH"].startswith(str(bench.folder / "build_out/small/bin:"))
    assert isinstance(file, Writes)
    assert 'PYTHON_BIN_PATH="@PYTHON_BIN_PATH@"' in file.content


def test_another_toolkit_in_the_host_file_is_a_reason_to_configure_again(bench: Bench) -> None:
    job = bench.job(ANSWERS)
    other = BuildRequest(
        recipe=job.recipe,
        host_file=HostFile(build_out=job.host_file.build_out, cuda=bench.folder),
    )
    assert configure.inputs(job) != configure.inputs(other)
