"""What starts a night, judged by systemd itself where it is installed."""

import datetime as dt
import plistlib
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.failing import fails
from tests.making import Read, make_file, make_program

from tfwright.documents import filesystem
from tfwright.errors import HostError, RecipeError
from tfwright.nightly import page, timer
from tfwright.nightly.timer import Schedule
from tfwright.tools.process.command import SYSTEM_PATH

ANALYZE = shutil.which("systemd-analyze")
EXPOSED = {"tfwright-nightly.service": 3.0, "tfwright-nightly-watch.service": 1.6}
"""The most that `systemd-analyze security` may say of a system unit; docs/build-host.md has why."""
SIMULATED_CRONTAB = """
if [ "$1" = -l ]; then
    [ -f {table} ] || {{ echo "no crontab for you" >&2; exit 1; }}
    cat {table}
else
    cat > {table}.new
    [ ! -s {table}.new ] || [ -z "$(tail -c 1 {table}.new)" ] || exit 1
    mv {table}.new {table}
fi"""
"""Refuses a table without a last newline, as the one of Debian does."""


@pytest.fixture
def schedule(tmp_path: Path) -> Schedule:
    return Schedule(
        program=("/usr/bin/env", "true"),
        checkout=tmp_path,
        writable=(tmp_path,),
        hours=6,
        at="02:30",
        environment={"TFWRIGHT_NIGHTLY_FILE": str(tmp_path / "nightly.toml")},
    )


def written(schedule: Schedule, folder: Path) -> dict[str, Path]:
    units = timer.systemd(schedule, folder)
    for path, text in units.items():
        path.write_text(text)
    return {path.name: path for path in units}


@pytest.mark.skipif(not ANALYZE, reason="systemd is not installed")
@pytest.mark.parametrize("user", ["", "root"])
def test_systemd_finds_no_fault_in_the_units(schedule: Schedule, tmp_path: Path, user: str) -> None:
    own = replace(schedule, user=user)
    paths = written(own, tmp_path)
    argv = [str(ANALYZE), "verify", "--man=no", *(["--user"] if not user else [])]
    ended = subprocess.run(
        [*argv, *map(str, paths.values())], capture_output=True, text=True, check=False
    )
    ours = [line for line in ended.stderr.splitlines() if "tfwright" in line]
    assert ours == []


@pytest.mark.skipif(not ANALYZE, reason="systemd is not installed")
@pytest.mark.parametrize("name", sorted(EXPOSED))
def test_a_system_unit_gives_up_what_it_does_not_need(
    schedule: Schedule, tmp_path: Path, name: str
) -> None:
    paths = written(replace(schedule, user="builder"), tmp_path)
    argv = [str(ANALYZE), "security", "--offline=yes", "--no-pager", str(paths[name])]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", ended.stdout)
    assert level, ended.stderr
    assert float(level[1]) <= EXPOSED[name]


def test_a_night_of_the_system_may_fix_addresses_to_reproduce(
    schedule: Schedule, tmp_path: Path
) -> None:
    unit = written(replace(schedule, user="builder"), tmp_path)["tfwright-nightly.service"]
    lines = unit.read_text("utf-8").splitlines()
    assert not any(line.startswith("LockPersonality=") for line in lines)
    assert any(line.endswith(" personality") for line in lines)


def test_the_timer_catches_up_after_a_host_was_off(schedule: Schedule, tmp_path: Path) -> None:
    text = written(schedule, tmp_path)["tfwright-nightly.timer"].read_text()
    assert "OnCalendar=*-*-* 02:30:00" in text
    assert "Persistent=true" in text
    assert "FixedRandomDelay=true" in text


def test_a_path_that_systemd_would_misread_is_refused(schedule: Schedule) -> None:
    for path in ("/srv/with blank", "/srv/100%", "/srv/a;b", "/srv/a\nUser=root"):
        bad = replace(schedule, writable=(Path(path),))
        with fails(RecipeError, repr(path)):
            timer.systemd(bad, Path("/x"))


def test_the_property_list_runs_a_night_at_its_time(schedule: Schedule, tmp_path: Path) -> None:
    lists = timer.launchd(schedule, tmp_path)
    night, watch = (plistlib.loads(text.encode()) for text in lists.values())
    assert night["StartCalendarInterval"] == {"Hour": 2, "Minute": 30}
    assert night["ProgramArguments"][-1] == "nightly"
    assert watch["ProgramArguments"][-2:] == ["nightly", "--watch"]
    assert watch["Label"] != night["Label"]


def test_our_lines_in_a_crontab_are_replaced_and_taken_away(schedule: Schedule) -> None:
    others = "# mine\n0 4 * * * backup\n"
    # A second build host of this account.
    nightly = {"TFWRIGHT_NIGHTLY_FILE": "/srv/two's 100%/nightly.toml"}
    second_host = replace(schedule, environment=nightly)
    others = timer.crontab_with(others, second_host)
    assert timer.crontab_with(others, second_host) == others
    first = timer.crontab_with(others, schedule)
    later = replace(schedule, at="03:00")
    second = timer.crontab_with(first, later)
    assert second.count(timer.CRON_MARK) == 4
    assert "\n0 3 * * * " in second
    # A night that does not run cannot report itself.
    assert f" nightly --watch {timer.CRON_MARK}\n" in second
    assert timer.crontab_with(second, schedule, remove=True) == others


@pytest.mark.parametrize(
    ("now", "next_one"),
    [
        ("2026-03-28 22:00", "2026-03-29 01:30"),
        ("2026-03-28 23:59", "2026-03-29 01:30"),
        ("2026-03-29 01:30", "2026-03-30 01:30"),
        ("2026-03-27 12:00", "2026-03-28 02:30"),
    ],
)
def test_the_next_night_is_known_in_local_time(
    schedule: Schedule, now: str, next_one: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Berlin, clocks were put forward on 29 March 2026."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        for path, text in timer.start_note(tmp_path, replace(schedule, at="3:30")).items():
            path.write_text(text)
        moment = dt.datetime.fromisoformat(f"{now}+00:00")
        found = timer.next_start(tmp_path, moment)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found == dt.datetime.fromisoformat(f"{next_one}+00:00")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": "99:00"}', '{"at": 5}'])
def test_without_a_timer_nothing_is_said_of_the_next_night(text: str, tmp_path: Path) -> None:
    (tmp_path / timer.NOTE).write_text(text)
    assert timer.next_start(tmp_path, dt.datetime.now(dt.UTC)) is None


@pytest.mark.parametrize("text", ["25:00", "2", "02:60", "02:00\nUser=root", ""])
def test_a_time_of_day_is_read_strictly(schedule: Schedule, text: str) -> None:
    with fails(RecipeError, repr(text)):
        _ = replace(schedule, at=text).start


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/usr/bin/env", "/usr/bin/env"),
        ("a b", '"a b"'),
        ("50%", '"50%%"'),
        ("$HOME", '"$$HOME"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
    ],
)
def test_a_word_reaches_the_program_as_it_is(word: str, written: str) -> None:
    assert timer.quote_word(word) == written


# Installed and taken away, with programs that note how they are called.


AddProgram = Callable[[str, str], Path]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the user, the build host's file and the system's programs lie in a folder."""
    (tmp_path / "bin").mkdir()
    document = make_file(tmp_path / "nightly.toml", f'directory = "{tmp_path}/nights"\n')
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(document))
    (tmp_path / "host.toml").write_text(f'build_out = "{tmp_path}/build_out"\n', "utf-8")
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(tmp_path / "host.toml"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(filesystem, "home", lambda: tmp_path)
    monkeypatch.setattr(
        "tfwright.tools.process.command.SYSTEM_PATH", (str(tmp_path / "bin"), "/usr/bin", "/bin")
    )
    return tmp_path


@pytest.fixture
def add_program(host: Path) -> AddProgram:
    """Return what puts a program on PATH; it notes its arguments, then does what it is given."""

    def add(name: str, does: str) -> Path:
        noted = host / f"{name}.calls"
        program = host / "bin" / name
        script = f'#!/bin/sh\necho "$@" >> {shlex.quote(str(noted))}\n{does}\n'
        make_program(program, script)
        return noted

    return add


def test_a_plan_changes_nothing(host: Path) -> None:
    wanted = timer.plan_installation("user", "02:00", remove=False)
    assert [path.suffix for path in wanted.files].count(".timer") == 2
    assert not (host / "config").exists()
    assert not (host / "nights").exists()


def test_units_are_written_before_systemd_reads_and_starts_them(
    host: Path, add_program: AddProgram
) -> None:
    unit = host / "config/systemd/user/tfwright-nightly.timer"
    noted = add_program("systemctl", f"ls {unit} >> {host}/there; exit 0")
    timer.install(timer.plan_installation("user", "02:30", remove=False))
    assert "02:30" in unit.read_text("utf-8")
    asked, first, second = noted.read_text("utf-8").splitlines()
    assert asked == first == "--user daemon-reload"
    # Not yet when systemd was asked whether it answers.
    assert (host / "there").read_text("utf-8").splitlines() == [str(unit)] * 2
    assert second.startswith("--user enable --now tfwright-nightly.timer")


@pytest.mark.parametrize("does", ["exit 1", ""])
def test_a_timer_that_does_not_start_is_an_error_with_the_command_to_run(
    does: str, add_program: AddProgram
) -> None:
    if does:
        add_program("systemctl", does)
    wanted = timer.plan_installation("user", "02:00", remove=False)
    # A directory without systemctl: this host may have a real one in the others.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tfwright.tools.process.command.SYSTEM_PATH", SYSTEM_PATH[:1])
        with fails(HostError, "systemctl --user daemon-reload"):
            timer.install(wanted)
    assert not any(path.exists() for path in wanted.files)


def test_units_are_stopped_before_they_are_removed(host: Path, add_program: AddProgram) -> None:
    folder = host / "config/systemd/user"
    noted = add_program("systemctl", f"ls {folder} | wc -l >> {host}/left")
    timer.install(timer.plan_installation("user", "02:00", remove=False))
    noted.unlink()
    (host / "left").unlink()
    timer.uninstall(timer.plan_installation("user", "02:00", remove=True))
    disabled, reloaded = noted.read_text("utf-8").splitlines()
    assert disabled.startswith("--user disable --now tfwright-nightly.timer")
    assert reloaded == "--user daemon-reload"
    assert (host / "left").read_text("utf-8").split() == ["4", "0"]


def test_a_timer_that_is_gone_already_is_removed_without_an_error(
    host: Path, add_program: AddProgram
) -> None:
    add_program("systemctl", "exit 1")
    timer.uninstall(timer.plan_installation("user", "02:00", remove=True))
    assert list(host.rglob("*.timer")) == []


def test_a_crontab_keeps_the_lines_of_others(host: Path, add_program: AddProgram) -> None:
    others = b"# caf\xe9 \x0c\xc2\x85 here\r\n\n5 4 * * * backup \\% \x1b[2J"
    table = make_file(host / "table", others)
    add_program("crontab", SIMULATED_CRONTAB.format(table=table))
    assert page.schedule("cron", "02:00", remove=False, yes=True) == 0
    lines = table.read_bytes().removeprefix(others + b"\n").splitlines()
    assert [line[:13] for line in lines] == [b"0 2 * * * cd ", b"0 12 * * * cd"]
    timer.uninstall(timer.plan_installation("cron", "02:00", remove=True))
    assert table.read_bytes() == others + b"\n"


@pytest.mark.medium
@pytest.mark.parametrize("shell", ["sh", "bash", "csh", "fish"])
def test_the_line_of_a_crontab_runs_by_any_shell(
    shell: str, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    document = (host / "nightly.toml").rename(host / "100% 'own' file.toml")
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(document))
    monkeypatch.setattr(timer, "_crontab", lambda *_: "")
    _, watch = str(timer.plan_installation("cron", "02:00", remove=False).crontab).splitlines()
    # As cron reads it: five fields of time, and a percent sign only after a backslash.
    line = watch.split(" ", 5)[5].replace(r"\%", "%")
    argv = [shutil.which(shell) or shell, "-c", line]
    environment = {"HOME": str(host), "LOGNAME": "x", "SHELL": argv[0], "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(argv, env=environment, cwd=host, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"0 notices sent\n")


def test_only_what_is_installed_is_removed(
    host: Path, add_program: AddProgram, err: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    table = host / "table"
    add_program("crontab", SIMULATED_CRONTAB.format(table=table))
    for kind in ("user", "cron", "launchd"):
        assert page.schedule(kind, "02:00", remove=True, yes=True) == 0
        assert f"'{kind}'" in err()
    assert capsys.readouterr().out == ""
    timer.install(timer.plan_installation("cron", "02:00", remove=False))
    timer.uninstall(timer.plan_installation("user", "02:00", remove=True))
    # It is that of the other kind.
    assert (host / "nights" / timer.NOTE).exists()
    timer.uninstall(timer.plan_installation("cron", "02:00", remove=True))
    assert not (host / "nights" / timer.NOTE).exists()


@pytest.mark.parametrize("kind", ["user", "launchd"])
def test_the_units_of_another_build_host_are_neither_replaced_nor_removed(
    kind: str, host: Path, add_program: AddProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_program("systemctl", "exit 0")
    timer.install(
        replace(timer.plan_installation(kind, "02:00", remove=False), commands=[("true",)])
    )
    document = make_file(host / "b & w.toml", f'directory = "{host}/nights2"\n')
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(document))
    for remove in (False, True):
        with fails(HostError, "another build host", "--install cron"):
            timer.plan_installation(kind, "02:00", remove=remove)
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(host / "nightly.toml"))
    assert timer.plan_installation(kind, "03:00", remove=False)


def test_a_user_without_a_crontab_gets_the_first_one(add_program: AddProgram) -> None:
    add_program("crontab", "echo 'no crontab for you' >&2; exit 1")
    wanted = timer.plan_installation("cron", "02:00", remove=False)
    assert wanted.crontab is not None
    assert "no crontab" not in wanted.crontab
    assert len(wanted.crontab.splitlines()) == 2


def test_on_a_mac_each_property_list_is_loaded_for_the_user(host: Path) -> None:
    wanted = timer.plan_installation("launchd", "02:00", remove=False)
    lists = [path for path in wanted.files if path.suffix == ".plist"]
    assert {path.parent for path in lists} == {host / "Library/LaunchAgents"}
    assert [argv[:2] for argv in wanted.commands] == [("launchctl", "bootstrap")] * len(lists)
    for path in lists:
        make_file(path, "")
    removing = timer.plan_installation("launchd", "02:00", remove=True)
    assert [argv[1] for argv in removing.commands] == ["bootout"] * len(lists)


@pytest.mark.parametrize("answer", ["n", EOFError()], ids=["no", "no terminal"])
def test_nothing_is_installed_without_a_yes(
    answer: object, host: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", Mock(side_effect=[answer]))
    assert page.schedule("user", "02:00", remove=False, yes=False) == 1
    shown = capsys.readouterr()
    assert f"write {host}/config/systemd/user/tfwright-nightly.timer" in shown.out
    assert "run systemctl --user daemon-reload" in shown.out
    assert "Nothing was changed." in shown.err
    assert not (host / "config").exists()


def test_a_timer_that_needs_a_login_says_how_that_changes(
    host: Path, add_program: AddProgram, monkeypatch: pytest.MonkeyPatch, err: Read
) -> None:
    add_program("systemctl", "")
    monkeypatch.setattr(timer, "LINGERING", host)
    assert page.schedule("user", "02:00", remove=False, yes=True) == 0
    assert "loginctl enable-linger" in err()
    (host / filesystem.account_name()).touch()
    assert page.schedule("user", "02:00", remove=False, yes=True) == 0
    assert "loginctl" not in err()


def test_the_services_of_the_system_run_as_who_typed_sudo(
    host: Path, monkeypatch: pytest.MonkeyPatch, add_program: AddProgram
) -> None:
    monkeypatch.setenv("SUDO_USER", filesystem.account_name())
    add_program("systemctl", "exit 0")
    wanted = timer.plan_installation("system", "02:00", remove=False)
    assert f"User={filesystem.account_name()}" in "".join(wanted.files.values())
    # The cache lies in build_out.
    assert wanted.folders == [host / "build_out", host / "nights"]
    timer.install(replace(wanted, files={}))
    assert all(folder.is_dir() for folder in wanted.folders)


@pytest.mark.usefixtures("host")
def test_units_of_the_system_need_root(add_program: AddProgram) -> None:
    add_program("systemctl", "exit 1")
    wanted = timer.plan_installation("system", "02:00", remove=False)
    with pytest.raises(HostError) as caught:
        timer.install(wanted)
    assert caught.value.remedy.startswith("Run it as root: sudo env HOME=")
