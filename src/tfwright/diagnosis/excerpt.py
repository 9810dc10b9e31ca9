"""The part of a log that shows what failed: the root line, what follows it, the failed action."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfwright.diagnosis import lines
from tfwright.diagnosis.complaints import Complaint, Line

BEFORE = 3
AFTER = 9
"""Lines of context around the root."""
_REACH = 400
"""Lines in which the report of the failed action is looked for."""
_LONGEST_COMMAND = 60
"""Lines of a command."""

_ACTION = re.compile(
    r"ERROR: (?:(?P<where>(?:/|[A-Za-z]:)[^\s:]+:\d+)(?::\d+)?: )?"
    r"(?P<what>.*?(?: failed:? ?\(?(?:Exit|Segmentation|Aborted|Killed|Illegal)[^)]*\)"
    r"| failed: \((?:Exit|Aborted|Killed)[^)]*\)| failed(?=: | to )|was not created))"
)
_COMMAND = re.compile(r"^ +\(cd .*?\)$", re.MULTILINE | re.DOTALL)
_BUILD_FILE = re.compile(r"ERROR: (?P<where>(?:/|[A-Za-z]:)[^\s:]+:\d+)(?::\d+)?: ")
_NEXT = re.compile(r"ERROR: |Target //|INFO: |FAILED: |\[[\d,]+ ?/ ?[\d,]+\]")


@dataclass(frozen=True)
class Excerpt:
    """The first error of a log."""

    line: int
    """Number of the root line, from 1."""
    what: str
    """The root line: what the tool that failed says."""
    action: str
    """What Bazel was doing, where Bazel says so."""
    where: str
    """The BUILD file and line, where Bazel names them."""
    command: str
    """The command of the failed action, if the log has it."""
    lines: tuple[str, ...]
    """The root line and what follows it."""
    before: tuple[str, ...]
    """The lines before the root line."""
    last: int
    """Number of the last line that belongs to this error."""


def around(kept: Sequence[Line], found: Complaint) -> Excerpt:
    """Return what belongs to the complaint `found`."""
    line = kept[found.at]
    action, where, command = _failed_action(kept, found.at)
    # A root that is an error of Bazel itself names the BUILD file.
    own = _BUILD_FILE.match(line.said)
    following = _following(kept, found.at)
    return Excerpt(
        line=line.number,
        what=lines.shown(_from_message(line.text.strip(), found), lines.SHOWN_OF_ROOT),
        action=lines.shown(action),
        where=lines.shown(own["where"] if own else where),
        command=command,
        lines=tuple(lines.shown(text) for text in following),
        before=tuple(lines.shown(each.text) for each in kept[max(0, found.at - BEFORE) : found.at]),
        last=line.number + len(following) - 1,
    )


def _from_message(text: str, found: Complaint) -> str:
    """Return a line that is too long to be shown whole from where its message begins."""
    if len(text) <= lines.SHOWN_OF_ROOT:
        return text
    message = found.family.regex.search(text)
    start = message.start() if message else 0
    # Of a short end, more of what stands before it is shown.
    start = min(start, max(0, len(text) - lines.SHOWN_OF_ROOT))
    return ("… " if start else "") + text[start:]


def _failed_action(kept: Sequence[Line], at: int) -> tuple[str, str, str]:
    """Return what the failed action was doing, its BUILD file and line, and its command.

    Each is empty where the log does not say it.
    """
    for place in _near(kept, at):
        if reported := _ACTION.match(kept[place].said):
            command = _command(kept, place)
            return reported["what"], reported["where"] or "", command
    return "", "", ""


def _near(kept: Sequence[Line], at: int) -> Iterator[int]:
    """Yield where Bazel may report the failed action: before what it printed, or after it."""
    for before in range(at, max(-1, at - _REACH), -1):
        yield before
        # The output of an action that did not fail: what is above belongs to others.
        if before < at and kept[before].said.startswith("INFO: From "):
            break
    yield from range(at + 1, min(len(kept), at + _REACH))


def _command(kept: Sequence[Line], report: int) -> str:
    """Return the command that Bazel shows below the report of a failed action."""
    below = [line.text for line in kept[report : report + _LONGEST_COMMAND]]
    found = _COMMAND.search("\n".join(below))
    return found[0].strip() if found else ""


def _following(kept: Sequence[Line], at: int) -> list[str]:
    """Return the root line and what the same tool says after it."""
    texts = [kept[at].text]
    for line in kept[at + 1 : at + AFTER]:
        if _NEXT.match(line.said):
            break
        texts.append(line.text)
    # The root line itself stays, whatever it holds.
    while len(texts) > 1 and not texts[-1].strip():
        texts.pop()
    return texts
