"""A report of an error that nothing is known about, ready to be filed as an issue."""

import platform
from pathlib import Path

from tfwright import __version__
from tfwright.diagnosis.excerpt import Excerpt
from tfwright.diagnosis.reader import Diagnosis
from tfwright.documents import account
from tfwright.tools import files


def write(found: Diagnosis, log: str, folder: Path) -> Path | None:
    """Write the report of an unknown error below `folder`.

    Returns None if the error is known, or if the log shows no error.
    """
    if found.understood or found.first is None:
        return None
    name = "standard input" if log == "-" else Path(log).name
    path = folder / f"{name.replace(' ', '-')}.md"
    files.write(path, text(found.first, name))
    return path


def text(excerpt: Excerpt, log: str) -> str:
    """Return the report in Markdown; the home directory, which holds a name, is written as ~."""
    shown = "\n".join(excerpt.lines)
    parts = [
        f"### {excerpt.what}",
        f"From line {excerpt.line} of `{log}`"
        + (f", rule at `{excerpt.where}`" if excerpt.where else ""),
        f"```\n{shown}\n```",
        f"The command:\n\n```sh\n{excerpt.command}\n```"
        if excerpt.command
        else "The log shows no command.",
        _versions(),
    ]
    return account.without_home("\n\n".join(parts)) + "\n"


def _versions() -> str:
    """Name what ran here, for whoever reads the report."""
    libc = " ".join(platform.libc_ver())
    python = platform.python_version()
    return f"tfwright {__version__}, Python {python}, {platform.platform()}, {libc}"
