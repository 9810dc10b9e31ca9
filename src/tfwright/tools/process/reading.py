"""Whether a program waits for someone to type: what Linux says of each process in its session."""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")
_READ = {"x86_64": 0, "aarch64": 63}
"""The number of the system call read(), by machine."""
_POLL = {"x86_64": (7, 23, 270, 271), "aarch64": (72, 73)}
"""The numbers of poll(), select() and their kin, in which a line editor waits for a key."""


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
    for process in _members(session):
        call = _system_call(process)
        # A line editor polls the terminal, but so does a program that waits for its
        # server.
        if call is None or call[0] in poll:
            answer = None
        elif call[0] == read and _is_terminal(process, call[1]) and _sleeps(process):
            return True
    return answer


def _members(session: int) -> Iterator[Path]:
    """Yield the directories in /proc of a session's processes."""
    for directory in PROCESSES.iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                if os.getsid(int(directory.name)) == session:
                    yield directory


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
