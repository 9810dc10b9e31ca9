"""What starts a night: systemd units, a launchd plist, or a line for cron."""

import plistlib
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.errors import RecipeError
from tfwright.tools.render import render

Kind = Literal["user", "system", "cron", "launchd"]
NAME = "tfwright-nightly"
LABEL = "org.tfwright.nightly"
CRON_MARK = f"# {NAME}"
"""Ends our line in a crontab; by it the line is found again."""


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
            f"{text!r} is not a time of day",
            remedy="Write hours and minutes: --at 02:30.",
        )
    return int(found[1]), int(found[2])


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
        "environment": [
            _quoted(f"{name}={value}") for name, value in schedule.environment
        ],
        "user": schedule.user,
        "system": bool(schedule.user),
    }
    names = (
        f"{NAME}.service",
        f"{NAME}.timer",
        f"{NAME}-watch.service",
        f"{NAME}-watch.timer",
    )
    return [
        UnitFile(folder / name, render(f"{name}.j2", values)) for name in names
    ]


def _plain(path: Path) -> str:
    text = str(path)
    # WorkingDirectory= and ReadWritePaths= have quoting rules of their own; refuse what needs them.
    if not text.isprintable() or set(text) & set(" \"'\\%$;"):
        raise RecipeError(
            f"{text!r} cannot be written into a unit",
            remedy="Move it to a path without blanks, quotes, %, $ and semicolons.",
        )
    return text


def _quoted(word: str) -> str:
    """Return a word as a systemd command line wants it."""
    if not word.isprintable():
        raise RecipeError(
            f"{word!r} cannot be written into a unit",
            remedy="Use printable characters.",
        )
    # systemd replaces %h and ${NAME} even within quotes; doubling the sign takes it literally.
    escaped = (
        word.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("%", "%%")
        .replace("$", "$$")
    )
    return f'"{escaped}"' if re.search(r"[^\w./:=@+,-]", word) else escaped


def launchd(schedule: Schedule, folder: Path) -> list[UnitFile]:
    """Return the property list of macOS; a Mac that sleeps at that time runs it when it wakes."""
    hour, minute = moment(schedule.at)
    content = {
        "Label": LABEL,
        "ProgramArguments": [*schedule.program, "nightly"],
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
    text = plistlib.dumps(content, sort_keys=True).decode()
    return [UnitFile(folder / f"{LABEL}.plist", text)]


def cron_line(schedule: Schedule) -> str:
    """Return the line for a crontab; ``%`` ends a command there."""
    hour, minute = moment(schedule.at)
    settings = [
        f"{name}={shlex.quote(value)}" for name, value in schedule.environment
    ]
    words = " ".join([*settings, *map(shlex.quote, schedule.program), "nightly"])
    # cron starts in the home directory, and takes % for the end of the line.
    command = f"cd {shlex.quote(str(schedule.checkout))} && {words}".replace(
        "%", r"\%"
    )
    if not command.isprintable():
        raise RecipeError(
            "A path of this host cannot be written into a crontab",
            remedy="Use printable characters.",
        )
    return f"{minute} {hour} * * * {command} {CRON_MARK}"


def crontab_with(existing: str, line: str) -> str:
    """Return a crontab with our line in place of an earlier one; without a line, it only goes."""
    kept = [
        other for other in existing.splitlines() if not other.endswith(CRON_MARK)
    ]
    kept += [line] if line else []
    return "".join(f"{other}\n" for other in kept)
