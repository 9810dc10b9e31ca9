"""A program to run: its command, its environment, and whether a container holds it."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self


@dataclass(frozen=True)
class Command:
    """A program to run: `invoke plan` shows the same object that the stage then runs."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment; nothing is inherited."""
    here: bool = False
    """Whether it runs on the host also while a container is open."""
    brief: bool = False
    """Whether it ends by itself in seconds, so that nothing has to end it when we are killed."""

    @classmethod
    def of_system(cls, *argv: str, here: bool = False) -> Self:
        """Return a program that depends on no directory of the caller and on no variable."""
        root = Path("/")
        return cls(argv, root, clean_environment(root), here)

    def __str__(self) -> str:
        return shlex.join(self.argv)


# Every program gets an environment that is built from nothing, the same on every host.
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where the host's own programs are looked for. The caller's PATH never leaks into a build."""


def clean_environment(
    home: Path,
    programs: tuple[Path, ...] = (),
    epoch: int = 0,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a whole environment that depends on none of the caller's variables.

    `programs` are directories put before the system's own on PATH, `epoch` (seconds) becomes
    SOURCE_DATE_EPOCH, `extra` wins over the rest. `home` is a private directory, so that no
    ~/.bazelrc, ~/.gitconfig or ~/.pydistutils.cfg takes part.
    """
    return {
        "HOME": str(home),
        # A sort order, or a translated message, must not depend on the host's language.
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PATH": ":".join([*map(str, programs), *SYSTEM_PATH]),
        # Bytecode holds the time of its source file: it must not come into a tree or a wheel.
        "PYTHONDONTWRITEBYTECODE": "1",
        # configure.py before 2.5 takes the default of a question from an unsorted set.
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # bdist_wheel and zip tools stamp their members with it instead of with the clock.
        "SOURCE_DATE_EPOCH": str(epoch),
        # A zip archive holds local times.
        "TZ": "UTC",
        **(extra or {}),
    }


def caller_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of the caller's variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


class RunningContainer(Protocol):
    """A running container, in which programs run while it is open."""

    @property
    def name(self) -> str:
        """What tells it from the host and from other images: the image's digest."""

    def command(self, command: Command, *, terminal: bool) -> Command:
        """Return a command on the host that runs another one inside."""

    def host_process(self, pid: int) -> int | None:
        """Return the host's number for a process inside; None if there is none."""


_OPEN: list[RunningContainer] = []
"""The containers that are open, the innermost last. Threads of a stage see it as well."""


def open_container() -> RunningContainer | None:
    """Return the container that programs run in now; None on the host."""
    return _OPEN[-1] if _OPEN else None


def container_name() -> str:
    """Return what tells the place where programs run from others; empty on the host."""
    inside = open_container()
    return inside.name if inside else ""


@contextmanager
def inside_container(inside: RunningContainer) -> Iterator[None]:
    """Let programs run inside a container while the block runs."""
    # A list and not a context variable: that would not reach the threads of a stage.
    _OPEN.append(inside)
    try:
        yield
    finally:
        _OPEN.remove(inside)


def host_process(pid: int) -> int | None:
    """Return the host's number for a process where programs run now."""
    inside = open_container()
    return inside.host_process(pid) if inside else pid
