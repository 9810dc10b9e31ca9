"""The timer that starts a night and its watch: systemd units, launchd plists, or lines for cron.

`invoke nightly --install` shows what it would write and run, and then does it.
"""

import datetime as dt
import io
import json
import os
import plistlib
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents import filesystem, host_file, nightly
from tfwright.documents.filesystem import ROOT
from tfwright.errors import HostError, RecipeError
from tfwright.tools import files, json_text
from tfwright.tools.process import pipes, runner
from tfwright.tools.process.command import Command, clean_environment
from tfwright.tools.render import render

KINDS = ("user", "system", "cron", "launchd")
NAME = "tfwright-nightly"
LABEL = "org.tfwright.nightly"
CRON_MARK = f"# {NAME}"
"""Ends our lines in a crontab; by it they are found again."""
OF_HOST = "TFWRIGHT_NIGHTLY_FILE"
"""The setting that tells the timers of several build hosts apart."""
WATCH_HOUR = 12
"""When the watch looks, where systemd does not start it: a night should be over by then."""
LINGERING = Path("/var/lib/systemd/linger")
"""Where systemd notes whose timers run without a login, by their names."""
NOTE = "timer.json"
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
    at: str
    environment: Mapping[str, str]
    user: str = ""
    """The account of a system unit."""

    @property
    def start(self) -> tuple[int, int]:
        """Hour and minute. Raises RecipeError for what is no time of day."""
        found = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", self.at)
        if not found:
            raise RecipeError(
                f"{self.at!r} is not a time of day", remedy="Write hours and minutes: --at 02:30."
            )
        return int(found[1]), int(found[2])


@dataclass(frozen=True)
class Installation:
    """What an installation would do: shown first, then done."""

    kind: str
    files: Mapping[Path, str]
    """Files to be written, or to be removed, with their content."""
    crontab: str | None = None
    """The whole new crontab; None for the other kinds."""
    commands: Sequence[tuple[str, ...]] = ()
    """Programs to be run after the files are written, or before they are removed."""
    afterwards: Sequence[tuple[str, ...]] = ()
    """Programs to be run after the files are removed."""
    owner: str = ""
    """The account that the services of a system unit run as."""
    folders: Sequence[Path] = ()
    """Directories to be made for it: systemd lets it write to no others, and makes none."""


def plan_installation(kind: str, at: str, *, remove: bool) -> Installation:
    """Return what installing or removing a timer of a kind does; nothing is changed yet.

    A timer that is not installed has no file, and no table, to remove.
    """
    if kind not in KINDS:
        raise RecipeError(
            f"tfwright does not know the kind of timer {kind!r}",
            remedy=f"Choose one of: {', '.join(KINDS)}.",
        )
    nightly_file, host = nightly.read(), host_file.read()
    folders = {nightly_file.directory, host.build_out, host.cache_directory}
    # A service starts with an empty environment: what this shell sets has to go into the unit.
    caller = {OF_HOST: str(nightly.path().absolute())}
    if host_file.path().exists():
        caller["TFWRIGHT_HOST_FILE"] = str(host_file.path().absolute())
    schedule = Schedule(
        program=_own_command(),
        checkout=ROOT,
        # Without those that lie in another one of them.
        writable=tuple(sorted(path for path in folders if folders.isdisjoint(path.parents))),
        hours=nightly_file.hours,
        at=at,
        environment=caller,
        # A unit of the system would otherwise build as root, which sudo makes of this account.
        user=os.environ.get("SUDO_USER", filesystem.account_name()) if kind == "system" else "",
    )
    note = start_note(nightly_file.directory, schedule)
    found = _plan_kind(kind, schedule, note, remove=remove)
    if not remove:
        return found
    existing = {path: text for path, text in found.files.items() if path.exists()}
    # The note alone is that of a timer of another kind.
    own = found.crontab is not None or existing.keys() - note.keys()
    return replace(found, files=existing if own else {})


def _own_command() -> tuple[str, ...]:
    return (sys.executable, "-m", "tfwright" if filesystem.INSTALLED else "invoke")


def _plan_kind(
    kind: str, schedule: Schedule, note: Mapping[Path, str], *, remove: bool
) -> Installation:
    if kind == "cron":
        before = _crontab()
        # The whole table: cron has no way to add or take away one line.
        table = crontab_with(before, schedule, remove=remove)
        return Installation("cron", note, None if remove and table == before else table)
    if kind == "launchd":
        lists = launchd(schedule, filesystem.home() / "Library/LaunchAgents")
        # The logged-in user's domain, which bootstrap and bootout ask for.
        domain = f"gui/{os.getuid()}"
        _check_owner(lists, schedule)
        commands = [
            ("launchctl", "bootout", f"{domain}/{path.stem}")
            if remove
            else ("launchctl", "bootstrap", domain, str(path))
            for path in lists
        ]
        return Installation("launchd", {**lists, **note}, commands=commands)
    config = os.environ.get("XDG_CONFIG_HOME") or filesystem.home() / ".config"
    own = ("systemctl",) if schedule.user else ("systemctl", "--user")
    folder = Path("/etc/systemd/system") if schedule.user else Path(config) / "systemd/user"
    units = systemd(schedule, folder)
    _check_owner(units, schedule)
    written = {**units, **note}
    timers = (f"{NAME}.timer", f"{NAME}-watch.timer")
    # systemd reads changed unit files, and forgets removed ones, only after a reload.
    reload = (*own, "daemon-reload")
    if remove:
        # Before the files go: systemd stops a timer only while it knows its unit.
        disable = (*own, "disable", "--now", *timers)
        return Installation(kind, written, commands=[disable], afterwards=[reload])
    enable = (*own, "enable", "--now", *timers)
    missing = [path for path in schedule.writable if schedule.user and not path.exists()]
    commands = [reload, enable]
    return Installation(kind, written, commands=commands, owner=schedule.user, folders=missing)


def _check_owner(wanted: Mapping[Path, str], schedule: Schedule) -> None:
    """Refuse to replace or remove the units of another build host of this account."""
    # As a unit and as a property list write it.
    host = re.compile(OF_HOST + r"(?:=|</key>\s*)(.*)")
    for path, text in wanted.items():
        found = host.search(files.text(path)) if path.exists() else None
        if found and found[1] not in host.findall(text):
            raise HostError(
                f"{path} starts another build host than that of {schedule.environment[OF_HOST]}",
                remedy="Use --install cron, which holds several hosts of one account, or "
                "another account.",
            )


def install(installation: Installation) -> None:
    """Write the files and start the timer; raise HostError naming what did not start it."""
    if installation.kind in {"user", "system"} and not _succeeds(installation.commands[0]):
        # The reload of what is there changes nothing.
        shown = shlex.join(installation.commands[0])
        remedy = "Log in on the host itself, not by su, so that your systemd runs; or use "
        remedy += "--install cron."
        if installation.kind == "system":
            home, program = shlex.quote(str(filesystem.home())), shlex.join(_own_command())
            remedy = f"Run it as root: sudo env HOME={home} {program} nightly --install system"
        raise HostError(
            f"systemd does not answer: '{shown}' failed. Nothing was written", remedy=remedy
        )
    for folder in installation.folders:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.chown(folder, installation.owner)
    for path, content in installation.files.items():
        files.write(path, content)
    if installation.crontab is not None:
        _crontab(installation.crontab)
    # Shown to the user in this order, and run in it.
    for argv in installation.commands:
        if not _succeeds(argv):
            shown = shlex.join(argv)
            raise HostError(
                f"The files are written, but '{shown}' failed",
                remedy=f"Run '{shown}' yourself on the host that builds at night.",
            )


def uninstall(installation: Installation) -> None:
    """Stop the timer and remove the files; a file or timer that is gone already is accepted."""
    if installation.crontab is not None:
        _crontab(installation.crontab)
    # Disabling a timer twice fails the second time, which does not matter.
    for argv in installation.commands:
        _succeeds(argv)
    for path in installation.files:
        path.unlink(missing_ok=True)
    for argv in installation.afterwards:
        _succeeds(argv)


def needs_login(installation: Installation) -> bool:
    """Say whether the timer runs only while its user is logged in."""
    return installation.kind == "user" and not (LINGERING / filesystem.account_name()).exists()


def _succeeds(argv: tuple[str, ...]) -> bool:
    """Run a program on the terminal; one that is not installed does not succeed."""
    # It may talk to the user's own service manager.
    names = ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
    caller = {name: os.environ[name] for name in names if name in os.environ}
    command = Command(argv, Path("/"), clean_environment(filesystem.home(), extra=caller))
    # Where the command itself is looked for: the caller's PATH may name other directories.
    found = shutil.which(argv[0], path=command.env["PATH"])
    return found is not None and runner.run_on_terminal(command) == 0


def _crontab(table: str | None = None) -> str:
    """Return the user's crontab, which is empty where there is none; `table` takes its place.

    Raises HostError without cron, or if it refuses the table.
    """
    argv = ("crontab", "-l" if table is None else "-")
    command = Command(argv, Path("/"), clean_environment(filesystem.home()))
    # By the system's own PATH, as cron itself would find it.
    if shutil.which("crontab", path=command.env["PATH"]) is None:
        remedy = "Install cron, or use --install user (systemd)."
        raise HostError("This host has no crontab", remedy=remedy)
    # The lines of others are in any encoding.
    with tempfile.TemporaryFile() as table_file:
        table_file.write((table or "").encode("utf-8", "surrogateescape"))
        table_file.seek(0)
        ended = pipes.collect(command, table_file)
    if ended.status and table is not None:
        raise HostError(
            "crontab refused the new table",
            remedy="Add the line by hand with 'crontab -e'.",
            lines=tuple(ended.complaint.splitlines()[-5:]),
        )
    # Without a crontab it fails, and says so.
    return "" if ended.status else ended.printed.decode("utf-8", "surrogateescape")


def start_note(directory: Path, schedule: Schedule) -> dict[Path, str]:
    """Return the file that tells the pages when a night starts; raise RecipeError for no time."""
    hour, minute = schedule.start
    return {directory / NOTE: json.dumps({"at": f"{hour:02}:{minute:02}"}) + "\n"}


def next_start(directory: Path, now: dt.datetime) -> dt.datetime | None:
    """Return when the installed timer starts the next night; None where there is none."""
    try:
        at = dt.time.fromisoformat(json_text.load_object(directory / NOTE)["at"])
    except (KeyError, TypeError, ValueError):
        return None
    today = now.astimezone().date()
    # A timer goes by this host's clock, whose distance to UTC changes twice a year.
    start = dt.datetime.combine(today, at).astimezone()
    if start > now:
        return start
    return dt.datetime.combine(today + dt.timedelta(days=1), at).astimezone()


def systemd(schedule: Schedule, folder: Path) -> dict[Path, str]:
    """Return the units: a service and a timer for the night, and the same for its watch.

    A unit file is line-based, and ``%`` and ``$`` are special in it. Raises RecipeError for a path
    that could not be written into one.
    """
    hour, minute = schedule.start
    for path in (schedule.checkout, *schedule.writable):
        # WorkingDirectory= and ReadWritePaths= have quoting rules of their own.
        if not str(path).isprintable() or set(str(path)) & set(" \"'\\%$;"):
            raise RecipeError(
                f"{str(path)!r} cannot be written into a unit",
                remedy="Move it to a path without blanks, quotes, backslashes, %, $ and "
                "semicolons.",
            )
    values = {
        "name": NAME,
        "command": " ".join(map(quote_word, schedule.program)),
        "checkout": schedule.checkout,
        "writable": schedule.writable,
        # Twice the budget: the last build may begin shortly before the budget is used up.
        "seconds": round(schedule.hours * 2 * 3600),
        "calendar": f"*-*-* {hour:02}:{minute:02}:00",
        "environment": [
            quote_word(f"{name}={value}") for name, value in schedule.environment.items()
        ],
        "user": schedule.user,
    }
    names = (f"{NAME}.service", f"{NAME}.timer", f"{NAME}-watch.service", f"{NAME}-watch.timer")
    return {folder / name: render(f"{name}.j2", values) for name in names}


def quote_word(word: str) -> str:
    """Return a word as a systemd command line wants it. Raises RecipeError."""
    _check_printable(word, "a unit")
    # systemd replaces %h and ${NAME} even within quotes; doubling the sign takes it literally.
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[^\w./:=@+,-]", word) else escaped


def _check_printable(word: str, place: str) -> None:
    if not word.isprintable():
        raise RecipeError(
            f"{word!r} cannot be written into {place}",
            remedy="Move it to a path of printable characters.",
        )


def launchd(schedule: Schedule, folder: Path) -> dict[Path, str]:
    """Return the property lists of macOS: the night's and the watch's.

    A Mac that sleeps at that time runs them when it wakes.
    """

    def property_list(label: str, arguments: tuple[str, ...], hour: int, minute: int) -> str:
        log = str(schedule.writable[0] / "nightly.log")
        content = {
            "Label": label,
            "ProgramArguments": [*schedule.program, *arguments],
            "WorkingDirectory": str(schedule.checkout),
            "EnvironmentVariables": schedule.environment,
            "StartCalendarInterval": {"Hour": hour, "Minute": minute},
            # A night must not slow down somebody who works at this Mac.
            "ProcessType": "Background",
            "LowPriorityIO": True,
            "Nice": 10,
            "StandardErrorPath": log,
            "StandardOutPath": log,
        }
        return plistlib.dumps(content, sort_keys=True).decode()

    watch = f"{LABEL}-watch"
    return {
        folder / f"{LABEL}.plist": property_list(LABEL, ("nightly",), *schedule.start),
        folder / f"{watch}.plist": property_list(watch, ("nightly", "--watch"), WATCH_HOUR, 0),
    }


def cron_lines(schedule: Schedule) -> list[str]:
    """Return the lines for a crontab, with our mark: the night's and the watch's."""
    hour, minute = schedule.start
    for word in (str(schedule.checkout), *schedule.program, *schedule.environment.values()):
        _check_printable(word, "a crontab")
    settings = [f"{name}={shlex.quote(value)}" for name, value in schedule.environment.items()]
    # By env: a crontab may set SHELL to one that knows no settings before a command.
    words = " ".join(["env", *settings, *map(shlex.quote, schedule.program)])
    # cron starts in the home directory, and takes % for the end of the line.
    command = f"cd {shlex.quote(str(schedule.checkout))} && {words}".replace("%", r"\%")
    return [
        f"{minute} {hour} * * * {command} nightly {CRON_MARK}",
        f"0 {WATCH_HOUR} * * * {command} nightly --watch {CRON_MARK}",
    ]


def crontab_with(existing: str, schedule: Schedule, *, remove: bool = False) -> str:
    """Return a crontab with the lines of this host in place of its earlier ones, or without them.

    Those of another host of the same account stay: they name another nightly file.
    """
    own = f"{OF_HOST}={shlex.quote(schedule.environment[OF_HOST])}"
    others = (line.removesuffix("\n") for line in io.StringIO(existing))
    kept = [
        line
        for line in others
        if not line.endswith(CRON_MARK)
        or (OF_HOST in line and f" {own} " not in line.replace(r"\%", "%"))
    ]
    return "".join(f"{line}\n" for line in (*kept, *([] if remove else cron_lines(schedule))))
