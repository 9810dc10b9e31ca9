"""Releases of TensorFlow: the line, by which rules are looked up, and the exact version."""

import re
from collections.abc import Callable
from typing import Annotated, NamedTuple, Self

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

# [^+]* skips what names of branches add behind the version.
_EXACT = re.compile(
    r"[rv]?([0-9]{1,9})\.([0-9]{1,9})(?![0-9])(?:\.([0-9]{1,9}))?"
    r"(?:[-.]?((?:rc|alpha|beta|a|b)\d*)(?![a-z]))?"
    r"[^+]*(?:\+([\w.]+))?"
)
_STATED = re.compile(r"[rv]?\d{1,4}\.\d{1,4}(\.\d{1,4})?([-.]?(rc|alpha|beta|a|b)\d*)?(\+[\w.]+)?")
"""What a document may state; the name of a branch may go on behind it."""
LAST_PATCH = 999
"""Higher than any patch level; ends a range that covers a whole release line."""


class Release(NamedTuple):
    """Major and minor version of TensorFlow, ordered: ``Release(1, 8) < Release(1, 10)``."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``1.8``, or a branch such as ``r1.8`` or ``r1.15.5+nv22.09``.

        ``none`` stands for the release of a repository that is not TensorFlow. Raises ValueError
        for anything else.
        """
        if text == "none":
            return cls(0, 0)
        return cls(*ExactRelease.parse(text)[:2])

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" if self != (0, 0) else "none"


NO_RELEASE = Release(0, 0)
"""Stands for the release of a repository that is not TensorFlow."""


class ExactRelease(NamedTuple):
    """A version such as ``2.4.4``, ``1.15.5+nv22.12`` or ``1.12.0-rc0``.

    A release candidate is treated as its release, except by rules that name a candidate.
    """

    major: int
    minor: int
    patch: int = 0
    fork: str = ""
    """What follows the plus sign: ``nv22.12`` for a branch of NVIDIA's."""
    candidate: str = ""
    """``rc0`` for a release candidate."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a version, or a tag or branch named after one: ``v2.4.4``, ``r1.15.5+nv22.12``.

        A version without a patch level is the first of its line. Raises ValueError for other texts.
        """
        # match and not fullmatch: names of branches go on behind the version.
        found = _EXACT.match(text)
        if not found:
            raise ValueError(
                f"{text!r} is not a TensorFlow version such as '1.8', '2.4.4' or '1.15.5+nv22.12'"
            )
        numbers = int(found[1]), int(found[2]), int(found[3] or 0)
        return cls(*numbers, fork=found[5] or "", candidate=found[4] or "")

    @property
    def line(self) -> Release:
        """The release line, by which most rules go."""
        return Release(self.major, self.minor)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Major, minor and patch level, for comparing without fork and candidate."""
        return self.major, self.minor, self.patch

    @property
    def rank(self) -> "Rank":
        """The numbers, and how far the version is from its release: candidates come first."""
        found = re.fullmatch(r"([a-z]+)([0-9]{0,2})", self.candidate)
        # It grows from alpha by way of rc0 and rc1 to the release.
        progress = _PROGRESS.get(found[1], 0) + int(found[2] or 0) if found else _RELEASED
        return *self.numbers, progress

    def is_within(self, since: str, until: str) -> bool:
        """Say whether it is in a range: ``2.4`` is all of 2.4 at its end, ``2.4.1`` that alone."""
        return range_start(since) <= self.rank <= range_end(until)

    def __str__(self) -> str:
        candidate = f"-{self.candidate}" if self.candidate else ""
        fork = f"+{self.fork}" if self.fork else ""
        return f"{self.major}.{self.minor}.{self.patch}{candidate}{fork}"


def is_version(text: str) -> bool:
    """Say whether a text is a version of TensorFlow, or a tag or branch named after one."""
    return bool(_STATED.fullmatch(text))


Rank = tuple[int, int, int, int]
"""Major, minor, patch level, progress: the order of versions, candidates included."""
_PROGRESS = {"a": 0, "alpha": 0, "b": 100, "beta": 100, "rc": 200}
_RELEASED = 1000


def range_start(text: str) -> Rank:
    """Return where a range begins: ``2.4`` means 2.4.0 with its candidates."""
    version = ExactRelease.parse(text)
    return version.rank if version.candidate else (*version.numbers, 0)


def range_end(text: str) -> Rank:
    """Return where a range ends: ``2.4`` means all of 2.4, ``2.4.0`` that version alone."""
    version = ExactRelease.parse(text)
    if text.count(".") == 1:
        return version.major, version.minor, LAST_PATCH, _RELEASED
    return version.rank


def _version_validator(read: Callable[[str], NamedTuple], example: str) -> PlainValidator:
    """Return what reads a version from a text with nothing behind it."""

    def stated(value: object) -> NamedTuple:
        if isinstance(value, Release | ExactRelease):
            return value
        # 1.10 without quotes is the number 1.1.
        if not isinstance(value, str):
            message = f"must be a text in quotes, such as {example!r}"
            raise ValueError(message)  # noqa: TRY004 pydantic reports ValueError only
        # parse reads the beginning of a branch's name, and would take 1.8banana for 1.8.
        if value != "none" and not is_version(value):
            raise ValueError(f"must be a TensorFlow version such as {example!r}")
        return read(value)

    return PlainValidator(stated)


def _version_schema(*examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": r"^[rv]?\d+\.\d+", "examples": [*examples]})


StatedRelease = Annotated[
    Release, _version_validator(Release.parse, "1.8"), PlainSerializer(str), _version_schema("1.8")
]
"""A release as documents spell it."""
StatedVersion = Annotated[
    ExactRelease,
    _version_validator(ExactRelease.parse, "2.4.4"),
    PlainSerializer(str),
    _version_schema("2.4.4", "1.15.5+nv22.12", "1.12.0-rc0"),
]
"""A version as documents spell it."""
