"""One file on its way into place: the url that has its turn, the progress, the outcome."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tfwright.tools.http.partial import Partial
from tfwright.tools.http.reply import Pace, SizeLimits

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each further attempt."""


@dataclass(frozen=True)
class WantedFile:
    """A file that has to be downloaded."""

    name: str
    """What people call it."""
    sha256: str
    """Of its content; empty if it is not known."""
    urls: tuple[str, ...]
    """Asked in this order."""
    size: int | None = None
    """Bytes, where they are known: a server that announces another size is not read."""
    alternatives: bool = False
    """Whether the caller can get the file in another way once all urls have failed."""


@dataclass(frozen=True)
class Failure:
    """A url that did not give the file."""

    url: str
    why: str
    silent: bool = False
    """Whether no server answered, which says nothing about the file."""


@dataclass(frozen=True)
class DownloadOutcome:
    """What became of one file."""

    wanted: WantedFile
    obtained: bool
    """Whether it is in its place now."""
    url: str | None
    """Which url gave it; None if it was there, or another process brought it."""
    failures: tuple[Failure, ...]
    """The urls that did not give it, in order."""


@dataclass(frozen=True)
class Limits:
    """How servers are treated."""

    at_once: int = 16
    """Downloads at once."""
    per_host: int = 8
    """Downloads at once from one server."""
    pauses: tuple[float, ...] = PAUSES
    """Seconds before each further attempt at a url; the count starts again when an attempt brought
    the file further."""
    patience: float = 120.0
    """The longest Retry-After that is waited for, in seconds."""
    short_patience: float = 15.0
    """The same while another way is left."""
    least_speed: float = 1000.0
    """Bytes a second that a server has to send."""
    slow_seconds: float = 30.0
    """Seconds over which the speed is measured while another way to the file is left."""
    last_seconds: float = 300.0
    """The same once no other way is left."""
    deadline: float = 3600.0
    """Seconds that one url may take while another way is left."""

    def pace(self, begun: float, *, another: bool) -> Pace:
        """Return how fast a server has to be that was first asked at a time."""
        if another:
            end = begun + self.deadline
            return Pace(self.least_speed, self.slow_seconds, end)
        return Pace(self.least_speed, self.last_seconds, math.inf)


class FileTransfer:
    """The state of one download. One thread works on it at a time."""

    def __init__(self, wanted: WantedFile, to: Path, limits: Limits) -> None:
        """Start with the first url."""
        self.wanted, self.to = wanted, to
        self.total, self.arrived = wanted.size, 0
        self.partial: Partial | None = None
        self.failures: list[Failure] = []
        self.outcome: DownloadOutcome | None = None
        self._limits = limits
        self._urls = list(wanted.urls)
        self._deferred: set[str] = set()
        self._begin_url()

    def _begin_url(self) -> None:
        self.not_before = 0.0
        # Later than any moment: no attempt at this url has failed to connect yet.
        self.missed_at = math.inf
        self._furthest = 0
        # Not now: files wait for their turn at a server.
        self._begun = self._grown_at = math.inf
        self._pauses = iter(self._limits.pauses)

    @property
    def url(self) -> str:
        """The url whose turn it is."""
        return self._urls[0]

    @property
    def host(self) -> str:
        """The server of that url; empty if there is none left, or it cannot be read."""
        with suppress(IndexError, ValueError):
            return urlsplit(self.url).netloc
        return ""

    def begin(self) -> Pace:
        """Begin an attempt, and return how fast the server has to be."""
        now = time.monotonic()
        self._begun, self._grown_at = (min(self._begun, now), min(self._grown_at, now))
        another = self.another_url() or self.wanted.alternatives
        return self._limits.pace(self._begun, another=another)

    def another_url(self) -> bool:
        """Tell whether a url is left that was not asked yet."""
        # A url that was deferred offers nothing new: it gets the patience of the last one.
        return any(url not in self._deferred for url in self._urls[1:])

    def bounds(self, partial: Partial) -> SizeLimits:
        """Return how large the file may become."""
        return SizeLimits(self.wanted.size, partial.room())

    def wait(self, seconds: float) -> None:
        """Let some time pass before the next attempt."""
        self.not_before = time.monotonic() + seconds

    def next_pause(self) -> float | None:
        """Return how long to wait before this url is asked again.

        None if it was asked often enough.
        """
        now = time.monotonic()
        least = self._limits.least_speed * (now - self._grown_at)
        # A server that cuts each answer still gives a large file, a piece at a time; with
        # a byte an answer it would never end.
        if self.arrived - self._furthest > least:
            self._furthest = self.arrived
            self._grown_at = now
            self._pauses = iter(self._limits.pauses)
        return next(self._pauses, None)

    def defer(self, why: str) -> None:
        """Ask the other urls first.

        A url is deferred once: the slow one may be the only one that has the file.
        """
        if self.url in self._deferred or len(self._urls) == 1:
            self.fail(why)
            return
        self._deferred.add(self.url)
        self._urls.append(self._urls.pop(0))
        self._begin_url()

    def fail(self, why: str, *, silent: bool = False) -> None:
        """Turn to the next url; without one, the file cannot be downloaded.

        `silent` says that no server answered.
        """
        self.failures.append(Failure(self._urls.pop(0), why, silent))
        if self._urls:
            self._begin_url()
        else:
            self.conclude(obtained=False)

    def conclude(self, *, obtained: bool, url: str | None = None) -> None:
        """Close the file, and say what became of it."""
        self.release()
        self.outcome = DownloadOutcome(self.wanted, obtained, url, tuple(self.failures))

    def release(self) -> None:
        """Let other processes have the file."""
        if self.partial:
            self.partial.close()
            self.partial = None
