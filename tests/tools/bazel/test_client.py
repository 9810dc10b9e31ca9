"""Bazel's client: its options, its run on a terminal, and its end; played by small programs that behave like it."""

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_program

from tfwright.errors import HostError, TfwrightError, ToolError
from tfwright.progress import Progress
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.bazel.client import Client, Options
from tfwright.tools.bazel.output import built_files
from tfwright.tools.process import capacity, gauge, isolation

HELP = """\
if [ "$5" = startup_options ]; then
  echo '  --[no]home_rc (a boolean; default: "true")'
  echo '  --output_base (a path; default: see description)'
else
  echo '  --local_resources (comma-separated available amount of RAM (in MB), CPU (in cores) and I/O; default: see description)'
  echo '  --disk_cache (a path; default: see description)'
fi
echo asked >> "$(dirname "$0")/asked"
"""


def program(folder: Path, script: str) -> Path:
    return make_program(folder / "bazel", f"#!/bin/sh\n{script}")


def client(folder: Path, script: str, options: Options | None = None) -> Client:
    binary = program(folder, script)
    return Client(
        binary,
        folder,
        folder / "base",
        folder / "install",
        folder / "rc",
        {"PATH": "/usr/bin:/bin"},
        options or Options(),
    )


def test_what_bazel_understands_is_asked_once_and_kept_beside_it(tmp_path: Path) -> None:
    binary = program(tmp_path, HELP)
    assert bazel_client.known_options(binary) == Options()
    options = bazel_client.options(binary, tmp_path)
    assert set(options.startup) == {"home_rc", "output_base"}
    assert options.build["local_resources"].startswith("comma-separated")
    assert bazel_client.options(binary, tmp_path) == options
    assert (tmp_path / "asked").read_text("utf-8") == "asked\nasked\n"


UNPACKS = """\
mkdir -p "{install}/install/abc.tmp.999999999"
echo 'Extracting Bazel installation...'
echo 'FATAL: Failed to extract embedded binaries: Failed to write zipped file: No such file'
exit 36
"""


@pytest.mark.parametrize(("free", "error"), [(1_000, HostError), (10**12, ToolError)])
def test_a_bazel_that_has_no_room_to_unpack_itself_is_said_to_lack_room(
    free: int, error: type[TfwrightError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = tmp_path / "install"
    binary = program(tmp_path, UNPACKS.format(install=install))
    with zipfile.ZipFile(binary, "a") as archive:
        archive.writestr("libjvm.so", bytes(10_000))
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(error) as caught:
        bazel_client.options(binary, install)
    assert ("disk is full" in caught.value.what) == (error is HostError)
    # The log of the help was in a temporary directory.
    assert caught.value.evidence.log is None
    assert any("Failed to extract" in line for line in caught.value.evidence.lines)
    assert not list((install / "install").iterdir())


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (["master_bazelrc"], ["--nomaster_bazelrc"]),
        (["home_rc", "system_rc"], ["--nosystem_rc", "--nohome_rc"]),
        ([], []),
    ],
)
def test_only_our_rc_file_is_read_whatever_the_version_calls_the_others(
    tmp_path: Path, known: list[str], given: list[str]
) -> None:
    argv = client(tmp_path, "", Options(startup=dict.fromkeys(known, ""))).command("build").argv
    assert [flag for flag in argv if flag.startswith("--no")] == given
    assert argv[-2:] == (f"--bazelrc={tmp_path / 'rc'}", "build")


def test_a_bazel_that_is_to_be_alone_is_started_where_there_is_no_network(tmp_path: Path) -> None:
    networked = client(tmp_path, "")
    assert replace(networked, alone=True).command("build") == isolation.in_own_network(
        networked.command("build")
    )


@pytest.mark.medium
def test_a_run_tells_its_status_progress_and_errors_and_adds_to_the_log(tmp_path: Path) -> None:
    script = r"""tty -s <&1 || exit 9
printf '[1 / 2] Compiling a.cc\n\rERROR: /w/BUILD:1:1: it failed\nmore\n[2 / 2] Linking\n'
umask >> "$(dirname "$0")/umask"
exit 3"""
    log, heard = tmp_path / "logs/compile.log", list[Progress]()
    bazel = client(tmp_path, script)
    outcome = bazel.run(bazel.command("build"), log, heard.append)
    bazel.run(bazel.command("build"), log, heard.append)
    assert (outcome.status, outcome.errors) == (
        3,
        ("ERROR: /w/BUILD:1:1: it failed", "more", "[2 / 2] Linking"),
    )
    assert heard[-1] == Progress(2, 2, doing="Linking", room=capacity.total_memory())
    assert log.read_text("utf-8").count("it failed") == 2
    assert (tmp_path / "umask").read_text("utf-8").split() == ["0022"] * 2


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc")
@pytest.mark.medium
def test_a_run_tells_what_the_server_and_its_actions_hold_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauge, "SECONDS", 0.02)
    (tmp_path / "base/server").mkdir(parents=True)
    server = """sh -c 'echo $$ > base/server/server.pid.txt; for i in $(seq 500); do [ -e seen ] || { sleep 0.02; echo "[$i / 500] Linking"; }; done' """
    heard = list[Progress]()

    def hear(progress: Progress) -> None:
        heard.append(progress)
        if progress.held:
            (tmp_path / "seen").touch()

    bazel = client(tmp_path, f"{server} {tmp_path}/base/")
    bazel.run(bazel.command("build"), tmp_path / "log", hear)
    # The last figure can be taken when the server has ended, and is 0 then.
    most = max(heard, key=lambda progress: progress.held)
    assert 0 < most.held < most.room == capacity.total_memory()


@pytest.mark.medium
def test_a_bazel_that_names_no_error_is_told_by_its_last_lines(tmp_path: Path) -> None:
    bazel = client(tmp_path, "echo 'FATAL: no java'; kill -9 $$")
    outcome = bazel.run(bazel.command("build"), tmp_path / "log", lambda _: None)
    assert (outcome.status, outcome.errors) == (-9, ("FATAL: no java",))


@pytest.mark.medium
def test_an_interrupted_run_hears_bazel_out_before_it_ends(tmp_path: Path) -> None:
    bazel = client(
        tmp_path,
        "trap 'sleep 0.2; echo gone > gone; exit 8' INT; echo up; while :; do sleep 0.05; done",
    )

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bazel.run(bazel.command("build"), tmp_path / "log", interrupt)
    assert (tmp_path / "gone").exists()


def test_no_bazel_is_started_to_stop_one_that_does_not_run(tmp_path: Path) -> None:
    bazel = client(tmp_path, 'echo asked > "$(dirname "$0")/asked"')
    bazel.stop()
    make_file(tmp_path / "base/server/server.pid.txt", "1")
    bazel.stop()
    assert not (tmp_path / "asked").exists()


def test_the_outputs_of_a_target_are_read_through_nested_sets(tmp_path: Path) -> None:
    events = [
        {
            "id": {"namedSet": {"id": "0"}},
            "namedSetOfFiles": {
                "files": [
                    {"name": "a b", "uri": "file:///out/a%20b"},
                    {"name": "r", "uri": "bytestream://r"},
                ]
            },
        },
        {
            "id": {"namedSet": {"id": "1"}},
            "namedSetOfFiles": {
                "files": [{"name": "c", "uri": "file:///out/c"}],
                "fileSets": [{"id": "0"}],
            },
        },
        {
            "id": {"targetCompleted": {"label": "//:t"}},
            "completed": {
                "outputGroup": [{"name": "default", "fileSets": [{"id": "1"}]}, {"name": "other"}]
            },
        },
        {"id": {"targetCompleted": {"label": "//:u"}}, "aborted": {}},
    ]
    (tmp_path / "events").write_text("\n".join(map(json.dumps, events)), "utf-8")
    assert built_files(tmp_path / "events") == (Path("/out/c"), Path("/out/a b"))


def test_sets_that_share_their_parts_are_read_once_each(tmp_path: Path) -> None:
    # Each set has the one before it twice: 2 ** 60 ways lead down to the file.
    events = [
        {
            "id": {"namedSet": {"id": str(number)}},
            "namedSetOfFiles": {"fileSets": [{"id": str(number - 1)}] * 2},
        }
        for number in range(1, 60)
    ]
    first = {
        "id": {"namedSet": {"id": "0"}},
        "namedSetOfFiles": {"files": [{"uri": "file:///out/a"}]},
    }
    group = {"name": "default", "fileSets": [{"id": "59"}]}
    last = {"id": {"targetCompleted": {}}, "completed": {"outputGroup": [group]}}
    lines = map(json.dumps, [first, *events, last])
    (tmp_path / "events").write_text("\n".join(lines), "utf-8")
    assert built_files(tmp_path / "events") == (Path("/out/a"),)


@pytest.mark.parametrize(
    "text", ['{"id": {}}\n{"id": {"named', "[]", '{"id": 1}', '{"x": {}}', "null", "[" * 100_000]
)
def test_a_list_of_outputs_that_is_cut_off_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "events").write_text(text, "utf-8")
    with fails(ToolError, "built", "/events"):
        built_files(tmp_path / "events")
