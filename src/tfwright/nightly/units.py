"""What starts a night and its watch: systemd units, launchd plists, or lines for cron."""

import datetime as dt
import json
import plistlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.errors import RecipeError
from tfwright.tools import json_text
from tfwright.tools.render import render

Kind = Literal["user", "system", "cron", "launchd"]
NAME = "tfwright-nightly"
LABEL = "org.tfwright.nightly"
CRON_MARK = f"# {NAME}"
"""Ends our lines in a crontab; by it they are found again."""
WATCH_HOUR = 12
"""When the watch looks, where systemd does not start it: a night should be over by then."""
_PRINTABLE = "Move it to a path of printable characters."
TIMER = "timer.json"
"""The file in the host's directory that says when a night starts, for the first page."""


@dataclass(frozen=True)
class Schedule:
    """When a night begins, where it works, and how long it may take."""

    program: tuple[str, ...]
    """The command, as absolute paths: ``/srv/tfwright/.venv/bin/python -m invoke``."""
    checkout: Path
    """The directory of tasks.py."""
    writable: tuple[Path, ...]
    """The directories that a night writes to."""
    hours: float
    """The night's budget; the service is ended after twice as long."""
    at: str = "02:00"
    environment: tuple[tuple[str, str], ...] = ()
    user: str = ""
    """The account of a system unit."""
    calendar: str = ""
    """A systemd calendar expression, where not daily at `at`."""


@dataclass(frozen=True)
class UnitFile:
    """A file to be written."""

    path: Path
    text: str


def moment(text: str) -> tuple[int, int]:
    """Read a time of day such as ``02:00``; raise RecipeError for anything else."""
    found = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text)
    if not found:
        raise RecipeError(
            f"{text!r} is not a time of day", remedy="Write hours and minutes: --at 02:30."
        )
    return int(found[1]), int(found[2])


def noted(directory: Path, at: str) -> UnitFile:
    """Return the file that tells the pages when a night starts; raise RecipeError for no time."""
    hour, minute = moment(at)
    text = json.dumps({"at": f"{hour:02}:{minute:02}"})
    return UnitFile(directory / TIMER, f"{text}\n")


def next_start(directory: Path, now: dt.datetime) -> dt.datetime | None:
    """Return when the installed timer starts the next night; None where there is none."""
    try:
        hour, minute = moment(str(json_text.record(directory / TIMER)["at"]))
    except (KeyError, RecipeError):
        return None
    today = now.astimezone().date()
    at = dt.time(hour, minute)
    # A timer goes by this host's clock, whose distance to UTC changes twice a year.
    start = dt.datetime.combine(today, at).astimezone()
    if start > now:
        return start
    return dt.datetime.combine(today + dt.timedelta(days=1), at).astimezone()


def systemd(schedule: Schedule, folder: Path) -> list[UnitFile]:
    """Return the units: a service and a timer for the night, and the same for its watch.

    A unit file is line-based, and ``%`` and ``$`` are special in it. Raises RecipeError for a path
    that could not be written into one.
    """
    hour, minute = moment(schedule.at)
    values = {
        "name": NAME,
        "command": " ".join(_quoted(word) for word in schedule.program),
        "checkout": _plain(schedule.checkout),
        "writable": [_plain(path) for path in schedule.writable],
        # Twice the budget: the last build may begin shortly before the budget is used up.
        "seconds": round(schedule.hours * 2 * 3600),
        "calendar": schedule.calendar or f"*-*-* {hour:02}:{minute:02}:00",
        "environment": [_quoted(f"{name}={value}") for name, value in schedule.environment],
        "user": schedule.user,
        "system": bool(schedule.user),
    }
    names = (f"{NAME}.service", f"{NAME}.timer", f"{NAME}-watch.service", f"{NAME}-watch.timer")
    return [UnitFile(folder / name, render(f"{name}.j2", values)) for name in names]


def _plain(path: Path) -> str:
    text = str(path)
    # WorkingDirectory= and ReadWritePaths= have quoting rules of their own; refuse what needs them.
    if not text.isprintable() or set(text) & set(" \"'\\%$;"):
        raise RecipeError(
            f"{text!r} cannot be written into a unit",
            remedy="Move it to a path without blanks, quotes, backslashes, %, $ and semicolons.",
        )
    return text


def _quoted(word: str) -> str:
    """Return a word as a systemd command line wants it."""
    if not word.isprintable():
        raise RecipeError(f"{word!r} cannot be written into a unit", remedy=_PRINTABLE)
    # systemd replaces %h and ${NAME} even within quotes; doubling the sign takes it literally.
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[^\w./:=@+,-]", word) else escaped


def launchd(schedule: Schedule, folder: Path) -> list[UnitFile]:
    """Return the property lists of macOS: the night's and the watch's.

    A Mac that sleeps at that time runs them when it wakes.
    """
    night = _property_list(schedule, LABEL, ("nightly",), moment(schedule.at))
    watch = _property_list(schedule, f"{LABEL}-watch", ("nightly", "--watch"), (WATCH_HOUR, 0))
    return [
        UnitFile(folder / f"{LABEL}.plist", night),
        UnitFile(folder / f"{LABEL}-watch.plist", watch),
    ]


def _property_list(
    schedule: Schedule, label: str, arguments: tuple[str, ...], start: tuple[int, int]
) -> str:
    hour, minute = start
    content = {
        "Label": label,
        "ProgramArguments": [*schedule.program, *arguments],
        "WorkingDirectory": str(schedule.checkout),
        "EnvironmentVariables": dict(schedule.environment),
        "StartCalendarInterval": {"Hour": hour, "Minute": minute},
        # A night must not slow down somebody who works at this Mac.
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "StandardErrorPath": str(schedule.writable[0] / "nightly.log"),
        "StandardOutPath": str(schedule.writable[0] / "nightly.log"),
    }
    return plistlib.dumps(content, sort_keys=True).decode()


def cron_lines(schedule: Schedule) -> list[str]:
    """Return the lines for a crontab: the night's and the watch's."""
    hour, minute = moment(schedule.at)
    return [
        f"{minute} {hour} * * * {_cron_command(schedule, 'nightly')}",
        f"0 {WATCH_HOUR} * * * {_cron_command(schedule, 'nightly --watch')}",
    ]


def _cron_command(schedule: Schedule, task: str) -> str:
    """Return a command with our mark; ``%`` ends a command in a crontab."""
    values = [value for _, value in schedule.environment]
    for word in (str(schedule.checkout), *schedule.program, *values):
        if not word.isprintable():
            raise RecipeError(f"{word!r} cannot be written into a crontab", remedy=_PRINTABLE)
    settings = [f"{name}={shlex.quote(value)}" for name, value in schedule.environment]
    words = " ".join([*settings, *map(shlex.quote, schedule.program), task])
    # cron starts in the home directory, and takes % for the end of the line.
    command = f"cd {shlex.quote(str(schedule.checkout))} && {words}".replace("%", r"\%")
    return f"{command} {CRON_MARK}"


def crontab_with(existing: str, lines: Sequence[str]) -> str:
    """Return a crontab with our lines in place of earlier ones; without lines, they only go."""
    kept = [other for other in existing.splitlines() if not other.endswith(CRON_MARK)]
    return "".join(f"{line}\n" for line in (*kept, *lines))
