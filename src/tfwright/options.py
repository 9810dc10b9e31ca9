"""What the commands share: reading their arguments, and the one place where errors end."""

import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import invoke
from invoke.parser import Argument

from tfwright.terminal.answer import Answer, fault_data, print_json

if TYPE_CHECKING:
    from tfwright.errors import TfwrightError
    from tfwright.pipeline.job import RecipeJob

# What options of several commands mean, so that each reads the same in every --help.
RECIPE = {"recipe": "name of a recipe, or path of one that ends in .toml"}
JSON = {"json": "print JSON, for machines"}
UNTIL = {"until": "stop after this stage"}
OFFLINE = {"offline": "use only what is on this host, without a network"}
WHEEL = {"wheel": "path of a .whl file, of any TensorFlow"}
MACHINE = {
    "gpu": "a name such as 'RTX 3090', a compute capability such as sm_86, or none: the CPU alone",
    "python": "target Python, such as 3.6",
    "glibc": "the oldest glibc that the wheel must run on; none for a system with musl",
    "macos": "the oldest macOS that the wheel must run on, such as 12.6; implies --os Darwin",
    "cuda": "version, such as 10.1",
    "os": "Linux, Darwin or Windows",
    "machine": "x86_64, aarch64 or arm64",
    "cpu": "newest instruction set of the machine: sse4.2, avx or avx2 (the CPU alone: --gpu none)",
    "driver": "version of NVIDIA's driver, such as 535",
    "host": "a file with the output of 'invoke doctor --json' on another host",
}
"""The options that describe a machine; see `CommandTask.argspec`."""


SHORT = {"recipe": "r", "until": "u", "jobs": "j", "output": "o", "dry-run": "n"}
"""The letters of options; each means the same for every command, and there are no others."""


class CommandTask(invoke.Task[Any]):
    """A command as invoke knows it; what its function returns or yields is shown."""

    def __init__(
        self,
        body: Callable[..., Any],
        *,
        help: Mapping[str, str],  # noqa: A002 invoke's name
        needs: Mapping[str, str] | None = None,
        resumes: Sequence[str] = (),
        **options: Any,  # noqa: ANN401 invoke's
    ) -> None:
        """Take what invoke's decorator was given.

        `needs` names for an option the one without which it does nothing, `resumes` the options
        of the command that goes on with what this one began.
        """
        self.needs, self.resumes = needs or {}, resumes
        self.meanings = dict(help)
        for name, needed in self.needs.items():
            self.meanings[name] = f"with --{needed}: {help[name]}"
        super().__init__(body, auto_shortflags=False, **options)
        parameters = self.argspec(body).parameters
        self.defaults = {name: parameter.default for name, parameter in parameters.items()}

    def argspec(self, body: Callable[..., Any]) -> inspect.Signature:
        """Return the options of a function; one named `machine` stands for those of MACHINE."""
        found = []
        for parameter in super().argspec(body).parameters.values():
            if parameter.name == "machine":
                found += [parameter.replace(name=name, default="") for name in MACHINE]
            else:
                found.append(parameter)
        return inspect.Signature(found)

    def __deepcopy__(self, _: object) -> Self:
        """Return the same command: invoke copies all of them, to run one."""
        return self

    def arg_opts(self, name: str, default: str, taken_names: set[str]) -> dict[str, Any]:
        """Return what invoke asks of an option, with its letter."""
        asked = super().arg_opts(name, default, taken_names)
        asked["names"] += [SHORT[flag] for flag in asked["names"] if flag in SHORT]
        return asked

    def get_arguments(self, *positional: Any, **named: Any) -> list[Argument]:  # noqa: ANN401 invoke's
        """Return the options; most functions need not know of --json."""
        # Each time: invoke takes out of `help` what it has shown.
        self.help = dict(self.meanings)
        meaning = "" if "json" in self.defaults else self.help.pop("json", "")
        arguments = super().get_arguments(*positional, **named)
        if meaning:
            arguments.append(Argument("json", kind=bool, default=False, help=meaning))
        return arguments

    def __call__(self, context: invoke.Context, **options: Any) -> None:  # noqa: ANN401 invoke's
        """Run the command and show its answers; end with the status of the last one."""
        as_json = options.get("json", False)
        if "json" not in self.defaults:
            options.pop("json", None)
        recipe = options.get("recipe") or ""
        if not isinstance(recipe, str):
            recipe = recipe[0] if len(recipe) == 1 else ""
        shown: list[Answer[Any]] = []
        # A second document would make both of them unreadable.
        with reporting_failures(
            recipe, self.resume(options), as_json=lambda: as_json and not shown
        ):
            self._check_options(context, options)
            if "machine" in inspect.signature(self.body).parameters:
                options["machine"] = {name: options.pop(name) for name in MACHINE}
            found = self.body(context, **options)
            for answer in found if isinstance(found, Iterator) else (found,):
                if answer is not None:
                    answer.show(as_json=as_json)
                    shown.append(answer)
        if as_json and not shown:
            print_json({})
        if shown and shown[-1].status:
            sys.exit(shown[-1].status)

    def _check_options(self, context: invoke.Context, options: Mapping[str, Any]) -> None:
        """Refuse what would not be followed; raises RecipeError."""
        from tfwright.errors import RecipeError

        # By the environment or a file of invoke's; the option --dry is refused before.
        if context.config.run.dry:
            raise RecipeError(
                "invoke's dry mode is on, which tfwright's commands do not have",
                remedy="Unset INVOKE_RUN_DRY, and 'run.dry' in invoke's configuration; "
                "'invoke plan --recipe NAME' shows what a build would do.",
            )
        names = {name.replace("_", "-") for name in self._given_options(options)}
        for name, needed in self.needs.items():
            if name in names and needed not in names:
                raise RecipeError(
                    f"--{name} does nothing without --{needed}",
                    remedy=f"Add --{needed}, or leave out --{name}.",
                )

    def _given_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that have another value than by default."""
        return {
            name: value
            for name, value in options.items()
            if value != self.defaults.get(name) and value != []
        }

    def resume(self, options: Mapping[str, Any]) -> str:
        """Return the command that goes on where this one ended; empty where none does."""
        values = self._given_options(options)
        resumed = {
            f"no-{name}" if value is False else name: value is False or value
            for name, value in values.items()
            if name in self.resumes
        }
        return resuming(self.name, **resumed) if self.resumes else ""


task = partial(invoke.task, klass=CommandTask)
"""Makes a function a command; see invoke's decorator of that name, and `CommandTask`."""


@contextmanager
def reporting_failures(
    recipe: str = "", resume: str = "", *, as_json: Callable[[], bool] = bool
) -> Iterator[None]:
    """Turn an expected failure into its message and exit status; the only `except` of its kind.

    `recipe` is the one that the command is about, which the commands in a remedy are about as well.
    The message is for people; where `as_json` says so, standard output gets it for machines.
    """
    # Imported here: `invoke --list` runs no command, and need not load a terminal.
    from tfwright import errors
    from tfwright.terminal import console
    from tfwright.tools import disk

    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        disk.check_working_directory()
        # What a build makes is run by others: it is never writable for all, whatever the umask.
        # umask can only be read by setting it; both bits are then added to the caller's
        # own. Its owner's bits stay clear: we read what we write.
        os.umask((os.umask(0o022) | 0o022) & 0o077)
        with console.sigterm_as_interrupt(), disk.as_host_error():
            yield
            # A line without its end is still in memory.
            sys.stdout.flush()
    except errors.TfwrightError as fault:
        # The streams end the program where the reader of the message has gone; scripts
        # look at the status.
        with suppress(SystemExit):
            show_error(fault, recipe, resume, as_json=as_json())
        sys.exit(fault.exit_status)
    except KeyboardInterrupt:
        with suppress(SystemExit):
            console.show_interrupted(resume)
            if as_json():
                stopped = {"what": "Stopped", "resume": resume}
                print_json(stopped | {"exit_status": errors.INTERRUPTED_STATUS})
        sys.exit(errors.INTERRUPTED_STATUS)


def show_error(fault: "TfwrightError", recipe: str, resume: str, *, as_json: bool = False) -> None:
    """Show an error with what is known of its cause; `resume` goes on where a stage failed."""
    from tfwright.diagnosis import page
    from tfwright.printable import shell_word
    from tfwright.terminal import console

    fault.recipe = fault.recipe or (recipe and shell_word(recipe))
    # Without a stage nothing was begun, so the same command would only fail again.
    resume = resume if fault.stage and not fault.lasting else ""
    console.show_error(fault, resume, page.tell_cause)
    if as_json:
        print_json(fault_data(fault, resume))


def resuming(command: str, **options: "str | bool | Sequence[str]") -> str:
    """Return a command with those of its options that were given, as a shell takes them.

    What it went without, an empty text or list or False, is left out.
    """
    from tfwright.printable import program, shell_word

    words = [program(), command]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
            continue
        for text in [value] if isinstance(value, str) else value or ():
            if text:
                words += [flag, shell_word(text)]
    return " ".join(words)


def job_of(recipe: str, **options: Any) -> "RecipeJob":  # noqa: ANN401 see RecipeJob.of
    """Read the recipe and the host file into a job; the options are those of `RecipeJob.of`."""
    from tfwright.documents import host_file
    from tfwright.pipeline.job import RecipeJob
    from tfwright.terminal import console

    return RecipeJob.of(recipe, host_file.read(), listener=console.Terminal(), **options)


def check_exclusive(**options: object) -> None:
    """Refuse two options of which only one would be followed; raises RecipeError."""
    from tfwright.errors import RecipeError

    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if len(flags) > 1:
        raise RecipeError(
            f"{' and '.join(flags)} do not go together", remedy="Give one of them at a time."
        )


def required_file(argument: str, command: str) -> Path:
    """Return the path that a command was given.

    Invoke takes an unknown option for the value of a positional argument. That is refused here, as
    is an empty path, which would be the working directory.
    """
    from tfwright.errors import RecipeError

    if not argument:
        raise RecipeError(
            f"'invoke {command}' needs a file",
            remedy=f"Name one; 'invoke {command} --help' shows how.",
        )
    if argument.startswith("-") and argument != "-":
        raise RecipeError(
            f"'{argument}' is an unknown option of 'invoke {command}'",
            remedy=f"'invoke {command} --help' lists its options; a file of that name is "
            f"./{argument}.",
        )
    return Path(argument)
