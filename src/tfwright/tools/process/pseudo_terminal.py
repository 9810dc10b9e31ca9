"""Programs on a terminal of their own."""

import errno
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tfwright.errors import Evidence, HostError
from tfwright.tools import disk
from tfwright.tools.process import isolation, runner
from tfwright.tools.process.command import Command

if TYPE_CHECKING:
    import pexpect

CHUNK = 1 << 16
CANCEL_SECONDS = 30.0
"""How long a program may take to end after Ctrl-C: Bazel cancels its actions first."""
SCREEN = (50, 4096)
"""Rows and columns. Wide, since a question may hold a long path and Bazel cuts its progress off."""

_NOT_THERE = "it is missing or not executable"
_REFUSED = {
    errno.ENOENT: "the interpreter that its first line names is not installed",
    errno.ENOEXEC: "its first line names no interpreter, such as #!/bin/bash",
}
"""Why the kernel does not start a program that is there."""


def spawn(command: Command, *, remedy: str) -> "pexpect.spawn[str]":
    """Start a program on a pty, without echo; raise HostError if it is not there.

    It ends when the pty is closed, and so with this process, however that ends.
    """
    import pexpect

    command = isolation.placed(command, terminal=True)
    try:
        with runner.deferred():
            child = pexpect.spawn(
                command.argv[0],
                list(command.argv[1:]),
                cwd=command.cwd,
                env=dict(command.env),
                # Echoed answers would stand in front of the program's replies.
                echo=False,
                dimensions=SCREEN,
                encoding="utf-8",
                # A read may end in the middle of a character, and compilers print file
                # names as bytes.
                codec_errors="replace",
                timeout=None,
                preexec_fn=runner.settle,
            )
    # pexpect looks for the file before it starts it; OSError is the kernel's refusal.
    except (pexpect.ExceptionPexpect, OSError) as fault:
        if isinstance(fault, OSError) and disk.is_limit(fault):
            raise
        number = (isinstance(fault, OSError) and fault.errno) or 0
        raise HostError(
            f"{command.argv[0]} cannot be run: {_REFUSED.get(number, _NOT_THERE)}",
            remedy=remedy,
            evidence=Evidence(command=command.argv),
        ) from fault
    # pexpect waits 50 ms before each answer, for programs that switch echo off by themselves.
    child.delaybeforesend = None
    return child


@contextmanager
def running(command: Command, *, remedy: str) -> "Iterator[pexpect.spawn[str]]":
    """Start a program on a pty; if the block fails, interrupt it like Ctrl-C, and wait for it."""
    child = spawn(command, remedy=remedy)
    try:
        yield child
    except BaseException:
        child.kill(signal.SIGINT)
        deadline = time.monotonic() + CANCEL_SECONDS
        # Read what it still writes: a program that cannot write does not end.
        for _ in output(child, patience=CANCEL_SECONDS):
            if time.monotonic() > deadline:
                break
        raise
    finally:
        child.close(force=True)


def output(child: "pexpect.spawn[str]", patience: float | None = None) -> Iterator[str]:
    """Yield a program's output until it closes its terminal or is silent for `patience` seconds."""
    import pexpect

    with suppress(pexpect.EOF, pexpect.TIMEOUT):
        while True:
            yield child.read_nonblocking(CHUNK, patience)


def status(child: "pexpect.spawn[str]") -> int:
    """Return the exit status of a program that has closed its terminal, and so is about to end."""
    child.wait()
    return -child.signalstatus if child.signalstatus else child.exitstatus or 0
