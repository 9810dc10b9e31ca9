"""`invoke nightly --install`: the timer that starts a night, written and taken away again."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from tfwright.documents import account, host_file, nightly
from tfwright.documents.recipe import ROOT
from tfwright.errors import HostError, RecipeError
from tfwright.nightly import units
from tfwright.nightly.units import Kind, Schedule, UnitFile
from tfwright.tools import files
from tfwright.tools.process import crontab, environment, runner
from tfwright.tools.process.command import Command

LINGERING = Path("/var/lib/systemd/linger")
"""Where systemd notes whose timers run without a login, by their names."""
TIMERS = (f"{units.NAME}.timer", f"{units.NAME}-watch.timer")


@dataclass(frozen=True)
class Installation:
    """What an installation would do: shown first, then done."""

    kind: Kind
    files: tuple[UnitFile, ...]
    """Files to be written, or to be removed."""
    crontab: str | None
    """The whole new crontab; None for the other kinds."""
    commands: tuple[tuple[str, ...], ...]
    """Programs to be run after the files are written, or before they are removed."""
    afterwards: tuple[tuple[str, ...], ...] = ()
    """Programs to be run after the files are removed."""


def planned(kind: str, at: str, *, remove: bool) -> Installation:
    """Return what installing or removing a timer of a kind does; nothing is changed yet."""
    if kind not in get_args(Kind):
        raise RecipeError(
            f"tfwright does not know the kind of timer {kind!r}",
            remedy=f"Choose one of: {', '.join(get_args(Kind))}.",
        )
    schedule = _schedule(kind, at)
    if kind == "cron":
        lines = [] if remove else units.cron_lines(schedule)
        # The whole table: cron has no way to add or take away one line.
        table = units.crontab_with(crontab.read(), lines)
        wanted = Installation("cron", (), table, ())
    elif kind == "launchd":
        wanted = _launchd(schedule, remove=remove)
    else:
        wanted = _systemd(schedule, of_system=kind == "system", remove=remove)
    timer = units.noted(nightly.read().directory, at)
    return replace(wanted, files=(*wanted.files, timer))


def _systemd(schedule: Schedule, *, of_system: bool, remove: bool) -> Installation:
    kind: Kind = "system" if of_system else "user"
    folder = Path("/etc/systemd/system") if of_system else _user_units()
    written = units.systemd(schedule, folder)
    systemctl = ("systemctl",) if of_system else ("systemctl", "--user")
    # systemd reads changed unit files only after a reload.
    reload = (*systemctl, "daemon-reload")
    if remove:
        # Before the files go: systemd stops a timer only while it knows its unit.
        disable = (*systemctl, "disable", "--now", *TIMERS)
        # Without the reload, systemd goes on listing units whose files are gone.
        return Installation(kind, tuple(written), None, (disable,), (reload,))
    enable = (*systemctl, "enable", "--now", *TIMERS)
    return Installation(kind, tuple(written), None, (reload, enable))


def _launchd(schedule: Schedule, *, remove: bool) -> Installation:
    folder = account.home() / "Library/LaunchAgents"
    written = units.launchd(schedule, folder)
    commands = tuple(_launchctl(file.path, remove=remove) for file in written)
    return Installation("launchd", tuple(written), None, commands)


def _launchctl(agent: Path, *, remove: bool) -> tuple[str, ...]:
    # The logged-in user's domain, which bootstrap and bootout ask for.
    domain = f"gui/{os.getuid()}"
    if remove:
        return ("launchctl", "bootout", f"{domain}/{agent.stem}")
    return ("launchctl", "bootstrap", domain, str(agent))


def _schedule(kind: str, at: str) -> Schedule:
    """Return the schedule of this host, as its two files describe it."""
    wanted = nightly.read()
    host = host_file.read()
    # A service starts with an empty environment: what this shell sets has to go into the unit.
    caller = {"TFWRIGHT_NIGHTLY_FILE": str(nightly.path().absolute())}
    if host_file.path().exists():
        caller["TFWRIGHT_HOST_FILE"] = str(host_file.path().absolute())
    writable = {wanted.directory, host.build_out, host.cache_directory}
    return Schedule(
        program=(sys.executable, "-m", "invoke"),
        checkout=ROOT,
        writable=tuple(sorted(writable)),
        hours=wanted.hours,
        at=at,
        environment=tuple(sorted(caller.items())),
        # A unit of the system would otherwise build as root.
        user=account.name() if kind == "system" else "",
    )


def _user_units() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or account.home() / ".config"
    return Path(config) / "systemd" / "user"


def install(wanted: Installation) -> None:
    """Write the files and start the timer; raise HostError naming what did not start it."""
    for file in wanted.files:
        files.write(file.path, file.text)
    if wanted.crontab is not None:
        crontab.write(wanted.crontab)
    # Shown to the user in this order, and run in it.
    for argv in wanted.commands:
        _run(argv)


def needs_login(wanted: Installation) -> bool:
    """Say whether the timer runs only while its user is logged in."""
    return wanted.kind == "user" and not (LINGERING / account.name()).exists()


def uninstall(wanted: Installation) -> None:
    """Stop the timer and remove the files; a file or timer that is gone already is accepted."""
    if wanted.crontab is not None:
        crontab.write(wanted.crontab)
    _try_all(wanted.commands)
    for file in wanted.files:
        file.path.unlink(missing_ok=True)
    _try_all(wanted.afterwards)


def _try_all(commands: tuple[tuple[str, ...], ...]) -> None:
    """Run programs whose failure does not matter: disabling a timer twice fails the second time."""
    for argv in commands:
        _succeeds(argv)


def _run(argv: tuple[str, ...]) -> None:
    if not _succeeds(argv):
        said = shlex.join(argv)
        raise HostError(
            f"The files are written, but '{said}' failed",
            remedy=f"Run '{said}' yourself on the host that builds at night.",
        )


def _succeeds(argv: tuple[str, ...]) -> bool:
    """Run a program on the terminal; one that is not installed does not succeed."""
    command = _command(argv)
    # Where the command itself is looked for: the caller's PATH may name other directories.
    if shutil.which(argv[0], path=command.env["PATH"]) is None:
        return False
    return runner.show(command) == 0


def _command(argv: tuple[str, ...]) -> Command:
    """Return a command that may talk to the user's own service manager."""
    names = ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
    caller = {name: os.environ[name] for name in names if name in os.environ}
    return Command(argv, Path("/"), environment.clean(account.home(), extra=caller))
