"""Where programs run: on the host, or inside the container that a stage opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tfwright.tools.process.command import Command


class Inside(Protocol):
    """A container that is running."""

    @property
    def name(self) -> str:
        """What tells it from the host and from other images: the image's digest."""

    def command(self, command: Command, *, terminal: bool) -> Command:
        """Return a command on the host that runs another one inside."""

    def host_process(self, pid: int) -> int | None:
        """Return the host's number for a process inside; None if there is none."""


_OPEN: list[Inside] = []
"""The containers that are open, the innermost last. Threads of a stage see it as well."""


def current() -> Inside | None:
    """Return the container that programs run in now; None on the host."""
    return _OPEN[-1] if _OPEN else None


def name() -> str:
    """Return what tells the place where programs run from others; empty on the host."""
    inside = current()
    return inside.name if inside else ""


@contextmanager
def entered(inside: Inside) -> Iterator[None]:
    """Let programs run inside a container while the block runs."""
    # A list and not a context variable: that would not reach the threads of a stage.
    _OPEN.append(inside)
    try:
        yield
    finally:
        _OPEN.remove(inside)


def placed(command: Command, *, terminal: bool = False) -> Command:
    """Return the command to start on the host so that `command` runs where programs run now."""
    inside = current()
    # git and the vault stay on the host: an image need not have them, nor see their
    # files.
    if inside is None or command.here:
        return command
    return inside.command(command, terminal=terminal)


def host_process(pid: int) -> int | None:
    """Return the host's number for a process where programs run now."""
    inside = current()
    return inside.host_process(pid) if inside else pid
