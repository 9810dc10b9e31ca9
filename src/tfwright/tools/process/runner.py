"""Programs that run to their end: no shell, a given environment, and their output in a log."""

import fcntl
import os
import signal
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

from tfwright.errors import Evidence, FullDiskError, HostError, TfwrightError, ToolError
from tfwright.tools import disk, files
from tfwright.tools.process import file_lock, isolation
from tfwright.tools.process.command import Command

UMASK = 0o022
TAIL_LINES = 15
GRACE_SECONDS = 10.0
ANSWER_SECONDS = 60.0
"""Time for a short program: one that hangs, as nvidia-smi where the driver has lost its GPU, is
rarer than a host that compiles with every processor."""
_HUNG = set[tuple[str, ...]]()
"""The short programs that took longer."""


class UnstartableError(HostError):
    """A program that is not there, or does not start."""


def run(
    command: Command, log: Path | None = None, *, remedy: str, timeout: float | None = None
) -> str:
    """Run a program to its end and return what it printed, which also stands in `log`, if any.

    Raises ToolError with the last lines if it exits other than 0, HostError if it is not there or
    the disk is full, TimeoutError once it took `timeout` seconds and was ended. On Ctrl-C the
    program and its children are ended first.
    """
    if log is None:
        with files.scratch_directory() as folder:
            try:
                return run(command, folder / "log", remedy=remedy, timeout=timeout)
            except TfwrightError as fault:
                # It is gone when somebody reads this.
                fault.evidence = replace(fault.evidence, log=None)
                raise
    status = attempt(command, log, remedy=remedy, timeout=timeout)
    if status != 0:
        raise exit_error(command, status, log, remedy=remedy)
    return log.read_text("utf-8", "replace")


def attempt(command: Command, log: Path, *, remedy: str, timeout: float | None = None) -> int:
    """Run a program to its end; return its exit status, or minus the signal that ended it.

    Raises TimeoutError once it took `timeout` seconds and was ended, HostError if it is not there.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            with child_process(command, output.fileno()) as process:
                return process.wait(timeout)
        except subprocess.TimeoutExpired as fault:
            raise TimeoutError from fault
        except OSError as fault:
            if disk.is_limit(fault):
                raise disk.host_error(fault) from fault
            raise UnstartableError(
                f"{command.argv[0]} cannot be run: {fault.strerror}",
                remedy=remedy,
                evidence=Evidence(command=command.argv),
            ) from fault


Stream = int | IO[Any]
"""What subprocess takes for a program's input or output."""


@contextmanager
def child_process(
    command: Command,
    stdout: Stream = subprocess.DEVNULL,
    stderr: Stream = subprocess.STDOUT,
    stdin: Stream = subprocess.DEVNULL,
) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a program that ends with this process, however that ends, and its children with it.

    It leads a session whose terminal only this process holds open: when that closes, by SIGKILL
    too, the kernel hangs up on the whole session. Without it a build that is started again would
    meet the programs of the one before, still writing. For the same reason it inherits the locks
    that this process holds, see `file_lock.HELD`; for a brief program that is enough. The streams
    are those of Popen.
    """
    started = isolation.host_command(command)
    with ExitStack() as stack:
        take = None
        # A brief program has no terminal. Taking one needs a fork, which copies the page tables of
        # this process: 30 ms where it has 300 MB, ten times what git itself takes.
        if not command.brief:
            ours, end_of_program = os.openpty()
            stack.callback(os.close, ours)
            stack.callback(os.close, end_of_program)
            take = partial(prepare_child, end_of_program)
        release = stack.enter_context(deferred_signals())
        process = stack.enter_context(
            subprocess.Popen(  # noqa: S603 argv is a tuple, never a shell line
                started.argv,
                cwd=started.cwd,
                env=dict(started.env),
                stdin=stdin,
                start_new_session=True,
                umask=UMASK,
                preexec_fn=take,  # noqa: PLW1509 a few system calls, no lock
                # A lock lasts as long as any program of this build: see file_lock.HELD.
                pass_fds=file_lock.HELD,
                stdout=stdout,
                stderr=stderr,
            )
        )
        try:
            release()
            yield process
        except BaseException:
            terminate(process)
            raise


@contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Hold signals that end this process back until the block calls what it is given, or ends.

    Python calls functions around a fork, such as one that locks logging in the parent. What a
    handler raises in one of them is printed and lost, and the lock stays held for good.
    """
    # Handlers run in the main thread alone, so a fork of another one is not disturbed.
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    arrived: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        arrived.append(number)

    before = {n: signal.signal(n, note) for n in (signal.SIGINT, signal.SIGTERM)}

    def release() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler or signal.SIG_DFL)
        while arrived:
            signal.raise_signal(arrived.pop())

    try:
        yield release
    finally:
        release()


def prepare_child(terminal: int | None = None) -> None:
    """Prepare a child before its program starts: our umask, and the terminal that it ends with.

    nohup ignores the hang-up and a shell's background job Ctrl-C; children inherit that: undo it,
    for they are ended by both.
    """
    if terminal is not None:
        # Only the leader of a session can take a terminal as its own, which is how the
        # kernel knows whom to hang up on.
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    # Modes of built files go into the wheel, and the caller's umask must not.
    os.umask(UMASK)


def terminate(process: "subprocess.Popen[bytes]") -> None:
    """End a program and its children: politely first, for certain after a grace of seconds."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            # As Ctrl-C does, first: Bazel's client cancels its actions, gcc removes half outputs.
            os.killpg(process.pid, number)
            process.wait(GRACE_SECONDS)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def exit_error(command: Command, status: int, log: Path, *, remedy: str) -> ToolError | HostError:
    """Return the error for a program that exited with `status`, with the last lines of its log."""
    lines = last_lines(log)
    evidence = Evidence(command=command.argv, status=status, log=log, lines=lines)
    program = Path(command.argv[0]).name
    complains = any("no space left on device" in line.lower() for line in lines)
    # Not every program says why it could not write: a full disk made python3.11 exit with 120.
    if complains or disk.is_full(command.cwd) or disk.is_full(log.parent):
        return FullDiskError(f"{program} could not write", evidence)
    ending = f"exited with status {status}"
    if status < 0:
        ending = f"was ended by signal {-status}"
    return ToolError(f"{program} {ending}", remedy=remedy, evidence=evidence)


def last_lines(log: Path, count: int = TAIL_LINES) -> tuple[str, ...]:
    """Return the last lines of a log that are not blank."""
    # A program may have printed gigabytes, also in one line.
    lines = files.tail(log).splitlines()
    return tuple([line.rstrip() for line in lines if line.strip()][-count:])


def last_line(log: Path) -> str:
    """Return the last line of a log that is not blank, for a message."""
    return "".join(last_lines(log, 1)) or "nothing was printed"


def run_on_terminal(command: Command) -> int:
    """Run a program on the user's own terminal; return its exit status."""
    return subprocess.run(  # noqa: S603 argv is a tuple, never a shell line
        command.argv, cwd=command.cwd, env=dict(command.env), check=False
    ).returncode


def short_output(command: Command, *, failed: bool = False) -> str:
    """Return what a short program prints; empty if it cannot be run, fails or hangs.

    With `failed`, also what one that fails prints, together with its errors. A program that hung is
    not asked again.
    """
    silent = f"no answer within {ANSWER_SECONDS:.0f} s" if failed else ""
    # A shell that hangs hangs in what it was given to do.
    program = command.argv[:1] if command.argv[0] != "/bin/sh" else command.argv
    if program in _HUNG:
        return silent
    command = isolation.host_command(command)
    try:
        done = subprocess.run(  # noqa: S603 argv is a tuple, never a shell line
            command.argv,
            cwd=command.cwd,
            env=dict(command.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if failed else subprocess.DEVNULL,
            timeout=ANSWER_SECONDS,
            check=not failed,
        )
    except OSError as fault:
        # A program that is there must not be reported as missing.
        if disk.is_limit(fault):
            raise
        return ""
    except subprocess.TimeoutExpired:
        _HUNG.add(program)
        return silent
    except subprocess.CalledProcessError:
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def replace_process(command: Command) -> NoReturn:
    """Turn this process into another program."""
    os.chdir(command.cwd)
    program = command.argv[0]
    env = dict(command.env)
    # execve and not execvpe: which program it is was decided with the command.
    os.execve(program, command.argv, env)  # noqa: S606 a fixed program, no shell
