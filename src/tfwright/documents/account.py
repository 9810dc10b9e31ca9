"""The account that tfwright runs under, which in a container may have neither name nor home."""

import os
from pathlib import Path

HOMELESS = Path("/nonexistent")
"""The home of accounts that have none, as Debian calls it: nothing is found there, and nothing
can be written."""


def home() -> Path:
    """Return the home directory; ``/nonexistent`` if there is none."""
    found = expanded("~")
    return found if found.is_absolute() else HOMELESS


def expanded(path: Path | str) -> Path:
    """Return a path with its ``~`` or ``~user`` replaced; unchanged without such a user."""
    # Path.expanduser raises RuntimeError for an unknown user.
    return Path(os.path.expanduser(path))  # noqa: PTH111 the same


def without_home(text: str) -> str:
    """Return a text for other people, with ``~`` for the home directory."""
    # In many containers it is "/", which is a part of every path.
    return text if home() == Path("/") else text.replace(str(home()), "~")


def name() -> str:
    """Return the name of the account; its number if it has no name."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
