"""The download engine: many files at once, each verified, from the first url that gives it."""

import math
import re
import ssl
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from tfwright.errors import Evidence, SilentServerError, SupplyError
from tfwright.progress import SILENCE, Progress
from tfwright.tools import files
from tfwright.tools.http import client
from tfwright.tools.http.client import FaultKind, RequestError
from tfwright.tools.http.partial import PIECE, BusyError, Partial

if TYPE_CHECKING:
    import requests
    import urllib3

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each further attempt."""
TICK = 0.1
"""Seconds between two reports, and two looks at a file that another process brings."""
GRACE = 1.0
"""Seconds that threads get to release their files at the end; after Ctrl-C, a thread that still
waits for a server is left behind."""
OK, PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 200, 206, 416
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another one in a moment."""
LARGEST = 4 * 2**30
"""Bytes of a file whose size neither a lock nor the server states: a server may send without
end."""


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


DEFAULTS = Limits()


class FileStore(Protocol):
    """Where files go, by digest."""

    def path(self, sha256: str) -> Path:
        """Return where the file of a digest is, or would be."""


def fetch(
    requests: Sequence[WantedFile],
    store: FileStore,
    *,
    report: Callable[[Progress], None],
    limits: Limits = DEFAULTS,
) -> list[DownloadOutcome]:
    """Bring files into the store and return what became of each, in order.

    None of them fails the others.

    What had arrived of a file when it was cut, also by SIGKILL, stays next to its place in the
    store and is not asked for again. `report` is called from this thread only. Ctrl-C stops at
    once. Raises HostError if the disk is full.
    """
    transfers = [_Transfer(wanted, store.path(wanted.sha256), limits) for wanted in requests]
    return _Run(transfers, limits).complete(report)


def download(
    url: str,
    to: Path,
    *,
    report: Callable[[Progress], None] = SILENCE.progress,
    pauses: tuple[float, ...] = PAUSES,
    alternatives: bool = False,
) -> str:
    """Download one file to `to`, whatever comes, and return its SHA-256.

    Raises SupplyError, of the kind SilentServerError where no server answered; `to` is then as it
    was.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    # On the same disk, so that the move at the end is a rename.
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as folder:
        arrived = Path(folder, "file")
        limits = Limits(pauses=pauses)
        wanted = WantedFile(url.rpartition("/")[2], "", (url,), alternatives=alternatives)
        (outcome,) = _Run([_Transfer(wanted, arrived, limits)], limits).complete(report)
        if not outcome.obtained:
            failure = outcome.failures[0]
            kind = SilentServerError if failure.silent else SupplyError
            raise kind(
                f"{url} could not be downloaded: {failure.why}",
                remedy="Check the network and the proxy variables, or name a mirror in the host "
                "file.",
                evidence=Evidence(where=url),
            )
        files.move(arrived, to, 0o644)
    return files.sha256(to)


class _Transfer:
    """One file on its way into place: the url that has its turn, the progress, the outcome.

    One thread works on it at a time.
    """

    def __init__(self, wanted: WantedFile, to: Path, limits: Limits) -> None:
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

    def begin(self) -> "_Pace":
        """Begin an attempt, and return how fast the server has to be."""
        now = time.monotonic()
        self._begun, self._grown_at = min(self._begun, now), min(self._grown_at, now)
        if self.another_url() or self.wanted.alternatives:
            end = self._begun + self._limits.deadline
            return _Pace(self._limits.least_speed, self._limits.slow_seconds, end)
        return _Pace(self._limits.least_speed, self._limits.last_seconds)

    def another_url(self) -> bool:
        """Tell whether a url is left that was not asked yet."""
        # A url that was deferred offers nothing new: it gets the patience of the last one.
        return any(url not in self._deferred for url in self._urls[1:])

    def largest(self, announced: int | None, space: int) -> int:
        """Return how many bytes the file may have, where a server announces so many.

        `space` is what the disk has for it. Raises RequestError for an announcement that cannot be,
        or must not be, believed.
        """
        size = self.wanted.size
        if size is not None:
            if announced not in {None, size}:
                why = f"the server announces {announced:,} bytes, the file has {size:,}"
                raise RequestError(FaultKind.OVERSIZE, why)
            return size
        # Without a stated size one file may not use up the disk that the others need too.
        most = min(LARGEST, space // 2)
        if announced is not None and announced > most:
            raise RequestError(
                FaultKind.OVERSIZE,
                f"the server announces {announced:,} bytes; without a size in the lock file, "
                f"at most {most:,} are accepted on this disk",
            )
        return most // 2 if announced is None else announced

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


@dataclass
class _Pace:
    """How fast a server has to send."""

    least: float
    """Bytes a second."""
    window: float
    """Seconds over which that is measured."""
    end: float = math.inf
    """When the server has had its time, however fast it is, by the monotonic clock."""
    since: float = field(default_factory=time.monotonic)
    before: int = 0

    def too_slow(self, received: int) -> bool:
        """Tell whether the server that has sent so many bytes since the beginning is too slow."""
        now = time.monotonic()
        if now > self.end:
            return True
        if now - self.since < self.window:
            return False
        slow = received - self.before < self.least * self.window
        self.since, self.before = now, received
        return slow


@dataclass
class _Answer:
    """A server that is sending a file; the main thread may cut it while another one reads."""

    raw: "urllib3.BaseHTTPResponse"
    pace: _Pace
    received: int = 0
    too_slow: bool = False

    def pieces(self) -> Iterator[bytes]:
        """Yield what has arrived, so that a slow line shows its progress and loses little."""
        piece = b"begin"
        while piece:
            try:
                piece = self.raw.read1(PIECE, decode_content=False)
            except Exception as fault:
                # A cut surfaces as one of many exceptions of ssl, http.client and urllib3.
                raise self._slow() or RequestError.of(fault) from fault
            self.received += len(piece)
            yield piece
        if slow := self._slow():
            raise slow

    def _slow(self) -> RequestError | None:
        if not self.too_slow:
            return None
        why = f"it sent only {self.received:,} bytes before its time was over"
        return RequestError(FaultKind.SLOW, why)

    def cut_if_slow(self) -> None:
        """End the transfer of a server that does not keep its pace."""
        if self.pace.too_slow(self.received):
            self.too_slow = True
            self.cut()

    def cut(self) -> None:
        """End the transfer: whoever reads the pieces meets the end."""
        with suppress(ValueError, RuntimeError, OSError):  # it ended by itself in this moment
            self.raw.shutdown()


@dataclass
class _Host:
    """What this run learned about one server."""

    busy: int = 0
    heard_at: float = 0.0
    rests_until: float = 0.0
    gone: str = ""
    """Why it is not asked again."""


class _Run:
    """All downloads of one call: threads that take files, and a main thread that watches them."""

    def __init__(self, transfers: Sequence[_Transfer], limits: Limits) -> None:
        self.transfers = transfers
        self.limits = limits
        for transfer in transfers:
            there = transfer.to.exists()
            if there or not transfer.wanted.urls:
                transfer.conclude(obtained=there)
        # The large ones first, so that none is left running alone at the end.
        unfinished = [transfer for transfer in transfers if not transfer.outcome]
        self.waiting = sorted(unfinished, key=lambda transfer: -(transfer.wanted.size or 0))
        self.hosts: dict[str, _Host] = defaultdict(_Host)
        self.turn = threading.Condition()
        self.active: list[_Answer] = []
        self.trust = ssl.create_default_context()
        self.fault: BaseException | None = None

    def complete(self, report: Callable[[Progress], None]) -> list[DownloadOutcome]:
        """Run until every file has its outcome."""
        count = min(self.limits.at_once, len(self.waiting))
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        try:
            for thread in threads:
                thread.start()
            over = False
            # Reported at least once, also where all came before the first look.
            while not over:
                with self.turn:
                    # Each tick, to report the progress and to find servers that are too slow.
                    if not self._over():
                        self.turn.wait(TICK)
                    for answer in self.active:
                        answer.cut_if_slow()
                over = self._over()
                report(self._progress())
        except BaseException as fault:
            self._stop(fault)
            raise
        finally:
            deadline = time.monotonic() + GRACE
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            for transfer in self.waiting:
                transfer.release()
        if self.fault:
            raise self.fault
        return [transfer.outcome for transfer in self.transfers if transfer.outcome]

    def _over(self) -> bool:
        return self.fault is not None or all(transfer.outcome for transfer in self.transfers)

    def _progress(self) -> Progress:
        """Sum up what this run transfers, without the files that were there or have failed."""
        ended = [transfer.outcome for transfer in self.transfers if transfer.outcome]
        # Only a file that this run downloaded has a url in its outcome.
        moving = [one for one in self.transfers if not one.outcome or one.outcome.url]
        under_way = [one.wanted.name for one in moving if one.arrived and not one.outcome]
        totals = [transfer.total for transfer in moving]
        return Progress(
            done=sum(transfer.arrived for transfer in moving),
            # One unknown size makes the sum unknown.
            total=None if None in totals else sum(filter(None, totals)),
            unit="B",
            doing=", ".join([f"{len(ended)} of {len(self.transfers)} files", *under_way[:1]]),
            failures=sum(not outcome.obtained for outcome in ended),
        )

    def _stop(self, fault: BaseException) -> None:
        """Make every thread end, also those that wait for bytes."""
        with self.turn:
            self.fault = self.fault or fault
            for answer in self.active:
                answer.cut()
            self.turn.notify_all()

    def _work(self) -> None:
        """Take files as long as there are any; an error that concerns all of them ends the run."""
        from tfwright.tools.http import connections

        try:
            with connections.session(self.trust) as session:
                while transfer := self._next():
                    try:
                        self._advance(transfer, session)
                    finally:
                        with self.turn:
                            if not transfer.outcome:
                                self.waiting.append(transfer)
                            self.turn.notify_all()
        # It is raised again in the thread that waits for the outcomes.
        except BaseException as fault:  # noqa: BLE001
            self._stop(fault)

    def _next(self) -> _Transfer | None:
        """Wait for a file that can continue; None when the run is over."""
        with self.turn:
            while not self._over():
                for transfer in self.waiting:
                    host = self.hosts[transfer.host]
                    rested = max(transfer.not_before, host.rests_until) <= time.monotonic()
                    # A file of a lost host goes on at once: it fails, and turns to its next url.
                    if host.gone or (rested and host.busy < self.limits.per_host):
                        self.waiting.remove(transfer)
                        host.busy += 1
                        return transfer
                self.turn.wait(TICK)
        return None

    def _advance(self, transfer: _Transfer, session: "requests.Session") -> None:
        """Make one attempt; keep the file if it is complete, or decide how to continue."""
        host, done = self.hosts[transfer.host], True
        try:
            partial = transfer.partial or Partial(transfer.to, transfer.wanted.sha256)
            transfer.partial = partial
            try:
                self._receive(transfer, partial, session)
            except RequestError as fault:
                # A server that announces more than it has ends every answer with a cut, also the
                # complete one, and another one does not hang up.
                final = fault.kind in {FaultKind.REFUSED, FaultKind.OVERSIZE}
                done = not final and partial.whole()
                if not done:
                    self._decide(transfer, partial, fault)
        except BusyError:
            # Another process brings the file.
            transfer.not_before = time.monotonic() + TICK
            return
        except FileExistsError:
            transfer.conclude(obtained=True)
            return
        finally:
            # The host is free for the next file before this one is flushed to the disk.
            with self.turn:
                host.busy -= 1
                self.turn.notify()
        if done:
            partial.keep()
            transfer.conclude(obtained=True, url=transfer.url)

    def _receive(self, transfer: _Transfer, partial: Partial, session: "requests.Session") -> None:
        """Bring what is missing of a file; it is complete and right unless an error is raised.

        A server may send all of the file where only the rest was asked for. No validator goes with
        the range: mirrors give different ones for the same bytes, and the digest of the whole
        decides in the end.
        """
        wanted, host = transfer.wanted, self.hosts[transfer.host]
        if host.gone:
            raise RequestError(FaultKind.REFUSED, host.gone)
        if not wanted.sha256:
            # Nothing could tell whether the rest belongs to the same file.
            partial.restart()
        start = transfer.arrived = partial.size
        space = start + partial.free()
        pace = transfer.begin()
        headers = client.PLAIN | ({"Range": f"bytes={start}-"} if start else {})
        try:
            response = client.get(session, transfer.url, headers)
        except Exception as fault:
            # Libraries raise what they like for an answer that makes no sense: ValueError,
            # UnicodeError, …
            raise RequestError.of(fault) from fault
        with response:
            begun, total = _accepted(response, start)
            largest = transfer.largest(total, space)
            transfer.total = total or wanted.size
            if not begun:
                partial.restart()
            with self._watched(_Answer(response.raw, pace)) as answer:
                for piece in answer.pieces():
                    if partial.size + len(piece) > largest:
                        raise RequestError(
                            FaultKind.OVERSIZE,
                            f"the server sends more than the {largest:,} bytes that the file may "
                            "have",
                        )
                    # However many files of unknown size come at once.
                    if wanted.size is None and partial.free() < space // 4:
                        why = (
                            f"{space // 4:,} bytes of the disk are left for files whose size a "
                            "lock file states"
                        )
                        raise RequestError(FaultKind.OVERSIZE, why)
                    partial.append(piece)
                    transfer.arrived = partial.size
                    host.heard_at = time.monotonic()
        _verify(wanted, partial, begun, total)

    @contextmanager
    def _watched(self, answer: _Answer) -> Iterator[_Answer]:
        """Let the main thread cut an answer while it is read."""
        with self.turn:
            if self.fault:
                raise RequestError(FaultKind.BROKEN, "the run was stopped")
            self.active.append(answer)
        try:
            yield answer
        finally:
            with self.turn:
                self.active.remove(answer)

    def _decide(self, transfer: _Transfer, partial: Partial, fault: RequestError) -> None:
        """Decide which url is asked next, and when."""
        host, why, now = self.hosts[transfer.host], str(fault), time.monotonic()
        match fault.kind:
            case FaultKind.REFUSED:
                transfer.fail(why, silent=bool(host.gone))
            case FaultKind.OVERSIZE:
                partial.restart()
                transfer.fail(why)
            case FaultKind.RESTART:
                # No pause: the server answered, and only the question was wrong.
                partial.restart()
            case FaultKind.SLOW:
                transfer.defer(why)
            case kind:
                pause = transfer.next_pause()
                silent = kind is not FaultKind.BROKEN
                if silent:
                    # It did not answer this file twice, nor any other one in between; one without
                    # an address is not asked a second time.
                    missed_twice = host.heard_at <= transfer.missed_at < math.inf
                    if kind is FaultKind.NO_SUCH_HOST or missed_twice:
                        host.gone = why
                    transfer.missed_at = now
                if host.gone or pause is None or fault.after > self.limits.patience:
                    transfer.fail(why, silent=silent)
                    return
                host.rests_until = max(host.rests_until, now + fault.after)
                if fault.after > self.limits.short_patience and transfer.another_url():
                    # The file returns to this server when no other has it.
                    transfer.defer(why)
                else:
                    transfer.not_before = now + pause


def _accepted(response: "requests.Response", start: int) -> tuple[int, int | None]:
    """Return where the bytes begin and how large the file is, as far as the server states it.

    Raises RequestError if the answer does not hold the file.
    """
    why = f"the server answered {client.status(response)}"
    code = response.status_code
    if code in TRANSIENT:
        raise RequestError(FaultKind.BROKEN, why, client.retry_after(response))
    span = re.fullmatch(
        r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)",
        response.headers.get("Content-Range", ""),
    )
    if code == PARTIAL_CONTENT and span and int(span[1]) == start:
        return start, client.number(span[2])
    if start and code in {PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE}:
        raise RequestError(FaultKind.RESTART, why)
    if code != OK:
        raise RequestError(FaultKind.REFUSED, why)
    return 0, client.content_length(response)


def _verify(wanted: WantedFile, partial: Partial, begun: int, total: int | None) -> None:
    """Raise RequestError for a file that did not end as it should; wrong bytes are thrown away."""
    if partial.whole():
        return
    expected = total if wanted.size is None else wanted.size
    if expected is not None and partial.size < expected:
        why = f"the connection ended after {partial.size:,} of {expected:,} bytes"
        raise RequestError(FaultKind.BROKEN, why)
    if not wanted.sha256:
        return
    # Two servers may hold different files; the same url is asked again for all of it.
    if begun:
        why = "the rest does not belong to what another answer began with"
        raise RequestError(FaultKind.RESTART, why)
    found = partial.sha256()
    partial.restart()
    raise RequestError(
        FaultKind.REFUSED,
        f"it sent other bytes than the pinned ones: sha256 {found}, wanted {wanted.sha256}",
    )
