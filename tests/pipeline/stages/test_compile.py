"""The compile stage: its command, a real Bazel on a small workspace, and every way to be stopped."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder, make_program
from tests.results import Notebook, configured_of, facts_of, inputs_of, tree_of
from tests.serving import QuietHandler, serving

from tfwright.documents.host_file import CacheTable, HostFile
from tfwright.documents.recipe import CompileTable
from tfwright.documents.release import Release
from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.pipeline import caching
from tfwright.pipeline.compile import attempts
from tfwright.pipeline.compile.attempts import Experience
from tfwright.pipeline.compile.invocation import Invocation
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built
from tfwright.pipeline.stage import Result, Stage, Writes
from tfwright.pipeline.stages import compile as stage
from tfwright.tools import files
from tfwright.tools.bazel.client import Options
from tfwright.tools.process import capacity, gauge
from tfwright.tools.process.command import Command

VERSIONS = ("0.24.1", "0.26.1")

BUILD = """\
cc_library(name = "greet", srcs = ["greet.cc"], hdrs = ["greet.h"])
cc_binary(name = "hello", srcs = ["main.cc"], deps = [":greet"])
genrule(name = "made", srcs = [":hello"], outs = ["made.txt", "more.txt"], cmd = "echo $$SOURCE_DATE_EPOCH > $(location made.txt); touch $(location more.txt); sleep 1")
cc_library(name = "broken", srcs = ["broken.cc"])
[genrule(
    name = "step%d" % n,
    srcs = ["step%d.txt" % (n - 1)] if n else [],
    outs = ["step%d.txt" % n],
    cmd = "echo begun >> @TALLY@/%d; sleep 2; touch $@" % n,
) for n in range(4)]
"""


@pytest.fixture(params=VERSIONS)
def binary(request: pytest.FixtureRequest, obtain_bazel: Callable[[str], Path]) -> Path:
    version: str = request.param
    return obtain_bazel(version)


@pytest.fixture
def workspace(job: RecipeJob, bazel_store: Path, tmp_path: Path) -> RecipeJob:
    """Return a job whose tree is a small workspace with TensorFlow 1.8's rc files; nothing in it is cached yet."""
    cache = CacheTable(directory=tmp_path / "cache")
    host_file = HostFile(build_out=bazel_store, cache=cache, jobs=1)
    made = replace(
        job, recipe=job.recipe.changed(name=f"small-{tmp_path.name}"), host_file=host_file
    )
    files = {
        "WORKSPACE": "",
        "BUILD": BUILD.replace("@TALLY@", str(tmp_path)),
        "greet.h": "int greet();\n",
        "greet.cc": '#include "greet.h"\nint greet() { return ANSWER; }\n',
        "main.cc": '#include "greet.h"\nint main() { return greet(); }\n',
        "broken.cc": "int broken() { return undeclared; }\n",
        "tools/bazel.rc": "build --copt=-DANSWER=0\n",
        ".tf_configure.bazelrc": "build --action_env SOURCE_DATE_EPOCH\nbuild --spawn_strategy=standalone --genrule_strategy=standalone\n",
    }
    for name, content in files.items():
        make_file(made.places.tree / name, content)
    made.places.home.mkdir()
    return made


def run(
    job: RecipeJob, binary: Path, target: str, *flags: str, **host: str | tuple[str, ...]
) -> Built:
    table = CompileTable(target=target, flags=flags)
    tree = job.places.tree
    facts = facts_of(**{"compiler": "cc", **host})
    inputs = inputs_of(tree, binary, epoch=1_500_000_000)
    source = tree_of(job, epoch=1_500_000_000)
    configured = configured_of(tree / ".tf_configure.bazelrc")
    return stage.run(
        job,
        table,
        job.recipe.bazel,
        job.recipe.configure,
        job.recipe.nccl,
        facts,
        inputs,
        source,
        configured,
    )


def processes(job: RecipeJob) -> list[str]:
    """Return the command lines of all processes that have to do with the recipe's output base or tree."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if f"{job.places.own}/" in line and "compile_job.py" not in line:
            found.append(line)
    return found


# The command


def options(*names: str) -> Options:
    return Options(startup={}, build=dict.fromkeys(names, ""))


PYTHON = Path("/vault/pythons/3.6.15-0123/bin/python")


def calls(job: RecipeJob, *names: str) -> Invocation:
    recipe = job.recipe
    return Invocation(
        job=job,
        table=recipe.compile,
        release=recipe.source.release,
        binary=Path("bazel"),
        options=options(*names),
        python=PYTHON,
        cache="/laid/out",
    )


def arguments(job: RecipeJob, *names: str) -> Sequence[str]:
    return calls(job, *names).arguments(attempts.actions_at_once(job, job.recipe.compile))


def with_settings(job: RecipeJob, **host_file: object) -> RecipeJob:
    return replace(job, host_file=job.host_file.changed(**host_file))


def test_a_cache_that_is_laid_out_is_a_disk_cache(job: RecipeJob) -> None:
    given = arguments(job, "remote_cache", "disk_cache", "remote_download_outputs")
    assert "--disk_cache=/laid/out" in given
    assert "--remote_download_outputs=all" in given
    assert not [name for name in given if "remote_cache" in name]


@pytest.mark.parametrize(
    ("version", "laid_out"), [("0.16.1", False), ("0.17.2", True), ("2.1.0", True), ("7.4.1", True)]
)
def test_a_bazel_whose_disk_cache_is_known_gets_one(
    job: RecipeJob, version: str, *, laid_out: bool
) -> None:
    planned = caching.planned_path(job, {"disk_cache": ""}, version)
    assert planned.startswith(str(job.host_file.cache_directory)) == laid_out
    assert caching.planned_path(job, {}, version) == ""


def test_a_flag_that_this_bazel_does_not_have_is_not_given(job: RecipeJob) -> None:
    assert not re.findall("cache|resources|strict", " ".join(arguments(job)))


def test_the_target_python_comes_first_for_the_scripts_that_bazel_runs(job: RecipeJob) -> None:
    assert (
        "--action_env=PATH=/vault/pythons/3.6.15-0123/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        in arguments(job)
    )


def test_what_the_user_asks_for_wins_over_the_host_file_and_that_over_the_memory(
    job: RecipeJob,
) -> None:
    assert "--jobs=7" in arguments(replace(with_settings(job, jobs=3), jobs=7))
    assert "--jobs=3" in arguments(with_settings(job, jobs=3))
    starved = replace(job, recipe=job.recipe.changed(compile=CompileTable(peak=1e4)))
    assert "--jobs=1" in arguments(starved)


def test_the_recipes_flags_come_after_ours_and_the_target_cannot_be_an_option(
    job: RecipeJob,
) -> None:
    table = CompileTable(flags=("--config=opt", "--jobs=1"))
    flagged = replace(job, recipe=job.recipe.changed(compile=table))
    assert arguments(flagged)[-4:] == ("--config=opt", "--jobs=1", "--", table.target)


@pytest.mark.parametrize(
    ("release", "files"),
    [
        ("1.1", ["tools/bazel.rc"]),
        ("1.12", ["tools/bazel.rc", ".tf_configure.bazelrc"]),
        ("1.13", [".bazelrc"]),
        ("2.20", [".bazelrc"]),
    ],
)
def test_the_rc_files_of_a_release_are_imported_by_name(
    job: RecipeJob, release: str, files: Sequence[str]
) -> None:
    source = job.recipe.source.changed(release=Release.parse(release))
    other = replace(job, recipe=job.recipe.changed(source=source))
    rc = next(calls(other).settings)
    assert rc.content.splitlines() == [f"import {job.places.tree / name}" for name in files]


def test_the_plan_shows_the_rc_file_and_the_command_without_a_bazel_in_the_store(
    job: RecipeJob,
) -> None:
    rc, command = Stage(stage).steps(job, {})
    assert isinstance(rc, Writes)
    assert isinstance(command, Command)
    assert command.argv[0] == "bazel-0.26.1"
    assert command.argv[-1] == job.recipe.compile.target
    assert not job.places.build_out.exists()


def test_the_callers_environment_reaches_bazel_only_as_far_as_it_is_about_the_network(
    job: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NEED_CUDA", "1")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    env = replace(calls(job), epoch=7).environment
    assert env["HTTPS_PROXY"] == env["https_proxy"] == "http://proxy:3128"
    assert env["SOURCE_DATE_EPOCH"] == "7"
    assert "TF_NEED_CUDA" not in env


def test_a_rule_that_patches_its_archive_by_git_does_so_inside_a_checkout(
    job: RecipeJob, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    patched = make_file(job.places.bazel / "external/archive/file", "old\n")
    patch = make_file(tmp_path / "patch", "--- a/file\n+++ b/file\n@@ -1 +1 @@\n-old\n+new\n")
    subprocess.run(
        ["git", "apply", patch], cwd=patched.parent, env=calls(job).environment, check=True
    )
    assert patched.read_text() == "new\n"


# What failed, and what is tried again


DOWNLOAD = "ERROR: no such package '@dep//': java.io.IOException: Error downloading [http://h/a.zip] to /x/a.zip: {} and referenced by '//:g'"
CHECKSUM = DOWNLOAD.format(f"Checksum was {'0a' * 32} but wanted {'0b' * 32}")
ACTION = "ERROR: /t/BUILD:1:1: C++ compilation of rule '//:x' failed (Exit 1): gcc failed: error executing command"
KILLED = f"{ACTION}\ngcc: fatal error: Killed signal terminated program cc1plus"
COMPLAINT = f"{ACTION}\nx.cc:9:1: error: expected ';' before 'int'"
BAR = "[3 / 9] Compiling a.cc; 1s local"
DIED = "Server terminated abruptly (error code: 14, error message: '', log file: '/x/jvm.out')"
FULL = f"{ACTION}\nld: final link failed: No space left on device"

STUB = """\
#!/bin/sh
case " $* " in *" help "* | *" shutdown "*) exit 0 ;; esac
case " $* " in *" --keep_going "*) cat @PLACE@/missing.said 2>&1; exit 1 ;; esac
echo "$@" >>@PLACE@/runs
for argument; do case $argument in --build_event_json_file=*) : >"${argument#*=}" ;; esac; done
said=@PLACE@/$(wc -l <@PLACE@/runs).said
test -f "$said" || exit 0
sed 1d "$said"
exit "$(sed 1q "$said")"
"""
"""Behaves like Bazel as far as a build hears of it: says what was prepared for this run, and else succeeds."""


class Stubbed:
    """A job whose Bazel says what a test wants."""

    def __init__(self, job: RecipeJob, place: Path) -> None:
        self.job, self.place, self.binary = job, place, place / "bazel"
        make_program(self.binary, STUB.replace("@PLACE@", str(place)))

    def says(self, *runs: str, status: int = 1) -> None:
        for number, said in enumerate(runs, 1):
            (self.place / f"{number}.said").write_text(f"{status}\n{said}\n", "utf-8")

    def build(self, **changes: Any) -> Built:  # noqa: ANN401 as `replace` takes them
        return run(replace(self.job, **changes), self.binary, "//:x")

    @property
    def jobs(self) -> list[str]:
        """How many actions at once each run was allowed."""
        return re.findall(r"--jobs=(\S+)", (self.place / "runs").read_text("utf-8"))


@pytest.fixture
def stubbed(job: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubbed:
    """Return a build on four processors whose Bazel is a script."""
    monkeypatch.setattr(attempts, "PAUSES", (0.01, 0.01))
    # The stub asks no cache, and the digest of a toolchain takes most of a second.
    settings = {"jobs": 4, "cache": CacheTable(enabled=False)}
    made = replace(job, host_file=job.host_file.changed(**settings))
    made.places.home.mkdir(parents=True)
    make_file(made.places.tree / ".tf_configure.bazelrc", "")
    place = make_folder(tmp_path / "stub")
    return Stubbed(made, place)


@pytest.mark.medium
@pytest.mark.parametrize(
    "why",
    [
        "Connection refused (Connection refused)",
        "connect timed out",
        "GET returned 503 Service Unavailable",
        "Unknown host: h",
    ],
)
def test_a_download_that_the_network_stopped_is_tried_again_twice(
    stubbed: Stubbed, notes: list[str], why: str
) -> None:
    stubbed.says(*[DOWNLOAD.format(why)] * 3)
    with fails(SupplyError, "http://h/a.zip"):
        stubbed.build()
    again = f"http://h/a.zip could not be downloaded ({why}); trying again in 0.01 s"
    assert notes == [again, again, "Asking Bazel which other archives it cannot get"]
    assert stubbed.jobs == ["4", "4", "4"]


@pytest.mark.medium
def test_what_passes_is_forgotten(stubbed: Stubbed) -> None:
    stubbed.says(DOWNLOAD.format("Connection reset"))
    stubbed.build()
    assert stubbed.jobs == ["4", "4"]
    assert Experience.of(stubbed.job).jobs is None


@pytest.mark.medium
@pytest.mark.parametrize(
    ("said", "kind", "what"),
    [
        (COMPLAINT, ToolError, r"C\+\+ compilation of rule '//:x' failed \(Exit 1\)"),
        (f"{COMPLAINT}\n{KILLED.replace('//:x', '//:y')}", ToolError, "'//:x' failed"),
        (FULL, HostError, "The disk is full"),
        (
            DOWNLOAD.format("GET returned 404 Not Found"),
            SupplyError,
            r"could not download http://h/a\.zip: GET returned 404",
        ),
        (
            DOWNLOAD.format(
                "All mirrors are down: [GET returned 404 Not Found, GET returned 403 Forbidden]"
            ),
            SupplyError,
            "could not download",
        ),
        (DOWNLOAD.format("PKIX path building failed"), SupplyError, "PKIX"),
    ],
)
def test_what_will_not_get_better_by_itself_is_not_tried_again(
    stubbed: Stubbed, notes: list[str], said: str, kind: type[Exception], what: str
) -> None:
    stubbed.says(said)
    with pytest.raises(kind, match=what):
        stubbed.build()
    tried_again = [note for note in notes if "trying again" in note]
    assert (stubbed.jobs, tried_again) == (["4"], [])


@pytest.mark.medium
@pytest.mark.parametrize("offline", [True, False])
def test_all_archives_that_bazel_cannot_get_are_named_at_once(
    stubbed: Stubbed, *, offline: bool
) -> None:
    first = DOWNLOAD.format("GET returned 404 Not Found")
    others = [first.replace("a.zip", f"{name}.zip") for name in "abc"]
    stubbed.says(first)
    # Each is said twice: when the download fails, and for the rule that needs it.
    (stubbed.place / "missing.said").write_text("\n".join([*others, *others]), "utf-8")
    with fails(SupplyError, "http://h/a.zip", "2 more") as caught:
        stubbed.build(offline=offline)
    named = [line.partition(": ")[0] for line in caught.value.evidence.lines]
    assert named == [f"http://h/{name}.zip" for name in "abc"]


@pytest.mark.medium
def test_wrong_bytes_are_fetched_once_more_since_they_may_have_been_cut_off(
    stubbed: Stubbed,
) -> None:
    stubbed.says(CHECKSUM, CHECKSUM)
    with fails(SupplyError, "Checksum"):
        stubbed.build()
    assert len(stubbed.jobs) == 2


@pytest.mark.medium
def test_an_offline_build_tries_no_download_again(stubbed: Stubbed) -> None:
    stubbed.says(DOWNLOAD.format("Connection refused"))
    with fails(SupplyError, "download", "network"):
        stubbed.build(offline=True)
    assert len(stubbed.jobs) == 1


@pytest.mark.medium
def test_a_flag_that_bazel_refuses_is_the_recipes_fault(stubbed: Stubbed) -> None:
    stubbed.says("ERROR: Unrecognized option: --nosuch", status=2)
    with fails(RecipeError, "--nosuch"):
        stubbed.build()


# The memory


@pytest.mark.medium
@pytest.mark.parametrize(
    ("said", "status"),
    [
        (KILLED, 1),
        (f"{ACTION}\ncollect2: fatal error: ld terminated with signal 9 [Killed]", 1),
        (f"{ACTION}\nvirtual memory exhausted: Cannot allocate memory", 1),
        (f"{BAR}\n{DIED}", 37),
        (BAR, 37),
    ],
)
def test_where_the_memory_ran_out_the_build_goes_on_with_half_the_jobs_and_remembers(
    stubbed: Stubbed, notes: list[str], said: str, status: int
) -> None:
    stubbed.says(said, said, status=status)
    stubbed.build()
    stubbed.build()
    assert stubbed.jobs == ["4", "2", "1", "1"]
    assert notes[0].startswith("The memory did not hold 4 actions at once; going on with 2")
    assert str(stubbed.job.places.memory) in notes[0]
    assert notes[2].startswith("1 at once, since more actions did not fit into the memory before")


@pytest.mark.medium
@pytest.mark.parametrize("said", [DIED, ""])
def test_a_server_that_dies_before_its_first_action_teaches_nothing_about_the_memory(
    stubbed: Stubbed, said: str
) -> None:
    stubbed.says(said, status=37)
    with fails(HostError, "before its first action"):
        stubbed.build()
    assert stubbed.jobs == ["4"]
    assert Experience.of(stubbed.job).jobs is None


@pytest.mark.medium
def test_the_jobs_are_those_that_ran_also_if_the_memory_is_gone_in_the_end(
    stubbed: Stubbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = iter([64 * capacity.GIB] * 2)
    monkeypatch.setattr(capacity, "usable_cores", lambda: 4)
    monkeypatch.setattr(capacity, "available_memory", lambda: next(free, 0))
    stubbed.says(KILLED)
    stubbed.build(host_file=stubbed.job.host_file.changed(jobs=None))
    assert stubbed.jobs == ["4", "2"]


@pytest.mark.medium
def test_the_plan_shows_the_jobs_that_the_memory_held(stubbed: Stubbed) -> None:
    stubbed.says(KILLED)
    stubbed.build()
    command = Stage(stage).steps(stubbed.job, {})[1]
    assert isinstance(command, Command)
    assert "--jobs=2" in command.argv


@pytest.mark.medium
def test_the_memory_of_a_single_action_that_is_not_there_ends_the_build(stubbed: Stubbed) -> None:
    stubbed.says(KILLED)
    with fails(HostError, "action"):
        stubbed.build(jobs=1)
    assert stubbed.jobs == ["1"]


@pytest.mark.medium
def test_what_the_user_asks_for_wins_over_what_was_remembered(stubbed: Stubbed) -> None:
    attempts.learn_jobs(stubbed.job, 1)
    stubbed.build(jobs=3)
    assert stubbed.jobs == ["3"]


@pytest.mark.medium
def test_a_host_with_more_memory_than_was_remembered_starts_anew(
    stubbed: Stubbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts.learn_jobs(stubbed.job, 1)
    grown = 2 * capacity.total_memory()
    monkeypatch.setattr(capacity, "total_memory", lambda: grown)
    stubbed.build()
    assert stubbed.jobs == ["4"]


@pytest.mark.medium
def test_a_build_that_only_waited_for_memory_runs_one_action_less_the_next_time(
    stubbed: Stubbed, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauge, "SECONDS", 0.001)
    monkeypatch.setattr(capacity, "memory_pressure", lambda: 35.0)
    stubbed.build()
    assert notes == [
        "With 4 actions at once everything waited for memory 35 % of the time; later builds run 3"
    ]
    assert Experience.of(stubbed.job).jobs == 3


@pytest.mark.parametrize("damage", ["", "{", '{"jobs": 0}', '{"peak": "much"}', "\xff"])
def test_a_damaged_memory_of_earlier_builds_is_none(stubbed: Stubbed, damage: str) -> None:
    stubbed.job.places.memory.write_bytes(damage.encode("latin-1"))
    assert Experience.of(stubbed.job) == Experience()


def test_an_action_that_took_more_than_the_recipe_says_bounds_the_jobs(
    job: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "usable_cores", lambda: 64)
    monkeypatch.setattr(capacity, "available_memory", lambda: 12 * capacity.GIB)
    assert attempts.actions_at_once(job, CompileTable(peak=1.5)) == 8
    attempts.learn_peak(job, 3.0)
    attempts.learn_peak(job, 0.5)
    assert attempts.actions_at_once(job, CompileTable(peak=1.5)) == 4
    assert attempts.actions_at_once(job, CompileTable(peak=6)) == 2


# A real Bazel


@pytest.mark.slow
def test_a_target_is_built_and_again_nothing_is_done(
    workspace: RecipeJob, binary: Path, listener: Notebook
) -> None:
    built = run(workspace, binary, "//:made")
    made, more = sorted(output.path for output in built.outputs)
    assert (made.name, more.name) == ("made.txt", "more.txt")
    assert made.read_text("utf-8") == "1500000000\n"
    assert built.actions >= 4
    assert listener.steps[-1].done == listener.steps[-1].total
    assert any("genrule //:made" in heard.doing for heard in listener.steps)
    assert run(workspace, binary, "//:made").actions <= 1
    assert processes(workspace) == []


@pytest.mark.slow
def test_a_changed_toolkit_makes_every_action_run_again_and_the_same_one_does_not(
    workspace: RecipeJob, binary: Path
) -> None:
    job = workspace.without_cache()
    actions = [run(job, binary, "//:made", toolkit=digest * 64).actions for digest in "aab"]
    assert actions[1] <= 1 < actions[0] == actions[2]


@pytest.mark.slow
def test_an_output_whose_bytes_never_reached_the_disk_is_made_again(
    workspace: RecipeJob, binary: Path
) -> None:
    job = workspace.without_cache()
    (first, _) = run(job, binary, "//:made").outputs
    # As a power cut leaves it: name, size and time are on the disk, the bytes are zeros. Bazel's
    # server has ended with the build, and the next one reads every output before it believes it.
    state, size = first.path.stat(), first.size
    first.path.chmod(0o644)
    first.path.write_bytes(bytes(size))
    first.path.chmod(state.st_mode)
    os.utime(first.path, ns=(state.st_atime_ns, state.st_mtime_ns))
    (again, _) = run(job, binary, "//:made").outputs
    assert again.sha256 == first.sha256
    assert again.path.read_text("utf-8") == "1500000000\n"


@pytest.mark.slow
def test_an_external_repository_that_somebody_changed_is_made_again(
    workspace: RecipeJob, binary: Path, notes: list[str]
) -> None:
    made = workspace.places.bazel / "external/local_config_cc/BUILD"
    run(workspace, binary, "//:hello")
    before, state = made.read_text("utf-8"), made.stat()
    made.chmod(0o644)
    made.write_text(before + "# evil\n", "utf-8")
    os.utime(made, ns=(state.st_atime_ns, state.st_mtime_ns))
    run(workspace, binary, "//:hello")
    assert made.read_text("utf-8") == before
    assert notes == ["External repository local_config_cc changed on disk; Bazel makes it again"]


@pytest.mark.slow
def test_a_directory_in_the_place_of_a_link_to_the_outputs_is_damage_and_is_removed(
    workspace: RecipeJob, binary: Path
) -> None:
    run(workspace, binary, "//:hello")
    assert stage.damage(workspace.job) is None
    link = workspace.places.tree / "bazel-bin"
    link.unlink()
    link.mkdir()
    (link / "evil").touch()
    assert stage.damage(workspace.job) == "bazel-bin changed in the tree"
    run(workspace, binary, "//:hello")
    assert stage.damage(workspace.job) is None
    assert link.is_symlink()


def test_a_link_to_outputs_of_somebody_else_is_damage(job: RecipeJob, tmp_path: Path) -> None:
    job.places.tree.mkdir(parents=True)
    assert stage.damage(job.job) is None
    (job.places.tree / "bazel-bin").symlink_to(tmp_path)
    assert stage.damage(job.job) == "bazel-bin changed in the tree"


@pytest.mark.slow
def test_a_changed_compiler_is_configured_again_and_the_same_one_is_not(
    workspace: RecipeJob, binary: Path, notes: list[str]
) -> None:
    made = workspace.places.bazel / "external/local_config_cc/BUILD"
    seen = []
    for compiler in ("gcc 12.2.0", "gcc 12.2.0", "gcc 13.1.0"):
        run(workspace, binary, "//:hello", compiler=compiler)
        seen.append(made.stat().st_ctime_ns)
    assert seen[0] == seen[1] < seen[2]
    assert notes == ["The compiler changed; Bazel configures it again"]


@pytest.mark.slow
def test_a_compiler_that_the_recipe_names_and_that_changed_is_used_for_every_action(
    workspace: RecipeJob, binary: Path, notes: list[str]
) -> None:
    for version in ("gcc-11 11.3.0", "gcc-11 11.4.0"):
        run(workspace, binary, "//:made", named=(version,))
    assert notes == ["The compiler changed; Bazel configures it again"]


@pytest.mark.slow
def test_the_log_is_plain_text_without_the_bar(workspace: RecipeJob, binary: Path) -> None:
    run(workspace, binary, "//:made")
    log = workspace.log("compile").read_text("utf-8")
    assert "Build completed successfully" in log
    assert "--copt=-DANSWER=0" in log
    assert not {"\x1b", "\r"} & {*log}
    assert not [line for line in log.splitlines() if line.startswith(("[", "Analyzing:"))]


@pytest.mark.slow
def test_a_fresh_output_base_takes_all_from_the_build_cache(
    workspace: RecipeJob, binary: Path, tmp_path: Path
) -> None:
    run(workspace, binary, "//:step1")
    other = replace(workspace, recipe=workspace.recipe.changed(name=f"twin-{tmp_path.name}"))
    workspace.places.tree.rename(other.places.own.parent / "moved")
    other.places.home.mkdir(parents=True)
    (other.places.own.parent / "moved").rename(other.places.tree)
    use = run(other, binary, "//:step1").cache
    assert (tmp_path / "1").read_text("utf-8") == "begun\n"
    assert use
    assert (use.lookups, use.hits, use.faults) == (2, 2, {})
    # Bazel counts the same.
    assert "2 remote cache hit" in other.log("compile").read_text("utf-8")


SPOILING = """
genrule(
    name = "spoiling",
    outs = ["spoilt"],
    cmd = "chmod u+w @CACHE@/*/* && for file in @CACHE@/*/*; do echo >> $$file; done; touch $@",
)
"""


@pytest.mark.slow
def test_a_build_that_writes_into_the_cache_is_refused_and_removed(
    workspace: RecipeJob, binary: Path
) -> None:
    run(workspace, binary, "//:step1")
    files.remove(workspace.places.bazel)
    rules = workspace.places.tree / "BUILD"
    cache = str(workspace.private_cache)
    text = rules.read_text("utf-8") + SPOILING.replace("@CACHE@", cache)
    rules.write_text(text, "utf-8")
    with fails(HostError, "changed"):
        run(workspace, binary, "//:spoiling")
    assert not workspace.places.bazel.exists()
    use = run(workspace, binary, "//:step1").cache
    assert use
    # The entries that it wrote into were copies.
    assert (use.lookups, use.hits, use.faults) == (2, 2, {})


@pytest.mark.slow
def test_an_offline_build_reaches_the_cache_from_where_it_has_no_network(
    workspace: RecipeJob, binary: Path
) -> None:
    first = run(replace(workspace, offline=True), binary, "//:step1").cache
    files.remove(workspace.places.bazel)
    second = run(replace(workspace, offline=True), binary, "//:step1").cache
    assert first
    assert second
    assert (first.stored, second.hits) == (2, 2)


@pytest.mark.slow
def test_a_compile_error_is_shown_with_the_compilers_words_and_not_tried_again(
    workspace: RecipeJob, binary: Path, notes: list[str]
) -> None:
    with fails(ToolError, "//:broken") as caught:
        run(workspace, binary, "//:broken")
    evidence = caught.value.evidence
    assert "'undeclared' was not declared" in "\n".join(evidence.lines)
    assert evidence.where == f"{workspace.places.tree / 'BUILD'}:4"
    assert (evidence.status, notes, processes(workspace)) == (1, [], [])
    # The lines say what to correct.
    make_file(workspace.places.tree / "broken.cc", "int broken() { return 1; }\n")
    assert run(workspace, binary, "//:broken")


@pytest.mark.slow
def test_an_unknown_flag_is_the_recipes_fault(workspace: RecipeJob, binary: Path) -> None:
    with fails(RecipeError, "--nosuch"):
        run(workspace, binary, "//:made", "--nosuch")
    with fails(RecipeError, "defined"):
        run(workspace, binary, "//:made", "--config=cuda")
    # The remedy is to correct the flags.
    assert run(workspace, binary, "//:made")


class Archives(QuietHandler):
    """Serves one archive, after as many refusals as there are in the list."""

    refusals: list[int]
    asked: list[str]
    content: bytes

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status = self.refusals.pop() if self.refusals else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)


@pytest.fixture
def archives(workspace: RecipeJob) -> Iterator[type[Archives]]:
    """Serve an archive that the workspace wants."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.txt", "x")
    handler = type(
        "Handler", (Archives,), {"refusals": [], "asked": [], "content": buffer.getvalue()}
    )
    with serving(handler) as address:
        workspace.places.tree.joinpath("WORKSPACE").write_text(
            'load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")\n'
            f'http_archive(name = "dep", urls = ["{address}/a.zip"], build_file_content = "exports_files([\'x.txt\'])")\n',
            "utf-8",
        )
        with workspace.places.tree.joinpath("BUILD").open("a", encoding="utf-8") as build:
            build.write(
                'genrule(name = "foreign", srcs = ["@dep//:x.txt"], outs = ["foreign.txt"], cmd = "cp $< $@")\n'
            )
        yield handler


@pytest.mark.slow
def test_a_download_that_fails_for_the_network_is_tried_again(
    workspace: RecipeJob,
    binary: Path,
    notes: list[str],
    archives: type[Archives],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "PAUSES", (0.1, 0.1))
    archives.refusals += [429, 429]  # which Bazel, unlike a 503, does not try again by itself
    (made,) = run(workspace, binary, "//:foreign").outputs
    assert made.path.name == "foreign.txt"
    assert (len(archives.asked), len(notes)) == (3, 2)


@pytest.mark.slow
def test_a_build_does_not_wait_for_an_archive_that_is_not_there(
    workspace: RecipeJob, binary: Path, archives: type[Archives]
) -> None:
    archives.refusals += [404] * 9
    with fails(SupplyError, "GET", "404"):
        run(workspace, binary, "//:foreign")
    # By the build, then by the run that looks for all others that are missing.
    assert len(archives.asked) == 2


@pytest.mark.slow
def test_an_offline_build_downloads_nothing(
    workspace: RecipeJob, binary: Path, archives: type[Archives]
) -> None:
    with fails(SupplyError, "download"):
        run(replace(workspace, offline=True), binary, "//:foreign")
    assert archives.asked == []


# Being stopped


def apart(job: RecipeJob, binary: Path, target: str) -> list[str]:
    """Return the command that builds a target in a process of its own."""
    results: dict[str, object] = {}

    def keep(*given: Any) -> Built:  # noqa: ANN401 what the stage is handed
        made = (one for one in given if isinstance(one, Result))
        results.update({type(one).__name__: one.model_dump(mode="json") for one in made})
        return Built(target="", outputs=(), actions=0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "run", keep)
        run(job, binary, target)
    given = {
        "recipe": job.recipe.model_dump(mode="json"),
        "settings": job.host_file.model_dump(mode="json"),
        "target": target,
        **results,
    }
    script = Path(__file__).with_name("compile_job.py")
    return [sys.executable, str(script), json.dumps(given)]


@pytest.fixture
def stoppable(
    workspace: RecipeJob, binary: Path, tmp_path: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Build four steps in a process of its own, and return it in the middle of the second one."""
    with subprocess.Popen(apart(workspace, binary, "//:step3")) as process:
        wait_for(tmp_path / "1", process)
        yield process


def wait_for(path: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, "the build ended too early"
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.05)
    time.sleep(0.3)


def begun(tmp_path: Path) -> list[int]:
    """Return how often each step was begun."""
    return [len((tmp_path / str(number)).read_text("utf-8").splitlines()) for number in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_interrupted_leaves_nothing_running_and_resumes(
    workspace: RecipeJob,
    binary: Path,
    tmp_path: Path,
    stoppable: "subprocess.Popen[bytes]",
    number: signal.Signals,
) -> None:
    stoppable.send_signal(number)
    assert stoppable.wait(30) != 0
    assert processes(workspace) == []
    run(workspace, binary, "//:step3")
    assert begun(tmp_path) == [1, 2, 1, 1]


@pytest.mark.slow
def test_a_build_that_is_killed_resumes_on_the_server_that_was_left_and_repeats_one_action(
    workspace: RecipeJob, binary: Path, tmp_path: Path, stoppable: "subprocess.Popen[bytes]"
) -> None:
    stoppable.kill()
    stoppable.wait(30)
    run(workspace, binary, "//:step3")
    assert begun(tmp_path) == [1, 2, 1, 1]
    assert "Starting local Bazel server" not in workspace.log("compile").read_text("utf-8")
    assert processes(workspace) == []


# A memory that does not hold all at once

GREEDY = """\
[genrule(
    name = "greedy%d" % n,
    outs = ["greedy%d.txt" % n],
    cmd = "@PYTHON@ -c 'import time; x = bytearray(400 << 20); time.sleep(2)' && touch $@",
) for n in range(3)]
"""
LIMIT = 1100 << 20
"""Bytes: for Bazel's server and two greedy actions, but not for three."""


@pytest.fixture
def confined(tmp_path: Path) -> Iterator[Path]:
    """Make a control group with a limit of its own, where this user and this kernel allow it."""
    kinds = {
        "memory.limit_in_bytes": Path("/sys/fs/cgroup/memory"),
        "memory.max": Path("/sys/fs/cgroup"),
    }
    limit, base = next(
        (kind for kind in kinds.items() if (kind[1] / "cgroup.procs").is_file()), ("", tmp_path)
    )
    # Two processes of pytest may run this at the same time, in directories of one name.
    group = base / f"tfwright-{os.getpid()}"
    try:
        make_file(group / limit, str(LIMIT))
    except OSError as fault:
        pytest.skip(f"no control group can be made here: {fault}")
    yield group
    group.rmdir()


@pytest.mark.slow
def test_a_build_whose_actions_the_kernel_kills_goes_on_with_fewer_at_once(
    workspace: RecipeJob, binary: Path, confined: Path
) -> None:
    job = replace(workspace, host_file=workspace.host_file.changed(jobs=3))
    with job.places.tree.joinpath("BUILD").open("a", encoding="utf-8") as build:
        build.write(
            GREEDY.replace("@PYTHON@", sys.executable)
            + 'filegroup(name = "greedy", srcs = ["greedy%d.txt" % n for n in range(3)])\n'
        )
    command = apart(job, binary, "//:greedy")
    done = subprocess.run(
        ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', confined, *command], check=False
    )
    log = job.log("compile").read_text("utf-8")
    assert done.returncode == 0
    assert "Build did NOT complete successfully" in log
    assert "Build completed successfully" in log
    known = Experience.of(job)
    assert known.jobs == 1
    assert known.memory == pytest.approx(LIMIT / capacity.GIB, abs=0.01)
    assert 0.38 < known.peak < 0.6
