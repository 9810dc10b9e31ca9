"""Turns the root error of a log into a refinement for the catalogue, or into a report of it.

A refinement comes with a fixture that tests it. Its pattern keeps the words of the message. What
differs from one build to the next becomes a gap: paths, numbers, versions, names in quotes.
"""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tfwright import __version__
from tfwright.diagnosis.families import required
from tfwright.diagnosis.log import message_of
from tfwright.diagnosis.reader import Diagnosis, Excerpt, Match
from tfwright.errors import RecipeError
from tfwright.tools import files
from tfwright.tools.redaction import redacted

MARK = ">>> "
"""What stands before the winning line of a fixture."""
_LONGEST = 200
"""Characters of the message that a pattern is made of."""
_LONGEST_WORD = 20
"""Letters of one word of a name."""
_GAPS = (
    (re.compile(r"[\w.@+-]*(?:/|[A-Za-z]:\\)[^\s:'\"`,]+"), r"\S{1,300}"),
    (re.compile(r"[\w.-]+\.(?:cc|cpp|cu|c|h|hpp|inc|o|py|bzl|so[\d.]*)\b"), r"\S{1,300}"),
    (re.compile(r"0x[0-9a-f]+"), r"0x\w{1,16}"),
    (
        re.compile(r"(?<=['\"`\u2018])[^'\"`\u2018\u2019]{1,200}(?=['\"\u2019])"),
        r"[^'\"\u2019]{1,200}",
    ),
    (re.compile(r"\d+(?:\.\d+)+"), r"[\d.]{1,20}"),
    (re.compile(r"\d+"), r"\d{1,9}"),
)
"""What differs between builds, and the expression that stands for it."""


@dataclass(frozen=True)
class Lesson:
    """A refinement that a log teaches."""

    name: str
    entry: str
    """The refinement, as TOML for the catalogue; its cause and remedy are left to the author.

    Empty if the catalogue has one that describes this failure; `name` is that one's.
    """
    fixture: str
    """The lines around the root; the root line begins with `MARK`."""


def lesson(found: Diagnosis, log: str) -> Lesson:
    """Return what the root error of a log teaches.

    Raises RecipeError if nothing in the log complains, if the log does not hold what the tool that
    failed said, or if that has no words to be known by.
    """
    first = found.first
    if first is None:
        raise RecipeError(
            f"No line of {log} reports an error",
            remedy="Name the log of a failed build; Bazel writes to standard error.",
        )
    match = next((match for match in found.matches if match.explains), None)
    if match and match.entry.rank in {"wrapper", "summary"}:
        raise RecipeError(
            f"{log} does not hold what the tool that failed printed, only that it failed (line "
            f"{first.line}: {first.what[:_LONGEST]})",
            remedy="Keep the whole output of a build with --verbose_failures.",
        )
    shown = [*first.before, MARK + first.what, *first.lines[1:]]
    fixture = redacted("\n".join(shown)) + "\n"
    if match and match.entry.sample:
        return Lesson(match.entry.id, "", fixture)
    message = message_of(first.what.removeprefix("… "))[:_LONGEST].strip()
    made = pattern(message)
    if not required(made):
        raise RecipeError(
            f"The root error of {log} has no words that a pattern could look for: {message}",
            remedy="Write the entry by hand; docs/diagnosis.md says how.",
        )
    name = _name(match, message)
    return Lesson(name, _entry(name, made, message, match), fixture)


def _entry(name: str, made: str, message: str, match: Match | None) -> str:
    """Return a refinement as TOML."""
    # A literal string of TOML, which shows the pattern as it is, ends at three quotes.
    given = f"'''{made}'''"
    if "'''" in made or made.endswith("'"):
        given = _quoted(made)
    return (
        "[[failure]]\n"
        f'id = "{name}"\n'
        f'stage = "{match.entry.stage if match else "any"}"\n'
        'retry = "no"\n'
        f"pattern = {given}\n"
        f"sample = {_quoted(message.expandtabs(1))}\n"
        'cause = "TODO: say why, in one sentence."\n'
        'remedy = "TODO: say what to type or to change."\n'
        'sources = ["TODO: owner/repository#number, or a URL"]\n'
    )


def write(found: Diagnosis, log: str, folder: Path) -> tuple[Lesson, Path]:
    """Write the fixture of a lesson below `folder`, and return the lesson and the file.

    A fixture of the same name that another log gave is kept.
    """
    learned = lesson(found, log)
    path = folder / f"{learned.name}.log"
    number = 2
    while path.exists() and path.read_text("utf-8", "replace") != learned.fixture:
        path = folder / f"{learned.name}-{number}.log"
        number += 1
    files.write(path, learned.fixture)
    return learned, path


def pattern(message: str) -> str:
    """Return an expression that matches the message, and the same message of other builds."""
    # Private-use letters hold the places of the gaps while the words between them are escaped.
    for number, (gap, _) in enumerate(_GAPS):
        message = gap.sub(chr(0xE000 + number), message)
    escaped = re.sub(r"\\([ #&~'\"-])", r"\1", re.escape(message))
    # A question mark may stand for a character that cannot be shown.
    escaped = escaped.replace(r"\?", ".").replace("\\\t", r"\s")
    for number, (_, expression) in enumerate(_GAPS):
        escaped = escaped.replace(chr(0xE000 + number), expression)
    return escaped


def _name(match: Match | None, message: str) -> str:
    """Return the family of a message and a few words that it does not share with it."""
    family = match.entry.id if match else "general-error"
    # Paths hold the names of people.
    for gap, _ in _GAPS:
        message = gap.sub(" ", message)
    words = [word[:_LONGEST_WORD] for word in re.findall(r"[a-z]{3,}", message.lower())]
    own = [word for word in dict.fromkeys(words) if word not in family.split("-")]
    return "-".join((family, *(own[-4:] or ["line"])))


def _quoted(text: str) -> str:
    """Return a text as a TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def report(found: Diagnosis, log: str, folder: Path) -> Path | None:
    """Write the report of an unknown error below `folder`.

    Returns None if the error is known, or if the log shows no error.
    """
    if found.understood or found.first is None:
        return None
    name = "standard input" if log == "-" else Path(log).name
    path = folder / f"{name.replace(' ', '-')}.md"
    files.write(path, issue(found.first, name))
    return path


def issue(excerpt: Excerpt, log: str) -> str:
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
        f"tfwright {__version__}, Python {platform.python_version()}, {platform.platform()}, "
        + " ".join(platform.libc_ver()),
    ]
    return redacted("\n\n".join(parts)) + "\n"
