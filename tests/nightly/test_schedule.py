"""The timer of a build host: what is shown, installed and taken away, with programs that note how they are called."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.documents import account
from tfwright.errors import HostError, RecipeError
from tfwright.nightly import page, timer
from tfwright.tools.process import environment

AddProgram = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the user, the build host's file and the system's programs lie in a folder."""
    (tmp_path / "bin").mkdir()
    document = tmp_path / "nightly.toml"
    document.write_text(f'directory = "{tmp_path}/nights"\n', "utf-8")
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(document))
    (tmp_path / "host.toml").write_text(f'build_out = "{tmp_path}/build_out"\n', "utf-8")
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(tmp_path / "host.toml"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(account, "home", lambda: tmp_path)
    monkeypatch.setattr(environment, "SYSTEM_PATH", (str(tmp_path / "bin"), "/usr/bin", "/bin"))
    return tmp_path


@pytest.fixture
def add_program(host: Path) -> AddProgram:
    """Return what puts a program on PATH; it notes its arguments, then does what it is given."""

    def add(name: str, does: str) -> Path:
        noted = host / f"{name}.calls"
        program = host / "bin" / name
        script = f'#!/bin/sh\necho "$@" >> {shlex.quote(str(noted))}\n{does}\n'
        program.write_text(script, "utf-8")
        program.chmod(0o755)
        return noted

    return add


def test_an_unknown_kind_of_timer_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(RecipeError, match="kind of timer 'upstart'") as found:
        timer.planned("upstart", "02:00", remove=False)
    assert "user" in found.value.remedy
    assert "cron" in found.value.remedy


def test_a_plan_changes_nothing(host: Path) -> None:
    wanted = timer.planned("user", "02:00", remove=False)
    assert [file.path.suffix for file in wanted.files].count(".timer") == 2
    assert not (host / "config").exists()
    assert not (host / "nights").exists()


def test_units_are_written_before_systemd_reads_and_starts_them(
    host: Path, add_program: AddProgram
) -> None:
    unit = host / "config/systemd/user/tfwright-nightly.timer"
    noted = add_program("systemctl", f"test -f {unit}")
    timer.install(timer.planned("user", "02:30", remove=False))
    assert "02:30" in unit.read_text("utf-8")
    first, second = noted.read_text("utf-8").splitlines()
    assert first == "--user daemon-reload"
    assert second.startswith("--user enable --now tfwright-nightly.timer")


@pytest.mark.parametrize("does", ["exit 1", ""])
def test_a_timer_that_does_not_start_is_an_error_with_the_command_to_run(
    does: str, add_program: AddProgram
) -> None:
    if does:
        add_program("systemctl", does)
    wanted = timer.planned("user", "02:00", remove=False)
    # A directory without systemctl: this host may have a real one in the others.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(environment, "SYSTEM_PATH", environment.SYSTEM_PATH[:1])
        with pytest.raises(HostError, match="files are written") as found:
            timer.install(wanted)
    assert "systemctl --user daemon-reload" in found.value.remedy


def test_units_are_stopped_before_they_are_removed(host: Path, add_program: AddProgram) -> None:
    folder = host / "config/systemd/user"
    noted = add_program("systemctl", f"ls {folder} | wc -l >> {host}/left")
    timer.install(timer.planned("user", "02:00", remove=False))
    noted.unlink()
    (host / "left").unlink()
    timer.uninstall(timer.planned("user", "02:00", remove=True))
    disabled, reloaded = noted.read_text("utf-8").splitlines()
    assert disabled.startswith("--user disable --now tfwright-nightly.timer")
    assert reloaded == "--user daemon-reload"
    assert (host / "left").read_text("utf-8").split() == ["4", "0"]


def test_a_timer_that_is_gone_already_is_removed_without_an_error(
    host: Path, add_program: AddProgram
) -> None:
    add_program("systemctl", "exit 1")
    timer.uninstall(timer.planned("user", "02:00", remove=True))
    assert list(host.rglob("*.timer")) == []


def test_a_crontab_keeps_the_lines_of_others(host: Path, add_program: AddProgram) -> None:
    table = host / "table"
    table.write_text("5 4 * * * backup\n", "utf-8")
    given = f'if [ "$1" = - ]; then cat > {table}; else cat {table}; fi'
    add_program("crontab", given)
    timer.install(timer.planned("cron", "02:00", remove=False))
    lines = table.read_text("utf-8").splitlines()
    assert lines[0] == "5 4 * * * backup"
    assert lines[1].startswith("0 2 * * * cd ")
    timer.uninstall(timer.planned("cron", "02:00", remove=True))
    assert table.read_text("utf-8") == "5 4 * * * backup\n"


def test_a_user_without_a_crontab_gets_the_first_one(add_program: AddProgram) -> None:
    add_program("crontab", "echo 'no crontab for you' >&2; exit 1")
    wanted = timer.planned("cron", "02:00", remove=False)
    assert wanted.crontab is not None
    assert "no crontab" not in wanted.crontab
    assert len(wanted.crontab.splitlines()) == 2


def test_a_refused_crontab_is_an_error_with_what_cron_said(add_program: AddProgram) -> None:
    add_program("crontab", "echo 'bad minute' >&2; exit 1")
    wanted = timer.planned("cron", "02:00", remove=False)
    with pytest.raises(HostError, match="crontab refused") as found:
        timer.install(wanted)
    assert found.value.evidence.lines == ("bad minute",)


def test_a_host_without_cron_is_pointed_to_systemd(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "SYSTEM_PATH", (str(host / "bin"),))
    with pytest.raises(HostError, match="no crontab") as found:
        timer.planned("cron", "02:00", remove=False)
    assert "--install user" in found.value.remedy


def test_on_a_mac_each_property_list_is_loaded_for_the_user(host: Path) -> None:
    wanted = timer.planned("launchd", "02:00", remove=False)
    lists = [file.path for file in wanted.files if file.path.suffix == ".plist"]
    assert {path.parent for path in lists} == {host / "Library/LaunchAgents"}
    assert [argv[:2] for argv in wanted.commands] == [("launchctl", "bootstrap")] * len(lists)
    removing = timer.planned("launchd", "02:00", remove=True)
    assert [argv[1] for argv in removing.commands] == ["bootout"] * len(lists)


def test_nothing_is_installed_without_a_yes(
    host: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert page.schedule("user", "02:00", remove=False, yes=False) == 1
    shown = capsys.readouterr()
    assert f"write {host}/config/systemd/user/tfwright-nightly.timer" in shown.out
    assert "run systemctl --user daemon-reload" in shown.out
    assert "Nothing was changed." in shown.err
    assert not (host / "config").exists()


def test_without_a_terminal_the_answer_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    def end_of_input(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end_of_input)
    assert page.schedule("user", "02:00", remove=False, yes=False) == 1


def test_a_timer_that_needs_a_login_says_how_that_changes(
    host: Path,
    add_program: AddProgram,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_program("systemctl", "")
    monkeypatch.setattr(timer, "LINGERING", host)
    assert page.schedule("user", "02:00", remove=False, yes=True) == 0
    assert "loginctl enable-linger" in capsys.readouterr().err
    (host / account.name()).touch()
    assert page.schedule("user", "02:00", remove=False, yes=True) == 0
    assert "loginctl" not in capsys.readouterr().err
