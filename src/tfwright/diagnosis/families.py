"""Families of failures: what a tool can say, as a pattern with parameters, and what that means.

A family is a line's grammar. Its cause and its remedy are sentences with places for the parameters,
so that one family explains a missing ``cudnn.h`` and a missing ``nccl.h``. A refinement is a family
that describes one particular failure; it is looked at first. Every family is data, in the files
below ``grammars/`` and in ``catalogue.toml``.
"""

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from tfwright.diagnosis import literals
from tfwright.documents.names import Line
from tfwright.documents.toml import Table, load

CATALOGUE = Path(__file__).with_name("catalogue.toml")
FOLDER = Path(__file__).with_name("grammars")
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
Rank = Literal["root", "weak", "wrapper", "summary", "harmless"]
"""How near a line stands to the cause.

``root``: the tool that failed says why. ``weak``: perhaps an error, if nothing better is found.
``wrapper``: one tool reports that another one failed. ``summary``: the end of a failed run.
``harmless``: it looks bad and means nothing.
"""
Fact = Literal[
    "disk", "memory", "glibc", "xcode", "driver", "python", "compiler", "cuda", "machine"
]
"""What can be looked at on this host."""

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_UNBOUNDED_GROUP = re.compile(r"(?<!\\)\)(?:[*+]|\{\d*,\})")
_NESTED = re.compile(r"(?<!\\)[*+}]\??\)[*+]")
_THREAD = re.compile(r"^([\w.-]+/[\w.-]+)#(\d+)$")
_REFERENCED = re.compile(r",? and (?:was )?referenced by '[^']{0,300}'?\.?$")
"""What Bazel adds to a message of another part: the target that wants the package."""
_STOP = re.compile(r"(?:[:,;]|(?<!\.)\.)+$")
"""The end of a sentence, which does not belong to a name; the three stops of an ellipsis stay."""


def _bounded(pattern: str) -> str:
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
    if not literals.required(pattern):
        raise ValueError("a pattern needs a literal of two characters that every match contains")
    return pattern


class Family(Table):
    """One kind of failure. ``docs/diagnosis.md`` says how to write one."""

    id: Line
    stage: Literal["configure", "fetch", "source", "compile", "package", "verify", "any"] = "any"
    retry: Retry = "no"
    rank: Rank = "root"
    pattern: Annotated[str, AfterValidator(_bounded)]
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
    """Facts that the cause depends on, as ``cuda``, ``Darwin`` or ``bazel>=0.19``."""

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
        return literals.required(self.pattern)

    @property
    def links(self) -> tuple[str, ...]:
        """The sources; a thread on GitHub becomes a URL."""
        return tuple(
            _THREAD.sub(r"https://github.com/\1/issues/\2", source) for source in self.sources
        )

    def match(self, line: str) -> dict[str, str] | None:
        """Return the parameters that `line` gives to this family; None if it does not match.

        A pattern has a group for each way to say the same thing: ``file``, ``file2``. They give one
        parameter, without the number.
        """
        found = self.regex.search(line)
        if found is None:
            return None
        parameters: dict[str, str] = {}
        for group, value in found.groupdict().items():
            name = group.rstrip("0123456789")
            parameters[name] = parameters.get(name) or _plain(value or "")
        return parameters

    @property
    def parameters(self) -> frozenset[str]:
        """The names that a sentence may use."""
        groups = [*self.regex.groupindex]
        for around in (self.detail_regex, self.above_regex):
            groups += around.groupindex if around else ()
        return frozenset(group.rstrip("0123456789") for group in groups)

    def matches(self, line: str) -> bool:
        """Say whether one line of a log shows this failure."""
        return self.regex.search(line) is not None


def _plain(value: str) -> str:
    """Return a parameter as a sentence can hold it, without its own stop."""
    return _STOP.sub("", _REFERENCED.sub("", value.strip()))


class _Families(Table):
    """A file of families."""

    family: tuple[Family, ...]


class _Catalogue(Table):
    """The file of refinements."""

    failure: tuple[Family, ...]


@lru_cache
def refinements() -> tuple[Family, ...]:
    """Return the particular failures that people met."""
    return load(CATALOGUE, _Catalogue).failure


@lru_cache
def grammars() -> tuple[Family, ...]:
    """Return the families of what tools say, the most particular first."""
    found: list[Family] = []
    for name in ORDER:
        found += load(FOLDER / f"{name}.toml", _Families).family
    return tuple(found)


@lru_cache
def everything() -> tuple[Family, ...]:
    """Return refinements and families in the order in which they are tried."""
    # Harmless lines first: a refinement or a family may match their words as well.
    quiet = tuple(family for family in grammars() if family.rank == "harmless")
    loud = tuple(family for family in grammars() if family.rank != "harmless")
    return quiet + refinements() + loud
