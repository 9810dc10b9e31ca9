"""Families of failures: what a tool can say, as a pattern with parameters, and what that means.

A family is a line's grammar. Its cause and its remedy are sentences with places for the parameters,
so that one family explains a missing ``cudnn.h`` and a missing ``nccl.h``. A refinement is a family
that describes one particular failure; it is looked at first. Every family is data, in the files
below ``grammars/`` and in ``catalogue.toml``.
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from tfwright import facts
from tfwright.documents.names import Line
from tfwright.documents.toml import Table, load

CATALOGUE = Path(__file__).with_name("catalogue.toml")
FOLDER = Path(__file__).with_name("grammars")
RULES = Path(__file__).with_name("rules.toml")
SHORTEST = 2
"""Characters of a literal; shorter texts stand in too many lines to rule anything out."""
ORDER = (
    "harmless",
    "memory",
    "configure",
    "modules",
    "system",
    "fetch",
    "bazel",
    "analysis",
    "sandbox",
    "gpu",
    "nvcc",
    "host",
    "link",
    "load",
    "pip",
    "python",
    "package",
    "general",
)
"""The files below ``grammars/``, the most particular first: the first that matches a line wins."""

Retry = Literal["no", "pass", "once", "fewer", "later"]
"""Whether another attempt helps.

``no``: something must change first. ``pass``: the fault may pass. ``once``: it may pass, but not
when it comes twice. ``fewer``: with fewer jobs. ``later``: others must act first.
"""
Rank = Literal["root", "weak", "wrapper", "hint", "summary", "harmless"]
"""How near a line stands to the cause.

``root``: the tool that failed says why. ``weak``: perhaps an error, if nothing better is found.
``wrapper``: one tool reports that another one failed. ``hint``: it complains by its words only.
``summary``: the end of a failed run.
``harmless``: it looks bad and means nothing.
"""
Fact = Literal[
    "disk", "memory", "glibc", "xcode", "driver", "python", "compiler", "cuda", "machine"
]
"""What can be looked at on this host."""

READ_AROUND = ("line", "system", "speaker", "gpu", "runs", "conflict", "official", "bits")
"""What a sentence may use besides the groups of its pattern."""
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_UNBOUNDED_GROUP = re.compile(r"(?<!\\)\)(?:[*+]|\{\d*,\})")
_NESTED = re.compile(r"(?<!\\)[*+}]\??\)[*+]")
_THREAD = re.compile(r"^([\w.-]+/[\w.-]+)#(\d+)$")
_REFERENCED = re.compile(r",? and (?:was )?referenced by '[^']{0,300}'?\.?$")
"""What Bazel adds to a message of another part: the target that wants the package."""
_STOP = re.compile(r"(?:[:,;]|(?<!\.)\.)+$")
"""The end of a sentence, which does not belong to a name; the three stops of an ellipsis stay."""


def _check_pattern(pattern: str) -> str:
    """Refuse an invalid regular expression, and one that repeats a group without a bound."""
    # In a character class, brackets and repetition signs are plain characters.
    plain = _CLASS.sub("[]", pattern)
    # Such groups can take exponential time, and whoever made the log chooses the text.
    if _UNBOUNDED_GROUP.search(plain) or _NESTED.search(plain):
        raise ValueError("a group must not be repeated without an upper bound")
    try:
        re.compile(pattern)
    except re.error as fault:
        raise ValueError(f"not a regular expression: {fault}") from fault
    # The search for literals is what makes reading a large log fast.
    if not required_texts(pattern):
        raise ValueError("a pattern needs a literal of two characters that every match contains")
    return pattern


class Family(Table):
    """One kind of failure. ``docs/lab-notes/diagnosis.md`` says how to write one."""

    id: Line
    stage: Literal["configure", "fetch", "source", "compile", "package", "verify", "any"] = "any"
    retry: Retry = "no"
    rank: Rank = "root"
    pattern: Annotated[str, AfterValidator(_check_pattern)]
    """A regular expression on one line of text; named groups are the parameters."""
    sample: Line = ""
    cause: Line
    remedy: Line
    recipe: tuple[Line, ...] = ()
    """Lines of a recipe that mend it, each as `[table] key = value`."""
    host_file: tuple[Line, ...] = ()
    """Lines of the host file that mend it."""
    commands: tuple[Line, ...] = ()
    """What to type in a shell."""
    sources: tuple[Line, ...] = ()
    evidence: tuple[Fact, ...] = ()
    detail: Line = ""
    """A regular expression whose groups complete the parameters, on one of the next lines."""
    above: Line = ""
    """The same, on one of the lines before: the nearest that matches counts."""
    remark: bool = False
    """Whether the line may be one that its tool calls information or a warning."""
    unless: Line = ""
    """A fact that makes a harmless line an error: a missing library is one where there is a GPU."""
    fatal: bool = False
    """Whether the line is an error even where its tool goes on and reports success."""
    certain: bool = False
    """Whether the line alone proves the cause, once every fact in `needs` holds."""
    needs: tuple[Line, ...] = ()
    """Facts that the cause depends on, as ``cuda``, ``Darwin`` or ``bazel>=0.19``; ``arm``,
    ``musl``, ``modules`` and ``training`` hold only where the log shows them."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern)

    @cached_property
    def detail_regex(self) -> re.Pattern[str] | None:
        """The compiled expression for the next lines."""
        return re.compile(self.detail) if self.detail else None

    @cached_property
    def above_regex(self) -> re.Pattern[str] | None:
        """The compiled expression for the lines before."""
        return re.compile(self.above) if self.above else None

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Texts of which every matching line contains at least one."""
        return required_texts(self.pattern)

    @property
    def links(self) -> tuple[str, ...]:
        """The sources; a thread on GitHub becomes a URL."""
        return tuple(
            _THREAD.sub(r"https://github.com/\1/issues/\2", source) for source in self.sources
        )

    def match(self, line: str) -> dict[str, str] | None:
        """Return the parameters that `line` gives to this family; None if it does not match."""
        found = self.regex.search(line)
        if found is None:
            return None
        parameters: dict[str, str] = {}
        add_groups(parameters, found, _without_stop)
        return parameters

    @property
    def parameters(self) -> frozenset[str]:
        """The names that a sentence may use: its groups, and what the reader adds."""
        groups = [*self.regex.groupindex, *READ_AROUND]
        for around in (self.detail_regex, self.above_regex):
            groups += around.groupindex if around else ()
        return frozenset(group.rstrip("0123456789") for group in groups)


def add_groups(
    parameters: dict[str, str], found: re.Match[str], plain: Callable[[str], str] = str
) -> None:
    """Add what the groups of a match found, where nothing is known yet."""
    for group, value in found.groupdict().items():
        # Alternatives of one expression need groups of different names: file, file2.
        name = group.rstrip("0123456789")
        parameters[name] = parameters.get(name) or plain(value or "")


def _without_stop(value: str) -> str:
    """Return a parameter as a sentence can hold it, without its own stop."""
    return _STOP.sub("", _REFERENCED.sub("", value.strip()))


class _Families(Table):
    """A file of families."""

    family: tuple[Family, ...]


class _Catalogue(Table):
    """The file of refinements."""

    failure: tuple[Family, ...]


@cache
def refinements() -> tuple[Family, ...]:
    """Return the particular failures that people met."""
    return load(CATALOGUE, _Catalogue).failure


@cache
def grammars() -> tuple[Family, ...]:
    """Return the families of what tools say, the most particular first."""
    found: list[Family] = []
    for name in ORDER:
        found += load(FOLDER / f"{name}.toml", _Families).family
    return tuple(found)


@cache
def all_families() -> tuple[Family, ...]:
    """Return refinements and families in the order in which they are tried."""
    # Harmless lines first: a refinement or a family may match their words as well.
    quiet = tuple(family for family in grammars() if family.rank == "harmless")
    loud = tuple(family for family in grammars() if family.rank != "harmless")
    return quiet + refinements() + loud


@cache
def family_by_id(name: str) -> Family:
    """Return the family with an id."""
    return next(family for family in all_families() if family.id == name)


@cache
def rule(name: str) -> re.Pattern[str]:
    """Return the expression of ``rules.toml`` with a name."""
    return re.compile("|".join(f"(?:{row})" for row in facts.read(RULES)[name]))


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


def required_texts(pattern: str) -> tuple[str, ...]:
    """Return literal texts of which every match of `pattern` contains one, or none at all.

    Python's `re` tries a pattern at every character. Looking for a fixed text first is a hundred
    times faster, and rules out nearly every line of a log.
    The best set is the one whose shortest text is longest: it stands in the fewest lines.
    """
    choices = _text_choices(_parse(pattern))
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


def _text_choices(sequence: list[Node]) -> list[tuple[str, ...]]:
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
            found += _alternative_texts(node)
        elif isinstance(node, list):
            found += _text_choices(node)
    return found


def _alternative_texts(branches: tuple[Node, ...]) -> list[tuple[str, ...]]:
    """Return the one set that has the best text of each branch; none if a branch has no text."""
    texts: list[str] = []
    for branch in branches:
        choices = _text_choices(branch) if isinstance(branch, list) else []
        if not choices:
            return []
        texts += max(choices, key=lambda choice: min(map(len, choice)))
    return [tuple(dict.fromkeys(texts))]
