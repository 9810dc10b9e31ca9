"""What is said of a command that was typed wrongly, typed as it says."""

import gzip
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.remedies.following import CommandLine, commands

from tfwright import tasks

pytestmark = pytest.mark.medium


def test_a_copy_gets_the_option_and_another_name(
    shell: CommandLine, tmp_path: Path
) -> None:
    begun = f"invoke new --like demo --folder {tmp_path}"
    option = re.search(r"--name NAME", shell.remedy(begun))
    assert option
    command = f"{begun} {option[0].replace('NAME', 'mine')}"
    shell.succeeds(command)
    assert shell.remedy(command) == "Choose another name."
    shell.succeeds(command.replace("mine", "another"))


@pytest.mark.parametrize("wrong", ["--gpu nope", "--gpu sm_x", "--os Windows"])
def test_a_machine_is_written_as_is_shown(shell: CommandLine, wrong: str) -> None:
    remedy = shell.remedy(f"invoke match {wrong}")
    shown = re.findall(r"--[a-z]+ [\w.]*\w", remedy)
    assert shown
    for option in shown:
        shell.succeeds(f"invoke match {option}")


def test_a_file_is_named_as_the_help_shows(shell: CommandLine) -> None:
    (shown,) = commands(shell.remedy("invoke smoke"))
    shell.succeeds(shown)


def test_an_unknown_recipe_is_looked_up(shell: CommandLine) -> None:
    remedy = shell.remedy("invoke plan --recipe nothing-like-it")
    (command,) = commands(remedy)
    shell.succeeds(command)


def test_a_root_is_packed_by_the_command_that_is_shown(
    shell: CommandLine, tmp_path: Path
) -> None:

    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "rootfs.tar").write_bytes(b"no tar")
    command = f"invoke image --add {tmp_path}/rootfs.tar"
    remedy = shell.remedy(command)
    tar = remedy.removeprefix("Make one: ")
    words = shlex.split(tar.replace("ROOT", str(tmp_path / "root")))
    subprocess.run(words, cwd=tmp_path, check=True)
    shell.succeeds(command)


def test_an_index_is_made_of_a_folder(shell: CommandLine, tmp_path: Path) -> None:
    command = f"invoke index --folder {tmp_path}/wheels"
    assert shell.remedy(command) == "Name a folder that holds wheels."
    (tmp_path / "wheels").mkdir()
    shell.succeeds(command)


def test_a_lesson_is_learned_from_the_log_of_a_failed_build(
    shell: CommandLine, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("INFO: all is well\n", "utf-8")
    command = f"invoke diagnose --learn {log}"
    assert "Name the log of a failed build" in shell.remedy(command)
    log.write_text("ERROR: /x/BUILD:3:1: frobnicator went away\n", "utf-8")
    shell.succeeds(command)


@pytest.mark.parametrize(
    "damage",
    [b"\xff\xfe", b"\xef\xbb\xbfjobs = 1\n", b"jobs = x\n", b"jobs = [\n"],
)
def test_a_host_file_is_corrected(shell: CommandLine, damage: bytes) -> None:
    before = shell.host_file.read_text("utf-8")
    shell.host_file.write_bytes(damage)
    assert shell.remedy("invoke recipes")
    # Each is about the file itself, which has its old content again.
    assert shell.fault
    assert str(shell.host_file) in shell.fault.what
    shell.host_file.write_text(before, "utf-8")
    shell.succeeds("invoke recipes")


def test_two_builds_are_compared_as_is_shown(shell: CommandLine) -> None:
    remedy = shell.remedy("invoke cache --why one")
    assert remedy == "Name both: invoke cache --why FIRST --why SECOND"
    # Then it says which logs there are, and how to have some.
    assert "logs = true" in shell.remedy(remedy.removeprefix("Name both: "))


def said(
    shell: CommandLine, command: str, capsys: pytest.CaptureFixture[str]
) -> str:
    """Type a command that is refused before it starts; return what it prints."""
    capsys.readouterr()
    assert shell.status(command) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["recipies", "recipe", "docter"])
def test_the_command_that_was_meant_is_typed(
    shell: CommandLine, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    meant, listing = commands(said(shell, f"invoke {wrong}", capsys))
    assert shell.status(meant) in {0, 3}
    assert shell.fault is None
    shell.succeeds(listing)


@pytest.mark.parametrize("former", sorted(tasks.REPLACED))
def test_what_replaced_a_command_is_one(
    shell: CommandLine, capsys: pytest.CaptureFixture[str], former: str
) -> None:
    (command,) = commands(said(shell, f"invoke {former}", capsys))
    name, *options = shlex.split(command)[1:]
    shell.succeeds(f"invoke {name} --help")
    helped = capsys.readouterr().out
    for option in options:
        assert not option.startswith("-") or option in helped


@pytest.mark.parametrize("wrong", ["--colour", "--jobs many", "a-word"])
def test_the_options_of_a_command_are_listed(
    shell: CommandLine, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    (command,) = commands(said(shell, f"invoke plan --json {wrong}", capsys))
    assert command == "invoke plan --help"
    shell.succeeds(command)


@pytest.mark.parametrize("way", ["plain", "gzip", "-"])
def test_a_log_is_named_as_is_said(
    shell: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    text = b"x.cc:1:10: fatal error: y.h: No such file or directory\n"
    log = tmp_path / "log"
    log.write_bytes(gzip.compress(text)[:-9])
    remedy = shell.remedy(f"invoke diagnose {log}")
    assert way in remedy
    log.write_bytes(gzip.compress(text) if way == "gzip" else text)
    if way == "-":
        with log.open("rb") as stream:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
            shell.status("invoke diagnose -")
    else:
        shell.status(f"invoke diagnose {log}")
    assert shell.fault is None
