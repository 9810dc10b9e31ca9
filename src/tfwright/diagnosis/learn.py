"""Turns the root error of a log into a refinement for the catalogue, with a fixture that tests it.

The pattern keeps the words of the message. What differs from one build to the next becomes a gap:
paths, numbers, versions, names in quotes.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tfwright.diagnosis import lines
from tfwright.diagnosis.reader import Diagnosis
from tfwright.errors import RecipeError
from tfwright.tools import files

MARK = ">>> "
"""What stands before the winning line of a fixture."""
_LONGEST = 200
"""Characters of the message that a pattern is made of."""
_GAPS = (
    (re.compile(r"(?:/|[A-Za-z]:\\)[^\s:'\"`,]+"), r"\S{1,300}"),
    (
        re.compile(r"[\w.-]+\.(?:cc|cpp|cu|c|h|hpp|inc|o|py|bzl|so[\d.]*)\b"),
        r"\S{1,300}",
    ),
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
    """The refinement, as TOML for the catalogue; its cause and remedy are left to the author."""
    fixture: str
    """The lines around the root; the root line begins with `MARK`."""


def lesson(found: Diagnosis, log: str) -> Lesson:
    """Return what the root error of a log teaches.

    Raises RecipeError if nothing in the log complains.
    """
    first = found.first
    if first is None:
        raise RecipeError(
            f"No line of {log} reports an error",
            remedy="Name the log of a failed build; Bazel writes to standard error.",
        )
    family = next(
        (match.entry.id for match in found.matches if match.explains), "general-error"
    )
    message = lines.said(first.what)[:_LONGEST].strip()
    name = f"{family}-{_slug(message)}"
    entry = (
        "[[failure]]\n"
        f'id = "{name}"\n'
        f'stage = "{found.matches[0].entry.stage if found.matches else "any"}"\n'
        'retry = "no"\n'
        f"pattern = '''{pattern(message)}'''\n"
        f"sample = {_quoted(message)}\n"
        'cause = "TODO: say why, in one sentence."\n'
        'remedy = "TODO: say what to type or to change."\n'
        'sources = ["TODO: owner/repository#number, or a URL"]\n'
    )
    shown = [*first.before, MARK + first.what, *first.lines[1:]]
    return Lesson(name, entry, "\n".join(shown).replace(str(Path.home()), "~") + "\n")


def write(found: Diagnosis, log: str, folder: Path) -> tuple[Lesson, Path]:
    """Write the fixture of a lesson below `folder`, and return the lesson and the file."""
    learned = lesson(found, log)
    path = folder / f"{learned.name}.log"
    files.write(path, learned.fixture)
    return learned, path


def pattern(message: str) -> str:
    """Return an expression that matches the message, and the same message of other builds."""
    # Private-use letters hold the places of the gaps while the words between them are escaped.
    for number, (gap, _) in enumerate(_GAPS):
        message = gap.sub(chr(0xE000 + number), message)
    escaped = re.sub(r"\\([ #&~'\"-])", r"\1", re.escape(message))
    for number, (_, expression) in enumerate(_GAPS):
        escaped = escaped.replace(chr(0xE000 + number), expression)
    return escaped


def _slug(message: str) -> str:
    """Return a few words of a message as a name."""
    words = re.findall(r"[a-z]{3,}", message.lower())
    return "-".join(words[-4:]) or "line"


def _quoted(text: str) -> str:
    """Return a text as a TOML string."""
    return (
        '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'
    )
