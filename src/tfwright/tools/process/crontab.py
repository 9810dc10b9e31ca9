"""The user's crontab."""

import shutil
import subprocess

from tfwright.documents import account
from tfwright.errors import Evidence, HostError
from tfwright.tools.process import environment


def read() -> str:
    """Return the user's crontab; empty if there is none yet. Raises HostError without cron."""
    ended = _crontab("-l", given="")
    # Without a crontab it fails, and says so.
    return ended.stdout if ended.returncode == 0 else ""


def write(text: str) -> None:
    """Put another crontab in its place; raise HostError if cron refuses it."""
    ended = _crontab("-", given=text)
    if ended.returncode:
        raise HostError(
            "crontab refused the new table",
            remedy="Add the line by hand with 'crontab -e'.",
            evidence=Evidence(lines=tuple(ended.stderr.splitlines()[-5:])),
        )


def _crontab(argument: str, given: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 a program of the system with a fixed argument
        [_program(), argument],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env=environment.clean(account.home()),
    )


def _program() -> str:
    # By the system's own PATH, as cron itself would find it.
    program = shutil.which("crontab", path=":".join(environment.SYSTEM_PATH))
    if program is None:
        raise HostError(
            "This host has no crontab", remedy="Install cron, or use --install user (systemd)."
        )
    return program
