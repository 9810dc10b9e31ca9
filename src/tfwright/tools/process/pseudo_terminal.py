"""Programs on a terminal of their own."""

from typing import TYPE_CHECKING

from tfwright.errors import Evidence, HostError
from tfwright.tools.process import inside, runner
from tfwright.tools.process.runner import Command

if TYPE_CHECKING:
    import pexpect

SCREEN = (50, 4096)
"""Rows and columns. Wide, since a question may hold a long path and Bazel cuts its progress off."""


def spawn(command: Command, *, remedy: str) -> "pexpect.spawn[str]":
    """Start a program on a pty, without echo; raise HostError if it is not there.

    It ends when the pty is closed, and so with this process, however that ends.
    """
    import pexpect

    command = inside.placed(command, terminal=True)
    try:
        child = pexpect.spawn(
            command.argv[0],
            list(command.argv[1:]),
            cwd=command.cwd,
            env=dict(command.env),
            echo=False,
            dimensions=SCREEN,
            encoding="utf-8",
            codec_errors="replace",
            timeout=None,
            preexec_fn=runner.settle,
        )
    except pexpect.ExceptionPexpect as fault:
        what = f"{command.argv[0]} cannot be run: it is missing or not executable"
        raise HostError(what, remedy=remedy, evidence=Evidence(command=command.argv)) from fault
    child.delaybeforesend = None
    return child
