"""Many downloads at once into a store: each file once, verified, from the first of its urls that gives it."""

import math
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from tfwright.progress import Progress
from tfwright.tools.http import download
from tfwright.tools.http.download import (
    NoRangeError,
    PassingError,
    RefusedError,
    Reply,
    UnreachableError,
)
from tfwright.tools.http.partial import BusyError, Partial

if TYPE_CHECKING:
    import requests

TICK = 0.1
"""Seconds between two reports, and two looks at a file that another process brings."""
GRACE = 1.0
"""Seconds that threads get to let go of their files at the end; after Ctrl-C, one that still waits for a server is left behind."""


class Shelf(Protocol):
    """Where files go: a store."""

    def path(self, sha256: str) -> Path:
        """Return where the file of a digest is, or would be."""


@dataclass(frozen=True)
class WantedFile:
    """A file that is to be in the store."""

    name: str
    """What people call it."""
    sha256: str
    urls: tuple[str, ...]
    """Asked in this order."""
    size: int | None = None
    """Bytes, where they are known: a server that announces others is not listened to."""


@dataclass(frozen=True)
class Failure:
    """A url that did not give the file."""

    url: str
    why: str


@dataclass(frozen=True)
class DownloadOutcome:
    """What became of one file."""

    wanted: WantedFile
    obtained: bool
    """Whether the store has it now."""
    url: str | None
    """Which url gave it; None if the store had it, or got it from another process."""
    failures: tuple[Failure, ...]
    """The urls that were asked in vain, in order."""


@dataclass(frozen=True)
class Manners:
    """How servers are treated."""

    at_once: int = 16
    per_host: int = 8
    pauses: tuple[float, ...] = download.PAUSES
    """Seconds before each further attempt at a url; they begin anew when an attempt brought the file further."""
    patience: float = 120.0
    """The longest Retry-After that is waited for, in seconds."""


POLITE = Manners()


def fetch(
    requests: Sequence[WantedFile],
    store: Shelf,
    *,
    report: Callable[[Progress], None],
    manners: Manners = POLITE,
) -> list[DownloadOutcome]:
    """Bring files into the store and return what became of each, in order; none of them fails the others.

    What had arrived of a file when it was cut, also by SIGKILL, stays beside its place in the store
    and is not asked for again. `report` is called from this thread only. Ctrl-C stops at once.
    Raises HostError if the disk is full.
    """
    return _Run(requests, store, manners).complete(report)


@dataclass
class _Host:
    """What this run learned about one server."""

    busy: int = 0
    heard_at: float = 0.0
    rests_until: float = 0.0
    gone: str = ""
    """Why it is not asked again."""


class _File:
    """A file on its way: which url has its turn, how far it has come, and what became of it."""

    def __init__(self, wanted: WantedFile, pauses: tuple[float, ...]) -> None:
        self.wanted, self.pauses = wanted, pauses
        self.total, self.arrived = wanted.size, 0
        self.partial: Partial | None = None
        self.failures: list[Failure] = []
        self.outcome: DownloadOutcome | None = None
        self._begin_url()

    def _begin_url(self) -> None:
        self.not_before = 0.0
        self.missed_at = math.inf
        self._furthest = 0
        self._left = iter(self.pauses)

    @property
    def url(self) -> str:
        """The url whose turn it is."""
        return self.wanted.urls[len(self.failures)]

    @property
    def host(self) -> str:
        """The server of that url; empty if there is none left, or it is not readable."""
        with suppress(IndexError, ValueError):
            return urlsplit(self.url).netloc
        return ""

    def wait(self, seconds: float) -> None:
        """Let some time pass before the next attempt."""
        self.not_before = time.monotonic() + seconds

    def next_pause(self) -> float | None:
        """Return how long to wait before this url is asked again; None if it was asked often enough."""
        if self.arrived > self._furthest:
            self._furthest, self._left = self.arrived, iter(self.pauses)
        return next(self._left, None)

    def fail(self, why: str) -> None:
        """Turn to the next url; without one, the file cannot be had."""
        self.failures.append(Failure(self.url, why))
        if len(self.failures) < len(self.wanted.urls):
            self._begin_url()
        else:
            self.conclude(obtained=False)

    def conclude(self, *, obtained: bool, url: str | None = None) -> None:
        """Let go of the file, and say what became of it."""
        self.release()
        self.outcome = DownloadOutcome(self.wanted, obtained, url, tuple(self.failures))

    def release(self) -> None:
        """Let other processes have the file."""
        if self.partial:
            self.partial.close()
            self.partial = None


class _Run:
    """One call of `fetch`: threads that take whichever file can go on, one attempt at a time.

    No thread waits for a pause, a server's rest or another process: the file goes back among the
    waiting ones until then.
    """

    def __init__(self, requests: Sequence[WantedFile], store: Shelf, manners: Manners) -> None:
        self.store, self.manners = store, manners
        self.files = [_File(one, manners.pauses) for one in requests]
        for file in self.files:
            if not file.wanted.urls or store.path(file.wanted.sha256).exists():
                file.conclude(obtained=store.path(file.wanted.sha256).exists())
        # The large ones first, so that none is left running alone at the end.
        self.waiting = sorted(
            (file for file in self.files if not file.outcome),
            key=lambda file: -(file.wanted.size or 0),
        )
        self.hosts: dict[str, _Host] = defaultdict(_Host)
        self.turn = threading.Condition()
        self.answers: set[Reply] = set()
        self.trust = ssl.create_default_context()
        self.fault: BaseException | None = None

    def complete(self, report: Callable[[Progress], None]) -> list[DownloadOutcome]:
        """Run until every file has its outcome."""
        threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(min(self.manners.at_once, len(self.waiting)))
        ]
        try:
            for thread in threads:
                thread.start()
            while not self._over():
                with self.turn:
                    self.turn.wait(TICK)
                report(self._progress())
        except BaseException as fault:
            self._stop(fault)
            raise
        finally:
            self._dismiss(threads)
        if self.fault:
            raise self.fault
        return [file.outcome for file in self.files if file.outcome]

    def _over(self) -> bool:
        return self.fault is not None or all(file.outcome for file in self.files)

    def _progress(self) -> Progress:
        """Sum up what this run transfers: not what was there, nor what cannot be had."""
        moving = [file for file in self.files if not file.outcome or file.outcome.url]
        totals = [file.total for file in moving]
        under_way = [file.wanted.name for file in moving if file.arrived and not file.outcome]
        settled = sum(1 for file in self.files if file.outcome)
        return Progress(
            done=sum(file.arrived for file in moving),
            total=None if None in totals else sum(filter(None, totals)),
            unit="B",
            doing=", ".join([f"{settled} of {len(self.files)} files", *under_way[:1]]),
            failures=sum(1 for file in self.files if file.outcome and not file.outcome.obtained),
        )

    def _stop(self, fault: BaseException) -> None:
        """Make every thread leave off, also those that wait for bytes."""
        with self.turn:
            self.fault = self.fault or fault
            for answer in self.answers:
                answer.cut()
            self.turn.notify_all()

    def _dismiss(self, threads: Sequence[threading.Thread]) -> None:
        """Let the threads end, and leave nothing locked."""
        deadline = time.monotonic() + GRACE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for file in self.waiting:
            file.release()

    def _work(self) -> None:
        """Take files as long as there are any; an error that concerns all of them ends the run."""
        try:
            with download.session(self.trust) as session:
                while file := self._next():
                    self._advance(file, session)
        except BaseException as fault:  # noqa: BLE001 it is raised again, in the thread that waits for the outcomes
            self._stop(fault)

    def _next(self) -> _File | None:
        """Wait for a file that can go on; None when the run is over."""
        with self.turn:
            while not self._over():
                for file in filter(self._ready, self.waiting):
                    self.waiting.remove(file)
                    self.hosts[file.host].busy += 1
                    return file
                self.turn.wait(TICK)
        return None

    def _ready(self, file: _File) -> bool:
        host = self.hosts[file.host]
        rested = max(file.not_before, host.rests_until) <= time.monotonic()
        return bool(host.gone) or (rested and host.busy < self.manners.per_host)

    def _advance(self, file: _File, session: "requests.Session") -> None:
        """Make one attempt, keep the file if it is whole, and let it wait if it has no outcome yet."""
        try:
            whole = self._visit(file, session)
            if whole and file.partial:
                file.partial.keep()
                file.conclude(obtained=True, url=file.url)
        finally:
            with self.turn:
                self.waiting += [] if file.outcome else [file]
                self.turn.notify_all()

    def _visit(self, file: _File, session: "requests.Session") -> bool:
        """Make one attempt, and make room at the host before the disk takes its time with what came from it."""
        host = self.hosts[file.host]
        try:
            partial = self._open(file)
            return partial is not None and self._attempt(file, partial, session)
        finally:
            with self.turn:
                host.busy -= 1
                self.turn.notify()

    def _open(self, file: _File) -> Partial | None:
        """Go on with what is in the store; None if another process does, or if it is everything."""
        try:
            file.partial = file.partial or Partial(
                self.store.path(file.wanted.sha256), file.wanted.sha256
            )
        except BusyError:
            file.wait(TICK)
        except FileExistsError:
            file.conclude(obtained=True)
        return file.partial

    def _attempt(self, file: _File, partial: Partial, session: "requests.Session") -> bool:
        """Ask a url once, and tell whether the file is whole now; if not, decide how it goes on."""
        try:
            self._transfer(file, partial, session)
        except RefusedError as fault:
            file.fail(str(fault))
        except PassingError as fault:
            # A server that announces more than there is ends every answer with a cut, also the one that brought everything.
            if partial.whole():
                return True
            self._put_off(file, partial, fault)
        else:
            return True
        return False

    def _transfer(self, file: _File, partial: Partial, session: "requests.Session") -> None:
        """Bring what is missing of a file; it is whole and right unless an error is raised."""
        host = self.hosts[file.host]
        if host.gone:
            raise RefusedError(host.gone)
        file.arrived = partial.size
        with (
            download.asking(session, file.url, partial.size, file.wanted.size) as answer,
            self._stoppable(answer),
        ):
            file.total = answer.total or file.wanted.size
            for size in answer.into(partial):
                file.arrived, host.heard_at = size, time.monotonic()
        _verify(file.wanted, partial, answer)

    @contextmanager
    def _stoppable(self, answer: Reply) -> Iterator[None]:
        """Let `_stop` reach an answer while it is read."""
        with self.turn:
            if self.fault:
                raise PassingError("the run was stopped")
            self.answers.add(answer)
        try:
            yield
        finally:
            with self.turn:
                self.answers.discard(answer)

    def _put_off(self, file: _File, partial: Partial, fault: PassingError) -> None:
        """Decide when the url is asked again, if at all."""
        if isinstance(fault, NoRangeError):
            partial.restart()
            return
        host, pause = self.hosts[file.host], file.next_pause()
        if isinstance(fault, UnreachableError):
            self._doubt(host, file, str(fault))
        if host.gone or pause is None or fault.after > self.manners.patience:
            file.fail(str(fault))
            return
        host.rests_until = max(host.rests_until, time.monotonic() + fault.after)
        file.wait(pause)

    def _doubt(self, host: _Host, file: _File, why: str) -> None:
        """Give a host up that did not answer this file twice, nor any other one in between."""
        if host.heard_at <= file.missed_at < math.inf:
            host.gone = why
        file.missed_at = time.monotonic()


def _verify(wanted: WantedFile, partial: Partial, answer: Reply) -> None:
    """Raise for a file that ended otherwise than it should; wrong bytes are thrown away."""
    if partial.whole():
        return
    if wanted.size is not None and partial.size < wanted.size:
        raise PassingError(f"the connection ended after {partial.size:,} of {wanted.size:,} bytes")
    if answer.start:
        raise NoRangeError("the rest does not belong to what another answer began with")
    found = partial.sha256()
    partial.restart()
    raise RefusedError(f"it gave other bytes than were pinned: sha256 {found}")
