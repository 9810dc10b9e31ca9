"""What invoke itself prints: the grouped list of commands, help, and answers to mistyped words.

Users start invoke's own program, so a subclass of it would never run. invoke imports tasks.py
before it parses the command line; `install` replaces four of its methods at that moment.
"""

import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tfwright import __version__, printable
from tfwright.terminal import streams, text

if TYPE_CHECKING:
    from invoke.exceptions import ParseError
    from invoke.program import Program

HELP = ("--help", "-h")
JSON = "--json"
NAME = 14
"""Characters in front of a command's sentence."""
VALUES = {str: "=STRING", int: "=INTEGER", float: "=NUMBER", list: "=STRING ..."}
LOGS = "tfwright keeps the output of all programs in build_out/NAME/logs."
REFUSED = {
    "command-timeout": "Leave it out; the recipe's [compile] table has the limits of a build.",
    "dry": "Use 'invoke plan', or 'invoke nightly --dry-run'; other commands do what they say.",
    "echo": "Use 'invoke plan': it shows all commands of a build.",
    "hide": f"Send the output elsewhere with the shell. {LOGS}",
    "prompt-for-sudo-password": "Leave it out: tfwright never needs root.",
    "pty": f"Leave it out. {LOGS}",
    "warn-only": "Leave it out; after a failure tfwright says how to go on.",
}
"""Options of invoke that act on what commands run through it, and tfwright's never do."""
KEPT = {
    "--list": "list the commands",
    "--version": "print the version",
    "--print-completion-script SHELL": "print what bash, zsh or fish needs to complete words",
}
"""Options that go without a command."""
SYNONYMS = {
    "--arch": "--machine",
    "--name": "--recipe",
    "--platform": "--os",
    "--system": "--os",
    "--tensorflow": "--release",
    "--version": "--release",
}
"""What people type for an option of another name, where a command has that one."""


def install(
    groups: Mapping[str, Sequence[str]],
    replaced: Mapping[str, str],
    started_as: str,
    pages: str = "docs/",
) -> None:
    """Make invoke list commands in `groups`, and answer the words in `replaced` with new ones.

    Messages name the program as it was started, and the documentation by the path `pages`.
    """
    import invoke.program
    from invoke.exceptions import ParseError
    from invoke.program import Program

    from tfwright.terminal import completion

    printable.name_program(started_as, list(itertools.chain(*groups.values())), pages)
    # Before the first line is printed, and before the first file is opened.
    streams.make_safe()
    # Kept, since the replacement ends by calling it.
    parse = Program.parse_tasks

    def parse_tasks(program: "Program") -> None:
        # invoke turned it off when it was started; what commands import is compiled once.
        sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
        line = CommandLine(program)
        line.take_help_as_option()
        line.refuse_unknown(replaced)
        line.accept_help_anywhere()
        line.refuse_without_value()
        line.name_optional_word()
        whole = program.collection
        # invoke copies the options of all commands that it is given, twice.
        program.collection = type(whole)()
        words = {*line.words, program.args["help"].value}
        for name, aliases in whole.task_names.items():
            if not words.isdisjoint((name, *aliases)):
                program.collection.add_task(whole[name], name)
        try:
            parse(program)
        except ParseError as fault:
            # invoke would print what was typed as it is, escape sequences included.
            line.refuse(*line.fault_and_remedy(fault))
        except ValueError as fault:
            # An option that takes a number got something else; int() quotes it at the end.
            typed = str(fault).rpartition(": ")[2]
            line.refuse(f"{typed} is not a whole number")
        finally:
            program.collection = whole
        for name, remedy in REFUSED.items():
            if program.args[name].value:
                line.refuse(f"tfwright's commands do not follow invoke's option --{name}", remedy)

    replacements = {
        "list_flat": lambda program: _show_commands(program.collection.tasks, groups),
        "parse_tasks": parse_tasks,
        "print_help": lambda program: _show_program(program.collection.tasks, groups),
        "print_task_help": _show_help,
    }
    for name, function in replacements.items():
        setattr(Program, name, function)
    setattr(invoke.program, "complete", completion.complete)  # noqa: B010 with fewer types


class CommandLine:
    """What was typed behind invoke's own options, before invoke reads it."""

    def __init__(self, program: "Program") -> None:
        """Read the first word."""
        self.program = program
        self.words: list[str] = program.core.unparsed
        """invoke's own list: what is changed here is what it reads."""
        self.tasks = program.collection.tasks

    @property
    def command(self) -> str:
        """The command; empty where none is named."""
        return next(iter(self.words), "")

    @property
    def arguments(self) -> list[Any]:
        """The options and words that the command takes."""
        # An alias has none of its own here; no command with such words has one.
        task = self.tasks.get(self.command)
        return task.get_arguments() if task else []

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """End as a command does that was given something wrong."""
        from tfwright.errors import RecipeError
        from tfwright.terminal import answer, console

        fault = RecipeError(what, remedy=remedy or self.default_remedy(self.command))
        console.show_error(fault)
        if JSON in sys.argv:
            answer.print_json(answer.fault_data(fault))
        sys.exit(fault.exit_status)

    def default_remedy(self, command: str) -> str:
        """Return the remedy of last resort."""
        # Without a command, what was typed is an option that invoke itself would have to know.
        if not command:
            return "'invoke --list' lists all commands."
        return f"'invoke {command} --help' lists its options."

    def take_help_as_option(self) -> None:
        """Answer `help` as --list and `help COMMAND` as --help, as git and cargo do."""
        if self.command != "help":
            return
        # A mistyped command behind it is answered like any other.
        self.words.pop(0)
        if not self.words:
            # Its value would be taken for a group of commands.
            self.program.args["list"].set_value(True, cast=False)
        elif self.command in self.tasks:
            self.words.append(HELP[0])

    def refuse_unknown(self, replaced: Mapping[str, str]) -> None:
        """End with the nearest command if the first word is none; exit status 2."""
        word = self.command
        names = self.program.collection.task_names
        known = [*names, *itertools.chain(*names.values())]
        # invoke itself answers to options, and shows the list where no command is named.
        if not word or word.startswith("-") or word in known:
            return
        near = printable.nearest(word, known)
        suggestion = f"Did you mean 'invoke {near}'? " if near else ""
        remedy = f"{suggestion}'invoke --list' lists all commands."
        if word in replaced:
            remedy = f"Use '{replaced[word]}' instead."
        self.refuse(f"Unknown command '{word}'", remedy)

    def accept_help_anywhere(self) -> None:
        """Take --help as a question wherever it stands, also where a command expects a file."""
        # What stands behind "--" belongs to a program that the command starts.
        options = itertools.takewhile(lambda word: word != "--", self.words)
        if self.command in self.tasks and any(word in HELP for word in options):
            self.program.args["help"].value = self.command
            self.words.clear()

    def refuse_without_value(self) -> None:
        """Refuse an option that may be repeated and has no value: invoke would leave it out."""
        flags = _flags_of(arg for arg in self.arguments if arg.kind is list)
        for word, value in itertools.pairwise([*self.words, ""]):
            if word in flags and (not value or value.startswith("-")):
                self.refuse(f"{word} of 'invoke {self.command}' needs a value")

    def name_optional_word(self) -> None:
        """Put the option's name before a word that a command takes, and can do without.

        invoke demands every positional argument that has no default, and takes none that has one.
        """
        optional = [arg.name for arg in self.arguments if arg.positional and arg.value is not None]
        valued = _flags_of(arg for arg in self.arguments if arg.takes_value)
        for place, word in enumerate(self.words[1:] if optional else (), 1):
            # What stands behind an option that takes a value is that value.
            if not word.startswith("-") and self.words[place - 1] not in valued:
                self.words.insert(place, f"--{optional[0]}")
                return

    def fault_and_remedy(self, fault: "ParseError") -> tuple[str, str]:
        """Return what is wrong with a command line and what to do, from invoke's own message."""
        message = str(fault)
        context: Any = fault.context
        command = (context.name if context else None) or ""
        remedy = self.default_remedy(command)
        if found := re.fullmatch(r"No idea what (.*) is!", message, re.DOTALL):
            import ast

            word = ast.literal_eval(found[1])
            # invoke takes an unknown option for the word that a command needs.
            taken = [str(arg.value) for arg in context.positional_args]
            word = next((one for one in taken if one.startswith("--")), word)
            if word.startswith("-"):
                near = SYNONYMS.get(word, "")
                if near not in context.flags:
                    # Without the dashes, which make any two short options alike.
                    bare = {flag.lstrip("-"): flag for flag in context.flags}
                    near = bare.get(printable.nearest(word.lstrip("-"), bare), "")
                suggestion = f"Did you mean {near}? " if near else ""
                whose = f" of 'invoke {command}'" if command else ""
                return f"Unknown option '{word}'{whose}", suggestion + remedy
            # A shell writes several files for a pattern.
            if any(arg.kind is not list for arg in context.positional_args):
                remedy = f"Write '{_usage(context)}'. {remedy}"
            elif "--recipe" in context.flags:
                from tfwright.documents import recipe as recipes

                if near := printable.nearest(word, recipes.names()):
                    remedy = f"Did you mean 'invoke {command} --recipe {near}'? {remedy}"
            return f"'invoke {command}' does not take the word '{word}'", remedy
        if found := re.match(r"Flag <Argument: ([^ >]+).*> (needed|doesn't)", message):
            flag = f"--{found[1].replace('_', '-')}"
            if found[2] != "needed":
                return f"{flag} of 'invoke {command}' takes no value", remedy
            meaning = f"{flag}: {context.args[found[1]].help}. " if command else ""
            return f"{flag} of 'invoke {command}' needs a value", meaning + remedy
        if "did not receive required positional arguments" in message:
            lacking = [word.name.upper() for word in context.missing_positional_args]
            return (
                f"'invoke {command}' needs {' and '.join(lacking)}",
                f"Write '{_usage(context)}'; 'invoke {command} --help' describes it.",
            )
        return message, remedy


def _flags_of(arguments: Iterable[Any]) -> set[str]:
    """Return how options are typed, long and short."""
    names = [name.replace("_", "-") for argument in arguments for name in argument.names]
    return {f"--{name}" if len(name) > 1 else f"-{name}" for name in names}


def _usage(context: Any) -> str:  # noqa: ANN401 no types
    """Return a command with the words that it takes; those in brackets can be left out."""
    words = ["invoke", str(context.name)]
    for argument in context.positional_args:
        word = argument.name.upper()
        # invoke counts options that may be repeated among the words.
        if argument.kind is not list:
            words.append(word if argument.default is None else f"[{word}]")
    return " ".join(words)


def _show_commands(tasks: Mapping[str, Any], groups: Mapping[str, Sequence[str]]) -> None:
    """Print each group with its commands; what no group names comes last."""
    named = {name for names in groups.values() for name in names}
    # A command that was left out of the groups must still be found.
    for group, names in {**groups, "other": sorted(set(tasks) - named)}.items():
        if known := [name for name in names if name in tasks]:
            text.line(text.bold(group))
            for name in known:
                text.paragraph(f"  {name}", _paragraphs(tasks[name])[0], indent=NAME)
            text.line()
    shown = "'invoke COMMAND --help' shows a command's options"
    text.line(text.detail(f"{shown}; this is tfwright {__version__}"))


def _show_program(tasks: Mapping[str, Any], groups: Mapping[str, Sequence[str]]) -> None:
    """Print the commands, and the options that go without one."""
    text.line(text.bold("Usage: "), "invoke COMMAND [options]")
    text.line()
    _show_options(list(KEPT.items()))
    text.line()
    _show_commands(tasks, groups)


def _paragraphs(task: Any) -> list[str]:  # noqa: ANN401 invoke's tasks have no types
    """Return the paragraphs of a command's docstring, each as one line."""
    return [" ".join(part.split()) for part in (inspect.getdoc(task) or "").split("\n\n")]


def _show_help(program: "Program", name: str) -> None:
    """Print what a command does, and its options."""
    context = program.parser.contexts[name]
    text.line(text.bold("Usage: "), f"{_usage(context)} [options]")
    text.line()
    for paragraph in _paragraphs(program.collection[name]):
        text.paragraph("", paragraph, indent=2)
    options = []
    for argument in context.args.values():
        flags = ", ".join(sorted(_flags_of([argument]), key=len))
        if argument.default is True:
            flags = flags.replace("--", "--[no-]")
        value = VALUES.get(argument.kind, "")
        options.append((f"{flags}{value}", argument.help or ""))
    if options:
        text.heading("Options")
        _show_options(options)


def _show_options(options: Sequence[tuple[str, str]]) -> None:
    """Print options, their meanings below each other, behind the longest flags."""
    indent = 4 + max(len(flags) for flags, _ in options)
    for flags, meaning in options:
        text.paragraph(f"  {flags}", meaning, indent=indent)
