"""What starts a night, judged by systemd itself where it is installed."""

import datetime as dt
import plistlib
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tfwright.errors import RecipeError
from tfwright.nightly import timer
from tfwright.nightly.timer import Schedule

ANALYZE = shutil.which("systemd-analyze")
EXPOSED = {"tfwright-nightly.service": 3.0, "tfwright-nightly-watch.service": 1.6}
"""The most that `systemd-analyze security` may say of a system unit; docs/build-host.md has why."""


@pytest.fixture
def schedule(tmp_path: Path) -> Schedule:
    return Schedule(
        program=("/usr/bin/env", "true"),
        checkout=tmp_path,
        writable=(tmp_path,),
        hours=6,
        at="02:30",
        environment=(("TFWRIGHT_NIGHTLY_FILE", str(tmp_path / "nightly.toml")),),
    )


def written(schedule: Schedule, folder: Path) -> dict[str, Path]:
    found = {}
    for file in timer.systemd(schedule, folder):
        file.path.write_text(file.text)
        found[file.path.name] = file.path
    return found


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


def test_the_timer_catches_up_after_a_host_was_off(schedule: Schedule, tmp_path: Path) -> None:
    text = written(schedule, tmp_path)["tfwright-nightly.timer"].read_text()
    assert "OnCalendar=*-*-* 02:30:00" in text
    assert "Persistent=true" in text
    assert "FixedRandomDelay=true" in text


def test_a_path_that_systemd_would_misread_is_refused(schedule: Schedule) -> None:
    for path in ("/srv/with blank", "/srv/100%", "/srv/a;b", "/srv/a\nUser=root"):
        bad = replace(schedule, writable=(Path(path),))
        with pytest.raises(RecipeError, match="cannot be written into a unit"):
            timer.systemd(bad, Path("/x"))


def test_the_property_list_runs_a_night_at_its_time(schedule: Schedule, tmp_path: Path) -> None:
    night, watch = (
        plistlib.loads(file.text.encode()) for file in timer.launchd(schedule, tmp_path)
    )
    assert night["StartCalendarInterval"] == {"Hour": 2, "Minute": 30}
    assert night["ProgramArguments"][-1] == "nightly"
    assert watch["ProgramArguments"][-2:] == ["nightly", "--watch"]
    assert watch["Label"] != night["Label"]


def test_our_lines_in_a_crontab_are_replaced_and_taken_away(schedule: Schedule) -> None:
    others = "# mine\n0 4 * * * backup\n"
    first = timer.crontab_with(others, timer.cron_lines(schedule))
    later = replace(schedule, at="03:00")
    second = timer.crontab_with(first, timer.cron_lines(later))
    assert second.count(timer.CRON_MARK) == 2
    assert "\n0 3 * * * " in second
    # A night that does not run cannot report itself.
    assert f" nightly --watch {timer.CRON_MARK}\n" in second
    assert timer.crontab_with(second, []) == others


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
        file = timer.noted(tmp_path, replace(schedule, at="3:30"))
        file.path.write_text(file.text)
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
    with pytest.raises(RecipeError, match="time of day"):
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
    assert timer.quoted(word) == written


def test_what_a_unit_or_a_crontab_cannot_say_is_refused(schedule: Schedule) -> None:
    with pytest.raises(RecipeError, match="cannot be written into a unit"):
        timer.quoted("a\nExecStartPre=/bin/evil")
    breaking = replace(schedule, program=("/bin/a\n* * * * * evil",))
    with pytest.raises(RecipeError, match="cannot be written into a crontab"):
        timer.cron_lines(breaking)
