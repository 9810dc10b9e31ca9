"""Programs on a terminal of their own, and whether one waits for someone to type there."""

import errno
import fcntl
import os
import platform
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.errors import Evidence, HostError
from tfwright.tools import disk
from tfwright.tools.process import isolation, runner
from tfwright.tools.process.command import Command

if TYPE_CHECKING:
    import pexpect

CHUNK = 1 << 16
_OTHER_END = 0x5441
"""Linux's ioctl TIOCGPTPEER, since 4.13: open the side of a pty that its program has."""
CANCEL_SECONDS = 30.0
"""How long a program may take to end after Ctrl-C: Bazel cancels its actions first."""
SCREEN = (50, 4096)
"""Rows and columns. Wide, since a question may hold a long path and Bazel cuts its progress off."""

PROCESSES = Path("/proc")
_READ = {"x86_64": 0, "aarch64": 63}
"""The number of the system call read(), by machine."""
_POLL = {"x86_64": (7, 23, 270, 271), "aarch64": (72, 73)}
"""The numbers of poll(), select() and their kin, in which a line editor waits for a key."""

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

    command = isolation.host_command(command, terminal=True)
    try:
        with runner.deferred_signals():
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
                preexec_fn=runner.prepare_child,
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


def has_unread_line(child: "pexpect.spawn[str]") -> bool:
    """Say whether a line was typed that no program has read; False where that cannot be known."""
    # Unlike FIONREAD, select() first lets the kernel hand over what it still holds back.
    with suppress(OSError):
        other_end = fcntl.ioctl(
            child.child_fd, _OTHER_END, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC
        )
        try:
            return bool(select.select([other_end], [], [], 0)[0])
        finally:
            os.close(other_end)
    return False


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
        for _ in read_output(child, patience=CANCEL_SECONDS):
            if time.monotonic() > deadline:
                break
        raise
    finally:
        child.close(force=True)


def read_output(child: "pexpect.spawn[str]", patience: float | None = None) -> Iterator[str]:
    """Yield a program's output until it closes its terminal or is silent for `patience` seconds."""
    import pexpect

    with suppress(pexpect.EOF, pexpect.TIMEOUT):
        while True:
            yield child.read_nonblocking(CHUNK, patience)


def exit_status(child: "pexpect.spawn[str]") -> int:
    """Return the exit status of a program that has closed its terminal, and so is about to end."""
    child.wait()
    return -child.signalstatus if child.signalstatus else child.exitstatus or 0


def waits_for_input(session: int) -> bool | None:
    """Say whether a process of a session waits for its terminal.

    `session` is the identifier of the process that leads it. Returns None where this cannot be
    known: on systems without /proc, and where a process waits for several things at once.
    """
    read = _READ.get(platform.machine())
    poll = _POLL.get(platform.machine(), ())
    # Without CONFIG_HAVE_ARCH_TRACEHOOK the kernel does not have the file.
    if read is None or not (PROCESSES / "self/syscall").exists():
        return None
    answer: bool | None = False
    for process in PROCESSES.iterdir():
        try:
            if not process.name.isdigit() or os.getsid(int(process.name)) != session:
                continue
        except OSError:
            continue
        call = _system_call(process)
        # A line editor polls the terminal, but so does a program that waits for its server.
        if call is None or call[0] in poll:
            answer = None
        elif call[0] == read and _is_terminal(process, call[1]) and _sleeps(process):
            return True
    return answer


def _system_call(process: Path) -> tuple[int, int] | None:
    """Return the system call that a process is in and its first argument; (-1, 0) if it is in none.

    Returns None if Linux does not tell.
    """
    try:
        number, *arguments = (process / "syscall").read_text().split()
    except FileNotFoundError:
        # It has ended since its directory was listed.
        return -1, 0
    except (OSError, ValueError):
        # Another user's process, or one that the security module protects.
        return None
    # "running" for a process that computes, "-1 ..." for one blocked in no system call.
    if not number.isdigit() or not arguments:
        return -1, 0
    return int(number), int(arguments[0], 16)


def _sleeps(process: Path) -> bool:
    """Say whether a process sleeps; a stopped one still shows the call that it was in."""
    with suppress(OSError, IndexError):
        # The name of the program may hold blanks and parentheses.
        state = (process / "stat").read_text(errors="replace").rpartition(")")[2]
        return state.split()[0] == "S"
    return False


def _is_terminal(process: Path, descriptor: int) -> bool:
    with suppress(OSError):
        return str((process / f"fd/{descriptor}").readlink()).startswith(("/dev/pts/", "/dev/tty"))
    return False
