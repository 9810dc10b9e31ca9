"""What the commands share: reading their arguments, and the one place where errors end."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import invoke

if TYPE_CHECKING:
    from tfwright.pipeline.job import BuildRequest

# What options of several commands mean, so that each reads the same in every --help.
RECIPE = {"recipe": "name of a recipe, or path of one that ends in .toml"}
JSON = {"json": "print JSON, for machines"}
UNTIL = {"until": "stop after this stage"}
OFFLINE = {"offline": "use only what is on this host"}
WHEEL = {"wheel": "path of a .whl file, of any TensorFlow"}
MACHINE = {
    "gpu": "name as 'RTX 3090', or compute capability as sm_86 or 8.6",
    "python": "target Python, as 3.6",
    "cuda": "version, as 10.1",
    "os": "Linux or Darwin",
}


_WITH = "with --"
"""How the help of an option begins that does nothing without another one."""


class TypedCommand(invoke.Task[Any]):
    """A command as invoke knows it; nothing changes it after its module was read."""

    def __init__(self, body: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 invoke's
        """Take what invoke's decorator was given."""
        super().__init__(body, **options)
        # Read at once: invoke takes out of `help` what it has shown.
        heads = ((name, text.partition(": ")[0]) for name, text in self.help.items())
        self.needs = {
            name: head.removeprefix(_WITH) for name, head in heads if head.startswith(_WITH)
        }
        """Options that do nothing without another one."""

    def __deepcopy__(self, _: object) -> Self:
        """Return the same command: invoke copies all of them, to run one."""
        return self

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 invoke's
        """Run the command, unless an option lacks the one without which it does nothing."""
        for name, needed in self.needs.items():
            if self._given(name, options) and not self._given(needed, options):
                with explained():
                    _refuse_alone(name, needed)
        return super().__call__(*arguments, **options)

    def _given(self, name: str, options: Mapping[str, object]) -> bool:
        """Say whether an option has another value than without it."""
        name = name.replace("-", "_")
        default = self.argspec(self.body).parameters[name].default
        return name in options and options[name] != default


task = partial(invoke.task, klass=TypedCommand)
"""Makes a function a command; see invoke's decorator of that name."""


@contextmanager
def explained(recipe: str = "", resume: str = "") -> Iterator[None]:
    """Turn an expected failure into its message and exit status; the only `except` of its kind.

    `recipe` is the one that the command is about, which the commands in a remedy are about as well.
    """
    # Imported here: `invoke --list` runs no command, and need not load a terminal.
    from tfwright import errors, printable
    from tfwright.terminal import console
    from tfwright.tools import disk

    try:
        disk.insist_on_working_directory()
        # What a build makes is run by others: it is never writable for all, whatever the umask.
        # umask can only be read by setting it; both bits are then added to the caller's
        # own. Its owner's bits stay clear: we read what we write.
        os.umask((os.umask(0o022) | 0o022) & 0o077)
        with console.ending_gently(), disk.explained():
            yield
            # A line without its end is still in memory.
            sys.stdout.flush()
    except errors.TfwrightError as fault:
        fault.recipe = fault.recipe or (recipe and printable.shell_word(recipe))
        # Without a stage nothing was begun, so the same command would only fail again.
        # The streams end the program where the reader of the message has gone; scripts
        # look at the status.
        with suppress(SystemExit):
            console.explain(fault, resume if fault.stage else "")
        sys.exit(fault.exit_status)
    except KeyboardInterrupt:
        with suppress(SystemExit):
            console.interrupted(resume)
        sys.exit(errors.INTERRUPTED_STATUS)


def resuming(command: str, **options: "str | bool | Sequence[str]") -> str:
    """Return a command with those of its options that were given, as a shell takes them.

    What it went without, an empty text or list or False, is left out.
    """
    from tfwright.printable import shell_word

    words = ["invoke", command]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
            continue
        for text in [value] if isinstance(value, str) else value or ():
            if text:
                words += [flag, shell_word(text)]
    return " ".join(words)


def job_of(
    recipe: str,
    *,
    until: str = "publish",
    offline: bool = False,
    jobs: int | None = None,
    complete: "Callable[[dict[str, Any]], None] | None" = None,
) -> "BuildRequest":
    """Read the recipe and the host file into a request; `complete` as for `recipes.read`."""
    from tfwright.documents import host_file
    from tfwright.pipeline.job import BuildRequest
    from tfwright.terminal import console

    return BuildRequest.of(
        recipe,
        host_file.read(),
        listener=console.Terminal(),
        offline=offline,
        jobs=jobs,
        until=until,
        complete=complete,
    )


def _refuse_alone(name: str, needed: str) -> NoReturn:
    from tfwright.errors import RecipeError

    raise RecipeError(
        f"--{name} does nothing without --{needed}",
        remedy=f"Add --{needed}, or leave out --{name}.",
    )


def one_of(**options: object) -> None:
    """Refuse two options of which only one would be followed; raises RecipeError."""
    from tfwright.errors import RecipeError

    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if len(given) > 1:
        raise RecipeError(
            f"{' and '.join(given)} do not go together", remedy="Give one of them at a time."
        )


def file_of(given: str, command: str) -> Path:
    """Return the path that a command was given.

    Invoke takes an unknown option for the value of a positional argument. That is refused here, as
    is an empty path, which would be the working directory.
    """
    from tfwright.errors import RecipeError

    if not given:
        raise RecipeError(
            f"'invoke {command}' was not given a file",
            remedy=f"Name one; 'invoke {command} --help' shows how.",
        )
    if given.startswith("-") and given != "-":
        raise RecipeError(
            f"'{given}' is an unknown option of 'invoke {command}'",
            remedy=f"'invoke {command} --help' lists its options; a file of that name is "
            f"./{given}.",
        )
    return Path(given)
