"""What invoke itself prints: the grouped list of commands, help, and answers to mistyped words.

Users start invoke's own program, so a subclass of it would never run. invoke imports tasks.py
before it parses the command line; `install` replaces three of its methods at that moment.
"""

import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tfwright.documents import spelling
from tfwright.terminal import streams, text
from tfwright.terminal.text import Column, Styled

if TYPE_CHECKING:
    from invoke import Collection
    from invoke.exceptions import ParseError
    from invoke.program import Program

HELP = ("--help", "-h")
OPTIONS = (Column("", 0, "never"), Column("", 0))
NAME = 14
"""Characters in front of a command's sentence."""
OTHERS = "other"
COMMAND_HELP = "'invoke COMMAND --help' shows a command's options"


def install(groups: Mapping[str, Sequence[str]], replaced: Mapping[str, str]) -> None:
    """Make invoke list commands in `groups`, and answer the words in `replaced` with new ones."""
    from invoke.exceptions import ParseError
    from invoke.program import Program

    # Before the first line is printed, and before the first file is opened.
    streams.make_safe()

    def list_flat(program: "Program") -> None:
        _show_commands(program, groups)

    def parse_tasks(program: "Program") -> None:
        _take_help_as_option(program)
        _refuse_unknown(program, replaced)
        _lead_to_help(program)
        _refuse_without_value(program)
        _name_optional_words(program)
        command = next(iter(program.core.unparsed), "")
        whole, program.collection = program.collection, _typed(program)
        try:
            parse(program)
        except ParseError as fault:
            # invoke would print what was typed as it is, escape sequences included.
            _refuse(*_explained(fault))
        except ValueError as fault:
            # An option that takes a number got something else; int() quotes it at the end.
            typed = str(fault).rpartition(": ")[2]
            _refuse(f"{typed} is not a whole number", _options_of(command))
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


def _refuse(what: str, remedy: str) -> NoReturn:
    """End as a command does that was given something wrong."""
    from tfwright.errors import RecipeError
    from tfwright.terminal import console

    fault = RecipeError(what, remedy=remedy)
    console.explain(fault)
    sys.exit(fault.exit_status)


def _options_of(command: str) -> str:
    """Return the remedy of last resort for a faulty command line."""
    # Without a command, what was typed is an option that invoke itself would have to know.
    if not command:
        return "'invoke --list' lists all commands."
    return f"'invoke {command} --help' lists its options."


def _explained(fault: "ParseError") -> tuple[str, str]:
    """Return what is wrong with a command line and what to do, from invoke's own message."""
    said = str(fault)
    context: Any = fault.context
    command = (context.name if context else None) or ""
    remedy = _options_of(command)
    if found := re.fullmatch(r"No idea what (.*) is!", said, re.DOTALL):
        import ast

        return _unknown_word(ast.literal_eval(found[1]), context)
    if found := re.match(r"Flag <Argument: ([^ >]+).*> (needed|doesn't)", said):
        flag = f"--{found[1].replace('_', '-')}"
        wants = "needs a value" if found[2] == "needed" else "takes no value"
        return f"{flag} of 'invoke {command}' {wants}", remedy
    if "did not receive required positional arguments" in said:
        lacking = [word.name.upper() for word in context.missing_positional_args]
        return (
            f"'invoke {command}' needs {' and '.join(lacking)}",
            f"Write '{_usage(context)}'; 'invoke {command} --help' describes it.",
        )
    return said, remedy


def _unknown_word(word: str, context: Any) -> tuple[str, str]:  # noqa: ANN401 no types
    """Return what is wrong with a word that no command takes, and what was meant."""
    command = context.name or ""
    remedy = _options_of(command)
    if word.startswith("-"):
        near = spelling.nearest(word, context.flags)
        meant = f"Did you mean {near}? " if near else ""
        whose = f" of 'invoke {command}'" if command else ""
        return f"Unknown option '{word}'{whose}", meant + remedy
    if "--recipe" in context.flags:
        from tfwright.documents import recipe as recipes

        if near := spelling.nearest(word, recipes.names()):
            meant = f"Did you mean 'invoke {command} --recipe {near}'? "
            remedy = meant + remedy
    return f"'invoke {command}' does not take the word '{word}'", remedy


def _show_commands(program: "Program", groups: Mapping[str, Sequence[str]]) -> None:
    """Print each group with its commands; what no group names comes last."""
    tasks = program.collection.tasks
    named = {name for names in groups.values() for name in names}
    # A command that was left out of the groups must still be found.
    others = sorted(set(tasks) - named)
    for group, names in {**groups, OTHERS: others}.items():
        known = [name for name in names if name in tasks]
        if not known:
            continue
        text.line(Styled(group, text.HEADING))
        for name in known:
            text.paragraph(f"  {name}", _sentence(tasks[name]), indent=NAME)
        text.line()
    text.line(Styled(COMMAND_HELP, text.DETAIL))


def _sentence(task: Any) -> str:  # noqa: ANN401 invoke's tasks have no types
    """Return the first paragraph of a command's docstring as one line."""
    first = (inspect.getdoc(task) or "").partition("\n\n")[0]
    return " ".join(first.split())


def _take_help_as_option(program: "Program") -> None:
    """Answer `help` as --list and `help COMMAND` as --help, as git and cargo do."""
    words = program.core.unparsed
    if words[:1] != ["help"]:
        return
    # A mistyped command behind it is answered like any other.
    words.pop(0)
    if not words:
        # Its value would be taken for a group of commands.
        program.args["list"].set_value(True, cast=False)
    elif words[0] in program.collection.tasks:
        words.append(HELP[0])


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
    # An alias has no arguments of its own here; no command with such a word has one.
    task = program.collection.tasks.get(next(iter(words), ""))
    arguments = task.get_arguments() if task else []
    optional = [
        argument for argument in arguments if argument.positional and argument.value is not None
    ]
    if not optional:
        return
    valued = _flags_of(arg for arg in arguments if arg.takes_value)
    for place, word in enumerate(words[1:], 1):
        # What stands behind an option that takes a value is that value.
        if not word.startswith("-") and words[place - 1] not in valued:
            words.insert(place, f"--{optional[0].name}")
            return


def _flags_of(arguments: Iterable[Any]) -> set[str]:
    """Return how the options are typed, long and short."""
    names = [name for argument in arguments for name in argument.names]
    return {f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}" for name in names}


def _refuse_without_value(program: "Program") -> None:
    """Refuse an option that may be repeated and has no value: invoke would leave it out."""
    words = program.core.unparsed
    task = program.collection.tasks.get(next(iter(words), ""))
    arguments = task.get_arguments() if task else []
    flags = _flags_of(arg for arg in arguments if arg.kind is list)
    for word, value in itertools.pairwise([*words, ""]):
        if word in flags and (not value or value.startswith("-")):
            what = f"{word} of 'invoke {words[0]}' needs a value"
            _refuse(what, _options_of(words[0]))


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
    _refuse(f"Unknown command '{word}'", remedy)


def _typed(program: "Program") -> "Collection":
    """Return the commands that were typed: invoke copies the options of all it is given, twice."""
    words = {*program.core.unparsed, program.args["help"].value}
    made = type(program.collection)()
    for name, aliases in program.collection.task_names.items():
        if not words.isdisjoint((name, *aliases)):
            made.add_task(program.collection[name], name)
    return made


def _aliases(program: "Program") -> list[str]:
    return [alias for names in program.collection.task_names.values() for alias in names]


def _flags(flags: str, context: Any) -> str:  # noqa: ANN401 no types
    """Return an option's flags with its value; invoke shows none where it may be repeated."""
    argument = context.flags.get(flags.rpartition(" ")[2])
    repeated = argument is not None and argument.kind is list
    return f"{flags}=STRING ..." if repeated else flags


def _usage(context: Any) -> str:  # noqa: ANN401 no types
    """Return a command with the words that it takes; those in brackets can be left out."""
    words = ["invoke", str(context.name)]
    for argument in context.positional_args:
        word = argument.name.upper()
        # invoke counts options that may be repeated among the words.
        if argument.kind is not list:
            words.append(word if argument.default is None else f"[{word}]")
    return " ".join(words)


def _show_help(program: "Program", name: str) -> None:
    """Print what a command does, and its options."""
    context = program.parser.contexts[name]
    task = program.collection[name]
    text.line(Styled("Usage: ", text.HEADING), f"{_usage(context)} [options]")
    text.line()
    for paragraph in (inspect.getdoc(task) or "").split("\n\n"):
        text.paragraph("", " ".join(paragraph.split()), indent=2)
    options = [(_flags(flags, context), meaning) for flags, meaning in context.help_tuples()]
    if options:
        _show_options(options)


def _show_options(options: Sequence[tuple[str, str | None]]) -> None:
    text.line()
    text.line(Styled("Options", text.HEADING))
    # The meanings stand below each other, behind the longest flags.
    indent = 4 + max(len(flags) for flags, _ in options)
    for flags, meaning in options:
        text.paragraph(f"  {flags}", meaning or "", indent=indent)
