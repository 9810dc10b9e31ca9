"""Literal texts that a regular expression requires, so that lines without them are skipped.

Python's `re` tries a pattern at every character. Looking for a fixed text first is a hundred times
faster, and rules out nearly every line of a log.
"""

import re

SHORTEST = 2
"""Characters; shorter texts stand in too many lines to rule anything out."""

_TOKEN = re.compile(
    r"""
      (?P<escape>\\[AbBdDsSwWZ])         # a class or an anchor: no text
    | \\(?P<escaped>[^\w])               # an escaped character: itself
    | \\.
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<open>\((?:\?(?:P<\w+>|[:=!]|<[=!]|\w+:|\w+\)))?)
    | (?P<close>\))
    | (?P<bar>\|)
    | (?P<times>[*+?]|\{\d*,?\d*\})
    | (?P<any>[.^$])
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def required(pattern: str) -> tuple[str, ...]:
    """Return texts of which every match of `pattern` contains one, or none at all.

    The best set is the one whose shortest text is longest: it stands in the fewest lines.
    """
    choices = _choices(_parse(pattern))
    good = [texts for texts in choices if min(map(len, texts)) >= SHORTEST]
    return max(good, key=lambda texts: (min(map(len, texts)), -len(texts)), default=())


Node = str | list["Node"] | tuple["Node", ...] | None
"""A text, a sequence, alternatives, or something that no text is known of."""


def _parse(pattern: str) -> list[Node]:
    """Return the pattern as a sequence of texts, groups and gaps."""
    stack: list[list[list[Node]]] = [[[]]]
    silent = 0
    for token in _TOKEN.finditer(pattern):
        sequence = stack[-1][-1]
        if token["open"]:
            # A look-around consumes nothing, and (?i: leaves the case of the letters open.
            silent += bool(silent or re.match(r"\(\?(?:[=!i]|<[=!])", token["open"]))
            if not re.fullmatch(r"\(\?\w+\)", token["open"]):
                stack.append([[]])
        elif token["close"]:
            branches = stack.pop()
            group: Node = tuple(branches) if len(branches) > 1 else branches[0]
            stack[-1][-1].append(None if silent else group)
            silent -= bool(silent)
        elif token["bar"]:
            stack[-1].append([])
        elif token["times"]:
            _repeat(sequence, optional=token["times"][0] in "*?" or token["times"][:2] == "{0")
        else:
            sequence.append(token["escaped"] or token["plain"])
    branches = stack[0]
    return [tuple(branches)] if len(branches) > 1 else branches[0]


def _repeat(sequence: list[Node], *, optional: bool) -> None:
    """Take back the last element: it may be missing, or stand there several times."""
    last = sequence.pop() if sequence else None
    sequence.append(None if optional or isinstance(last, str) else last)
    sequence.append(None)


def _choices(sequence: list[Node]) -> list[tuple[str, ...]]:
    """Return every set of texts of which a match of `sequence` contains one."""
    found: list[tuple[str, ...]] = []
    run = ""
    for node in [*sequence, None]:
        if isinstance(node, str):
            run += node
            continue
        if run:
            found.append((run,))
        run = ""
        if isinstance(node, tuple):
            found += _of_alternatives(node)
        elif isinstance(node, list):
            found += _choices(node)
    return found


def _of_alternatives(branches: tuple[Node, ...]) -> list[tuple[str, ...]]:
    """Return the one set that has the best text of each branch; none if a branch has no text."""
    texts: list[str] = []
    for branch in branches:
        choices = _choices(branch) if isinstance(branch, list) else []
        if not choices:
            return []
        texts += max(choices, key=lambda choice: min(map(len, choice)))
    return [tuple(dict.fromkeys(texts))]
