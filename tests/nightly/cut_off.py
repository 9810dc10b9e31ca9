"""Ends nights at a chosen step, for tests that start this as a program of its own.

A step is a change that the night makes to the disk, or a statement that it gives to SQLite. Python
announces each of them to an audit hook before it happens.
"""

import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.nightly.fake import host_with

from tfwright.errors import TfwrightError
from tfwright.nightly import night
from tfwright.nightly.night import BuildHost
from tfwright.tools import disk

CHANGES = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "os.chmod"}
READING = {"select", "pragma"}
"""How statements begin that change nothing."""
WRITING = os.O_WRONLY | os.O_RDWR
FAILED, REFUSED = 1, 3
"""Exit statuses of a night that ends with a traceback, and with a message."""


class Steps:
    """Counts the steps of this process, and ends it by SIGKILL before one of them."""

    def __init__(self, last: int = 0) -> None:
        self._last = last
        self.count = 0
        sys.addaudithook(self._hear)
        # The audit event of a connection comes before the connection can be used.
        self._connect: Callable[..., sqlite3.Connection] = sqlite3.connect
        sqlite3.connect = self._traced  # type: ignore[assignment]  # for this process only

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if event in CHANGES or (event == "open" and _writes(args)):
            self._step()

    def _traced(self, *args: object, **options: object) -> sqlite3.Connection:
        found = self._connect(*args, **options)
        # A kill before a question is one after the change before it.
        found.set_trace_callback(lambda said: None if said.split()[0] in READING else self._step())
        return found

    def _step(self) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def _writes(args: tuple[object, ...]) -> bool:
    flags = args[2]
    return isinstance(flags, int) and bool(flags & WRITING)


def host(folder: Path, number: int) -> BuildHost:
    """Return a host of two recipes at their revision of one night; old builds go at once."""
    limits = {"count": 1, "hidden_days": 0}
    names = ("a", "b")
    found = host_with(folder, *names, url="https://wheels.example/", retention=limits)
    builder = found.fake
    # The older revisions pass their reproduction, so that pointers and pages change, too.
    builder.parts = {name: {"recipe": str(number)} for name in names}
    builder.clock.pass_seconds(86400 * number)
    return found


def begin(folder: Path) -> None:
    """Run the first night in this process, so that its copies have the modules and templates.

    Without them, a night would spend six sevenths of its time on loading and compiling them.
    """
    night.run(host(folder, 1))


def forked(work: Callable[[], int]) -> int:
    """Return what a copy of this process gives; negative for the signal that ended it."""
    child = os.fork()
    if child == 0:
        # No cleaning up and no second return into the caller, whatever happens.
        try:
            os._exit(work())
        except BaseException:  # noqa: BLE001 the parent reads the traceback
            traceback.print_exc()
            os._exit(FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def pass_night(folder: Path, number: int, last: int = 0) -> int:
    """Run one night in a process of its own, which ends before the step `last`."""

    def work() -> int:
        Steps(last)
        try:
            # As the command does it.
            with disk.as_host_error():
                night.run(host(folder, number))
        except TfwrightError as fault:
            sys.stdout.write(f"{fault.what} | {fault.remedy}\n")
            sys.stdout.flush()
            return REFUSED
        return 0

    return forked(work)
