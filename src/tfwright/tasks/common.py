"""What the commands share: reading their arguments, and the one place where errors end."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfwright.pipeline.job import BuildRequest

RECIPE = {"recipe": "name of a recipe, or path of one that ends in .toml"}
JSON = {"json": "print JSON, for machines"}


@contextmanager
def explained(resume: str = "") -> Iterator[None]:
    """Turn an expected failure into its message and exit status; the only `except` of its kind."""
    from tfwright import errors
    from tfwright.terminal import console
    from tfwright.tools import disk

    try:
        # What a build makes is run by others: it is never writable for all, whatever the umask.
        os.umask(os.umask(0o022) | 0o022)
        with console.ending_gently(), disk.explained():
            yield
    except errors.TfwrightError as fault:
        console.explain(fault, resume if fault.stage else "")
        sys.exit(fault.exit_status)
    except KeyboardInterrupt:
        console.interrupted(resume)
        sys.exit(errors.INTERRUPTED_STATUS)
    except BrokenPipeError:
        # The reader has seen enough; what Python flushes at exit must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def job_of(
    recipe: str, *, until: str = "publish", offline: bool = False, jobs: int | None = None
) -> "BuildRequest":
    """Read the recipe and the host file into a request."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.pipeline.job import BuildRequest
    from tfwright.terminal import console

    lock = recipes.find(recipe).with_suffix(".lock")
    read = recipes.read(recipe)
    return BuildRequest(
        recipe=read,
        host_file=host_file.read().of(read),
        listener=console.Terminal(),
        offline=offline,
        jobs=jobs,
        until=until,
        locked=lock if lock.is_file() else None,
    )


def file_of(given: str, command: str) -> Path:
    """Return the path that a command was given.

    Invoke takes an unknown option for the value of a positional argument; that is refused here.
    """
    from tfwright.errors import RecipeError

    if given.startswith("-") and given != "-":
        raise RecipeError(
            f"'{given}' is an unknown option of 'invoke {command}'",
            remedy=(
                f"'invoke {command} --help' lists its options; a file of that name is ./{given}."
            ),
        )
    return Path(given)
