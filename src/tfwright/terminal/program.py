"""What invoke itself prints: the grouped list of commands, help, and the answer to a mistyped one.

Users start invoke's own program, so a subclass of it would never run. invoke imports tasks.py
before it parses the command line; `install` replaces three of its methods at that moment.
"""

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tfwright.documents import spelling
from tfwright.terminal import streams, text
from tfwright.terminal.text import Column, Styled

if TYPE_CHECKING:
    from invoke import Collection, Task
    from invoke.program import Program

HELP = ("--help", "-h")
COMMANDS = (Column("", 0, "never"), Column("", 0))
OPTIONS = (Column("", 0, "never"), Column("", 0))
NAME = 14
"""Characters in front of a command's sentence."""
OTHERS = "other"


def install(
    groups: Mapping[str, Sequence[str]], replaced: Mapping[str, str]
) -> None:
    """Make invoke list commands in `groups`, and answer the words in `replaced` with new ones."""
    from invoke.exceptions import ParseError  # noqa: PLC0415 a typed command has loaded it already
    from invoke.program import Program  # noqa: PLC0415 the same

    # Before the first line is printed, and before the first file is opened.
    streams.make_safe()

    def list_flat(program: "Program") -> None:
        _show_commands(program, groups)

    def parse_tasks(program: "Program") -> None:
        _refuse_unknown(program, replaced)
        _lead_to_help(program)
        _name_optional_words(program)
        command = next(iter(program.core.unparsed), "")
        whole, program.collection = program.collection, _typed(program)
        try:
            parse(program)
        except ParseError as fault:
            # invoke would print what was typed as it is, escape sequences included.
            _refuse(str(fault), command)
        except ValueError as fault:
            # An option that takes a number got something else; int() quotes it at the end.
            typed = str(fault).rpartition(": ")[2]
            _refuse(f"{typed} is not a whole number", command)
        finally:
            program.collection = whole

    # Kept, since the replacement ends by calling it.
    parse = Program.parse_tasks
    replacements = {
        "list_flat": list_flat,
        "parse_tasks": parse_tasks,
        "print_task_help": _show_help,
    }
    for name, function in replacements.items():
        setattr(Program, name, function)


def _refuse(what: str, command: str) -> NoReturn:
    text.tell(what, text.BAD)
    text.tell(f"  do:     'invoke {command} --help' lists its options.")
    sys.exit(2)


def _show_commands(
    program: "Program", groups: Mapping[str, Sequence[str]]
) -> None:
    """Print each group with its commands; what no group names comes last."""
    tasks = program.collection.tasks
    named = {name for names in groups.values() for name in names}
    # A command that was left out of the groups must still be found.
    others = sorted(set(tasks) - named)
    for group, names in {**groups, OTHERS: others}.items():
        known = [name for name in names if name in tasks]
        if not known:
            continue
        text.heading(group)
        for name in known:
            text.paragraph(f"  {name}", _sentence(tasks[name]), indent=NAME)
        text.line()
    text.line(
        Styled("'invoke COMMAND --help' shows a command's options", text.DETAIL)
    )


def _sentence(task: Any) -> str:  # noqa: ANN401 invoke's tasks have no types
    """Return the first paragraph of a command's docstring as one line."""
    first = (inspect.getdoc(task) or "").partition("\n\n")[0]
    return " ".join(first.split())


def _lead_to_help(program: "Program") -> None:
    """Take --help as a question wherever it stands, also where a command expects a file."""
    words = list(program.core.unparsed)
    # What stands behind "--" belongs to a program that the command starts.
    options = words[: words.index("--")] if "--" in words else words
    asked = any(word in HELP for word in options)
    if words and asked and words[0] in program.collection.tasks:
        program.core.unparsed[:] = []
        program.args["help"].value = words[0]


def _name_optional_words(program: "Program") -> None:
    """Put the option's name before a word that a command takes, and can do without.

    invoke demands every positional argument that has no default, and takes none that has one.
    """
    words = program.core.unparsed
    command, *rest = words or [""]
    if not rest or rest[0].startswith("-"):
        return
    # An alias has no arguments of its own here; no command with such a word has one.
    if task := program.collection.tasks.get(command):
        words[1:1] = _optional_word(task)


def _optional_word(task: "Task[Any]") -> list[str]:
    """Return the option for the word that a command can do without, if there is such a word."""
    return [
        f"--{argument.name}"
        for argument in task.get_arguments()
        if argument.positional and argument.value is not None
    ][:1]


def _refuse_unknown(program: "Program", replaced: Mapping[str, str]) -> None:
    """End with the nearest command if the first word is none; exit status 2."""
    words = list(program.core.unparsed)
    word = words[0] if words else ""
    known = [*program.collection.task_names, *_aliases(program)]
    # invoke itself answers to options, and shows the list where no command is named.
    if not word or word.startswith("-") or word in known:
        return
    if word in replaced:
        remedy = f"Use '{replaced[word]}' instead."
    else:
        near = spelling.nearest(word, known)
        remedy = f"Did you mean 'invoke {near}'? " if near else ""
        remedy += "'invoke --list' lists all commands."
    text.tell(f"Unknown command '{word}'.", text.BAD)
    text.tell(f"  do:     {remedy}")
    sys.exit(2)


def _typed(program: "Program") -> "Collection":
    """Return the commands that were typed: invoke copies the options of all it is given, twice."""
    words = {*program.core.unparsed, program.args["help"].value}
    made = type(program.collection)()
    for name, aliases in program.collection.task_names.items():
        if not words.isdisjoint((name, *aliases)):
            made.add_task(program.collection[name], name)
    return made


def _aliases(program: "Program") -> list[str]:
    return [
        alias
        for names in program.collection.task_names.values()
        for alias in names
    ]


def _flags(flags: str, context: Any) -> str:  # noqa: ANN401 invoke's contexts have no types
    """Return an option's flags with its value; invoke shows none where it may be repeated."""
    argument = context.flags.get(flags.rpartition(" ")[2])
    repeated = argument is not None and argument.kind is list
    return f"{flags}=STRING ..." if repeated else flags


def _show_help(program: "Program", name: str) -> None:
    """Print what a command does, and its options."""
    context = program.parser.contexts[name]
    task = program.collection[name]
    positional = "".join(
        f" {argument.name.upper()}" for argument in context.positional_args
    )
    text.line(
        Styled("Usage: ", text.HEADING), f"invoke {name}{positional} [options]"
    )
    text.line()
    for paragraph in (inspect.getdoc(task) or "").split("\n\n"):
        text.paragraph("", " ".join(paragraph.split()), indent=2)
    options = [
        (_flags(flags, context), meaning)
        for flags, meaning in context.help_tuples()
    ]
    if options:
        _show_options(options)


def _show_options(options: Sequence[tuple[str, str | None]]) -> None:
    text.line()
    text.heading("Options")
    # The meanings stand below each other, behind the longest flags.
    indent = 4 + max(len(flags) for flags, _ in options)
    for flags, meaning in options:
        text.paragraph(f"  {flags}", meaning or "", indent=indent)
