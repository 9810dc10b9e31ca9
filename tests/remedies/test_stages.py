"""What is said where a stage fails after ./configure, done to the letter."""

import re
import shlex
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.tags import platform_tags
from tests.making import Maker, Serve, find_text, make_file, make_folder, make_program
from tests.nightly.wheels import write_wheel
from tests.pipeline.stages import test_check, test_nccl
from tests.pipeline.stages.test_package import packaged, script
from tests.pipeline.stages.test_verify import ALONE
from tests.remedies.following import CommandLine, add, commands, failing, write_recipe
from tests.remedies.test_inputs import sources_left, zipped
from tests.results import facts_of, for_target, tree_of
from tests.upstream import commit

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import FailureRecord
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import (
    DESTINATION,
    TENSORFLOW_TARGET,
    WHEEL_TARGET,
    NcclTable,
    PackageTable,
    VerifyTable,
)
from tfwright.errors import (
    HostError,
    RecipeError,
    SupplyError,
    TfwrightError,
    ToolError,
    WheelError,
)
from tfwright.pipeline import engine
from tfwright.pipeline.compile import attempts, failure
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import NCCL_LIBRARY, Built, Check, Inputs, Unpinned
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import nccl, verify
from tfwright.smoke import run as trials
from tfwright.smoke.run import WheelVenv
from tfwright.tools.bazel.client import BazelRun
from tfwright.tools.process import capacity, runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import venv

pytestmark = pytest.mark.medium

# Bazel


def refused(job: RecipeJob, *errors: str, status: int = 1) -> TfwrightError:
    """Return the error for a Bazel that ended with some lines."""
    job.log("compile").parent.mkdir(parents=True, exist_ok=True)
    job.log("compile").touch()
    outcome = BazelRun(status, errors, 0)
    command = Command(("bazel",), Path("/"))
    return failure.error_of(job, command, outcome, FailureRecord(None, None))


def test_a_tag_that_only_a_network_gives_is_to_be_pinned_and_nothing_is_to_be_dropped(
    job: RecipeJob,
) -> None:
    said = "ERROR: An error occurred during the fetch of repository 'dep':"
    why = "WORKSPACE:1: dep: git_repository takes v1"
    loose = Unpinned(name="dep", urls=("https://example.org/dep",), lines=(why,), by_table=False)

    def stopped(*, offline: bool) -> TfwrightError:
        mine = replace(job, offline=offline)
        outcome = BazelRun(1, (said,), 0)
        command = Command(("bazel",), Path("/"))
        record = FailureRecord(None, None)
        return failure.error_of(mine, command, outcome, record, [loose])

    fault = stopped(offline=True)
    assert isinstance(fault, RecipeError)
    assert fault.evidence.lines == [why]
    assert "Pin dep by a patch" in fault.remedy
    assert "drop" not in fault.remedy
    # With a network the tag can be had: something else is wrong.
    assert not isinstance(stopped(offline=False), RecipeError)


WORKSPACE = """\
http_archive(name = "dep", urls = ["http://127.0.0.1:9/dep.zip"], sha256 = "{sha256}")
"""


@pytest.mark.parametrize(("offline", "way"), [(True, "drop"), (True, "downloads"), (False, "drop")])
@pytest.mark.usefixtures("no_pauses")
def test_what_bazel_could_not_download_is_fetched_in_each_way_that_is_named(  # noqa: PLR0913
    shell: CommandLine,
    tmp_path: Path,
    serve: Serve,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    offline: bool,
    way: str,
) -> None:
    folder = make_folder(tmp_path / "folder")
    sha256 = zipped(folder / "dep.zip", "def more(): pass\n")
    text = WORKSPACE.format(sha256=sha256)
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": text})
    recipe = write_recipe(tmp_path / "recipes/small.toml", tmp_path / "upstream", pinned)
    monkeypatch.setattr(recipes, "RECIPES", recipe.parent)
    job = RecipeJob.of("small", HostFile(build_out=tmp_path / "build_out"))
    line = "ERROR: Error downloading [http://127.0.0.1:9/dep.zip] to /x/dep.zip: refused"
    fault = refused(replace(job, offline=offline), line)
    assert isinstance(fault, SupplyError)
    (fetch,) = commands(fault.remedy)
    shell.succeeds(fetch)
    assert sources_left(shell, capsys) == 0
    if way == "drop":
        assert "under any name, into the folder that the host file" in fault.remedy
        (folder / "dep.zip").rename(folder / "any name")
        add(shell.host_file, f'drop = "{folder}"\n')
    else:
        assert "[downloads] of the host file" in fault.remedy
        address = serve(folder)
        add(shell.host_file, f'[downloads]\n"http://127.0.0.1:9/" = "{address}"\n')
    shell.succeeds(fetch)
    assert sources_left(shell, capsys) > 0


def test_programs_that_do_not_run_here_are_not_needed_up_to_the_stage_that_is_named(
    shell: CommandLine, tmp_path: Path
) -> None:
    inputs = Inputs(mirror=tmp_path, commit="0" * 40, epoch=1, programs=None)
    fault = failing(lambda: inputs.python, HostError)
    option = find_text(r"--until \w+", fault.remedy)
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": ""})
    recipe = write_recipe(tmp_path / "r/small.toml", tmp_path / "upstream", pinned)
    shell.succeeds(f"invoke build --recipe {recipe} {option[0]}")


def test_the_advice_under_each_finding_is_followed(shell: CommandLine, tmp_path: Path) -> None:
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": ""})
    recipe = write_recipe(tmp_path / "r/small.toml", tmp_path / "upstream", pinned)
    text = recipe.read_text("utf-8").replace('"any"', '"3.2"')
    recipe.write_text(text, "utf-8")
    odd = tmp_path / "my out"
    host_file = make_file(shell.host_file, f'build_out = "{odd}"\n')
    command = f"invoke build --recipe {recipe} --until source"
    shell.remedy(command, "finding")
    assert shell.fault
    numbered = re.findall(r"(?m)^  \d\. .*\n     (.*)$", shell.fault.what)
    assert len(numbered) == 2
    for advice in numbered:
        if line := re.search(r"\[pythons\] ('?[\d.]+'? = )", advice):
            own = make_program(tmp_path / "python3.2", "#!/bin/sh\necho 3.2.6\n")
            add(host_file, f"[pythons]\n{line[1]}'{own}'\n")
        else:
            assert re.match(rf"Set build_out to .* in {host_file}", advice)
            text = host_file.read_text("utf-8")
            host_file.write_text(text.replace("my out", "out"), "utf-8")
    shell.succeeds(command)


# nccl


@pytest.fixture
def built(job: RecipeJob) -> RecipeJob:
    return test_nccl.built.__wrapped__(job)  # type: ignore[attr-defined,no-any-return]


def test_a_compiler_that_is_not_there_is_named_by_its_variable(built: RecipeJob) -> None:
    table = NcclTable(rebuild=True)
    failing(lambda: test_nccl.run(built, table, env={"CXX": "no-such-c++"}), HostError, "CXX")


def test_the_target_is_named_that_builds_the_library(built: RecipeJob) -> None:
    place = built.places.tree / "bazel-bin" / NCCL_LIBRARY
    place.unlink()

    def library(target: str) -> object:
        made = Built(target=target, outputs=(), actions=1)
        return nccl._bazel_library(tree_of(built), made)

    fault = failing(lambda: library("//tensorflow:other"), RecipeError)
    line = find_text(r"\[compile\] (target = \".*\")", fault.remedy)
    (target,) = tomllib.loads(line[1]).values()
    assert target == TENSORFLOW_TARGET
    # What that target builds.
    place.write_bytes(b"")
    assert library(target)


# package


def test_arguments_of_a_program_are_corrected(job: RecipeJob, tmp_path: Path) -> None:
    job = for_target(job, "//:build_pip_pkg")
    (job.places.tree / "bazel-bin").mkdir(parents=True)
    make_program(job.places.tree / "pack.sh", '#!/bin/sh\ntouch "$1/a.whl"\n')
    job.places.home.mkdir()
    wrong = PackageTable(program="pack.sh", arguments=(str(tmp_path),))
    fault = failing(lambda: packaged(job, wrong), ToolError)
    find_text(r"Correct \[package\], .* so that one wheel, and nothing else,", fault.remedy)
    assert packaged(job, PackageTable(program="pack.sh", arguments=(DESTINATION,)))


def test_a_program_that_is_not_there_is_corrected(job: RecipeJob) -> None:
    job = for_target(job, "//:build_pip_pkg")
    job.places.tree.mkdir(parents=True)
    program = make_program(job.places.tree / "pack.sh", '#!/bin/sh\ntouch "$1/a.whl"\n')
    job.places.home.mkdir()
    wrong = PackageTable(program="bazel-bin/pack.sh")
    fault = failing(lambda: packaged(job, wrong), RecipeError)
    assert re.match(r"Correct package\.program, or compile\.target", fault.remedy)
    assert packaged(job, PackageTable(program=program.name))


def test_flags_are_corrected_where_the_wheel_target_makes_no_wheel(
    job: RecipeJob, make_wheel: Maker
) -> None:
    job = for_target(job, WHEEL_TARGET)
    job.places.build_out.mkdir()
    fault = failing(lambda: packaged(job, PackageTable()), ToolError, "patches")
    assert fault.evidence.log is None
    assert packaged(job, PackageTable(), (make_wheel(),))


def test_the_log_of_a_failed_packaging_says_why(job: RecipeJob) -> None:
    script(job, "one.whl")
    program = next(job.places.tree.rglob("build_pip_package"))
    need = "[ -e needed ] || { echo 'create needed first' >&2; exit 1; }\n"
    text = program.read_text("utf-8").replace("[ -d bazel-bin", f"{need}[ -d bazel-bin")
    program.write_text(text, "utf-8")
    fault = failing(lambda: packaged(job, PackageTable()), ToolError)
    (command,) = commands(fault.remedy)
    assert engine.stage_named(command.split()[-1]).name == "package"
    assert fault.evidence.log
    said = find_text(r"create (\S+) first", fault.evidence.log.read_text("utf-8"))
    (job.places.tree / said[1]).touch()
    assert packaged(job, PackageTable())


# verify


CORPUS = Path(__file__).parents[1] / "wheel/corpus"
HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
PLATFORM = next(platform_tags())


def read(job: RecipeJob, wheel: Path, table: VerifyTable) -> Sequence[Check]:
    """Read a wheel as the stage does before it installs it."""
    host = facts_of(python=".".join(map(str, sys.version_info[:3])))
    artefact = Artefact.of(wheel)
    return list(verify._read_wheel(job, artefact, table, job.recipe.host, host))


@pytest.mark.parametrize(
    ("key", "wrong", "library"),
    [
        ("glibc", "2.2", "_ctypes"),
        ("cpu", "avx", "elf-code"),
        ("macos", "10.11", "macho-thin"),
        ("architectures", ("sm_20",), "elf-gpu"),
        ("size", 10, "elf-code"),
    ],
)
def test_a_floor_of_the_recipe_is_set_to_what_the_wheel_needs(
    job: RecipeJob, tmp_path: Path, key: str, wrong: object, library: str
) -> None:
    import _ctypes

    own = Path(_ctypes.__file__)
    file = own if library == "_ctypes" else CORPUS / library
    wheel = write_wheel(
        tmp_path, tag=f"{HERE}-{HERE}-{PLATFORM}", files={"a.so": file.read_bytes()}
    )
    floor = ALONE.model_copy(update={key: wrong})
    fault = failing(lambda: read(job, wheel, floor), WheelError, f"verify.{key}")
    said = {
        "glibc": r"needs glibc ([\d.]+)",
        "macos": r"needs macOS ([\d.]+)",
        "size": r"([\d,]+) bytes",
        "architectures": r"only for ([\w, ]+)",
        "cpu": r"needs (fma)",
    }[key]
    found = re.search(said, fault.what)
    assert found, fault.what
    value: object = found[1].replace(",", "")
    if key == "size":
        value = int(str(value))
    elif key == "architectures":
        value = tuple(str(found[1]).split(", "))
    elif key == "cpu":
        # Haswell brought it with avx2.
        value = "avx2"
    assert read(job, wheel, ALONE.model_copy(update={key: value}))


@pytest.mark.parametrize("what", ["RECORD", "tags"])
def test_what_puts_the_wheel_together_is_corrected(
    job: RecipeJob, make_wheel: Maker, what: str
) -> None:
    right = make_wheel(folder="right")
    wrong = make_wheel()
    if what == "RECORD":
        with zipfile.ZipFile(wrong, "a") as archive:
            archive.writestr("more", "x")
    else:
        wrong = make_wheel(name="small-1.0-cp27-cp27mu-any.whl")
    failing(lambda: read(job, wrong, ALONE), WheelError, "patch")
    assert read(job, right, ALONE)


@pytest.mark.parametrize("version", ["3.6.15", "2.7.18"])
def test_what_a_python_lacks_for_a_venv_is_installed(tmp_path: Path, version: str) -> None:
    there = tmp_path / "there"
    python = make_program(
        tmp_path / "python",
        f'#!/bin/sh\ncase "$3" in install) touch {there}; exit 0;; esac\ntest -e {there}\n',
    )
    remedy = venv.install_remedy(python, version)
    making = venv.create_command(str(python), version, tmp_path / "venv", tmp_path)

    def make() -> None:
        runner.run(making, tmp_path / "log", remedy=remedy)

    assert failing(make, ToolError).remedy == remedy
    if version.startswith("2."):
        shown = find_text(r"run '(.*)'", remedy)
        runner.run(Command(tuple(shown[1].split()), tmp_path), tmp_path / "log", remedy="")
    else:
        package = find_text(r"package of its own, (\S+)\.$", remedy)
        assert package[1] == "python3.6-venv"
        there.touch()
    make()


def test_a_venv_that_lost_its_python_is_made_again(tmp_path: Path) -> None:
    def started(place: Path) -> trials.TrialOutcome:
        command = WheelVenv(place).python_command("-c", "1", home=tmp_path, extra={})
        return trials.run("matmul", command, tmp_path / "log")

    place = make_folder(tmp_path / "venv")
    failing(lambda: started(place), HostError, "Start")
    (place / "bin").mkdir()
    (place / "bin/python").symlink_to(sys.executable)
    assert started(place)


def test_the_log_and_the_python_of_a_failed_trial_show_the_failure(tmp_path: Path) -> None:
    own = WheelVenv(tmp_path / "venv")
    (own.place / "bin").mkdir(parents=True)
    own.python.symlink_to(sys.executable)
    (tmp_path / "small.py").write_text("raise OSError('no CPU for it')\n", "utf-8")
    extra = {"PYTHONPATH": str(tmp_path)}
    program = str(trials.program_path("matmul"))
    command = own.python_command(program, "small", home=tmp_path, extra=extra)
    outcome = trials.run("matmul", command, tmp_path / "log")
    fault = own.trial_error("small.whl", outcome)
    python = find_text(r"its Python is (\S+)\.$", fault.remedy)
    assert fault.evidence.log
    assert "no CPU for it" in fault.evidence.log.read_text("utf-8")
    again = Command((python[1], *fault.evidence.command[1:], "small"), tmp_path, extra)
    assert runner.attempt(again, tmp_path / "again", remedy="") != 0
    assert "no CPU for it" in (tmp_path / "again").read_text("utf-8")
    (tmp_path / "small.py").write_text("", "utf-8")
    assert trials.run("matmul", command, tmp_path / "log").reason != outcome.reason


KILLED = "ERROR: /t/BUILD:1:1: C++ compilation of rule '//:a' failed (Exit 1)\n{}\n"


def test_a_memory_that_was_too_small_is_made_larger(
    job: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "gcc: fatal error: Killed signal terminated program cc1plus"
    log = make_file(job.log("compile"), KILLED.format(said))
    failed = reader.read_failure(log, 0, killed=True, died=False)
    outcome = BazelRun(1, (KILLED.format(said),), 0)
    command = Command(("bazel",), Path("/"))
    fault = failure.error_of(job, command, outcome, failed)
    assert isinstance(fault, HostError)
    assert "raise the container's limit" in fault.remedy
    table = job.recipe.compile
    monkeypatch.setattr(capacity, "available_memory", lambda: 64 << 30)
    monkeypatch.setattr(capacity, "usable_cores", lambda: 4)
    monkeypatch.setattr(capacity, "total_memory", lambda: 8 << 30)
    attempts.learn_jobs(job, 1)
    assert attempts.actions_at_once(job, table) == 1
    # What was learned ends with the limit.
    monkeypatch.setattr(capacity, "total_memory", lambda: 64 << 30)
    assert attempts.actions_at_once(job, table) == 4


def test_the_commands_of_a_finding_are_shown_by_doctor(
    shell: CommandLine, worded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = f"--recipe {shlex.quote(str(worded))}"
    answers = {
        **dict.fromkeys(test_check.ANSWERS, "false"),
        "TF_NEED_CUDA": "true",
        "CC_OPT_FLAGS": '"-O2"',
        "TF_CUDA_CLANG": "false",
        "GCC_HOST_COMPILER_PATH": '"/usr/bin/gcc"',
        "TF_NEED_TENSORRT": "false",
        "TF_CUDA_VERSION": '"9.2"',
        "TF_CUDNN_VERSION": '"7.2"',
        "TF_NCCL_VERSION": '"1.3"',
        "TF_CUDA_COMPUTE_CAPABILITIES": '"6.1"',
    }
    add(worded, 'cuda = "9.2"\ncudnn = "7.2"', after='python = "any"')
    lines = "\n".join(f"{name} = {value}" for name, value in answers.items())
    add(worded, f"[configure.answers]\n{lines}\n")
    add(shell.host_file, 'cuda = "/nowhere/cuda"\n')
    shell.remedy(f"invoke build {named}")
    assert shell.fault
    advice = find_text(r"(invoke doctor --recipe .+?)   #", shell.fault.remedy)
    capsys.readouterr()
    shell.status(advice[1])
    said = "".join(capsys.readouterr())
    shown = find_text(r"(invoke toolkit --recipe .+) --cuda \S+\.run", said)
    # The command is about the same recipe, and asks for the file that was downloaded.
    shell.remedy(f"{shown[1]} --cuda /absent/cuda.run", "Download")
