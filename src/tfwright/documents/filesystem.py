"""This host's files, account and times, and where tfwright's own files lie.

In a checkout these are the checkout's, as are those of whoever runs it. An installed tfwright has
its recipes, patches and templates in the package, which nothing writes to; a person's own lie in a
directory that `tfwright init` makes.
"""

import datetime as dt
import errno
import io
import os
import re
import stat
from pathlib import Path


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for reading.

    Raises OSError for a directory, named pipe or socket as for a file that is missing.
    """
    # Without O_NONBLOCK, a named pipe keeps us waiting for somebody who writes.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode) or stat.S_ISFIFO(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.ENXIO, "Is a named pipe, and no file", str(path))
    return os.fdopen(descriptor, "rb")


HOMELESS = Path("/nonexistent")
"""The home of accounts that have none, as Debian calls it: nothing is found there, and nothing
can be written."""


def home() -> Path:
    """Return the home directory; ``/nonexistent`` if there is none."""
    found = expand_home("~")
    return found if found.is_absolute() else HOMELESS


def settings_path(name: str) -> Path:
    """Return where a file of the user's settings has its place (XDG Base Directory)."""
    config = os.environ.get("XDG_CONFIG_HOME") or home() / ".config"
    return Path(config) / "tfwright" / name


def expand_home(path: Path | str) -> Path:
    """Return a path with its ``~`` or ``~user`` replaced; unchanged without such a user."""
    # Path.expanduser raises RuntimeError for an unknown user.
    return Path(os.path.expanduser(path))  # noqa: PTH111 the same


def unbuildable_character(path: Path) -> str:
    """Return the first character of a path below which no build runs; empty if there is none.

    TensorFlow's build scripts do not quote their paths, and Bazel's Java does not find itself
    behind other letters than ASCII's.
    """
    found = re.search(r"\s|[^\x00-\x7f]", str(path))
    return found[0] if found else ""


def without_home(text: str) -> str:
    """Return a text for other people, with ``~`` for the home directory."""
    # In many containers it is "/", which is a part of every path.
    return text if home() == Path("/") else text.replace(str(home()), "~")


def account_name() -> str:
    """Return the name of the account; its number if it has no name."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)


def utc(seconds: float) -> dt.datetime:
    """Return a time that is given in seconds since 1970.

    git and file systems hold times that no calendar has: they become the first or the last one.
    """
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return LAST if seconds > 0 else FIRST


HOST_FILE = "host.toml"
"""The host file of a directory that `tfwright init` made."""
_CHECKOUT = Path(__file__).resolve().parents[3]
INSTALLED = not (_CHECKOUT / "tasks.py").is_file()
SHIPPED = Path(__file__).resolve().parents[1] / "shipped" if INSTALLED else _CHECKOUT
"""The directory with the recipes, patches and templates that tfwright came with."""


def _find_directory() -> Path:
    """Return the nearest directory that `tfwright init` made, or the working directory."""
    try:
        here = Path.cwd()
    except OSError:
        # It was deleted, which the command says.
        return Path("/")
    # Two marks: other programs have a host.toml, too.
    made = (
        place
        for place in (here, *here.parents)
        if (place / HOST_FILE).is_file() and (place / "recipes").is_dir()
    )
    return next(made, here)


ROOT = _find_directory() if INSTALLED else _CHECKOUT
"""The directory with a person's own recipes/, patches/ and build_out/."""
