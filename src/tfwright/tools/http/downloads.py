"""The download engine: many files at once, each verified, from the first url that gives it."""

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tfwright.errors import SilentServerError, SupplyError
from tfwright.progress import SILENCE, Progress, Report
from tfwright.tools import files
from tfwright.tools.http import client
from tfwright.tools.http.client import FaultKind, RequestError
from tfwright.tools.http.partial import PIECE, BusyError, Partial

if TYPE_CHECKING:
    import requests
    import urllib3

AT_ONCE, PER_HOST = 16, 8
"""Downloads at once, in all and from one server."""
PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each further attempt at a url; the count starts again when an attempt brought the
file further."""
PATIENCE, SHORT_PATIENCE = 120.0, 15.0
"""The longest Retry-After that is waited for, in seconds; the second while another way is left."""
LEAST_SPEED, SLOW_SECONDS = 1000.0, 60.0
"""Bytes a second that a server has to send, and the seconds over which that is measured."""
DEADLINE = 3600.0
"""Seconds that one url may take while another way is left."""
TICK = 0.1
"""Seconds between two reports, and two looks at a file that another process brings."""
GRACE = 1.0
"""Seconds that threads get to release their files at the end; after Ctrl-C, a thread that still
waits for a server is left behind."""
OK, PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 200, 206, 416
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


def fetch(
    requests: Sequence[WantedFile], place: Callable[[str], Path], *, report: Report
) -> list[DownloadOutcome]:
    """Bring files to the places of their digests and return what became of each, in order.

    None of them fails the others.

    What had arrived of a file when it was cut, also by SIGKILL, stays next to its place and is not
    asked for again. `report` is called from this thread only. Ctrl-C stops at once. Raises
    HostError if the disk is full.
    """
    transfers = [_Transfer(wanted, place(wanted.sha256)) for wanted in requests]
    return _Run(transfers, PAUSES).complete(report)


def download(
    url: str, to: Path, *, pauses: tuple[float, ...] = PAUSES, alternatives: bool = False
) -> str:
    """Download one file to `to`, whatever comes, and return its SHA-256.

    Raises SupplyError, of the kind SilentServerError where no server answered; `to` is then as it
    was.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    # On the same disk, so that the move at the end is a rename.
    with files.scratch_directory(to.parent, f".{to.name}.") as folder:
        arrived = folder / "file"
        wanted = WantedFile(url.rpartition("/")[2], "", (url,), alternatives=alternatives)
        (outcome,) = _Run([_Transfer(wanted, arrived)], pauses).complete(SILENCE.progress)
        if not outcome.obtained:
            failure = outcome.failures[0]
            kind = SilentServerError if failure.silent else SupplyError
            raise kind(
                f"{url} could not be downloaded: {failure.why}",
                remedy="Check the network and the proxy variables, or name a mirror in the host "
                "file.",
                where=url,
            )
        files.move(arrived, to, 0o644)
    return files.sha256(to)


@dataclass
class _Transfer:
    """One file on its way into place."""

    wanted: WantedFile
    to: Path
    announced: int | None = None
    """Bytes, as a server says."""
    arrived: int = 0
    end: float = math.inf
    """When the url that is asked has had its time, by the monotonic clock; never for the last way
    to the file."""
    outcome: DownloadOutcome | None = None


class _Answer:
    """A server that is sending a file; the main thread may cut it while another one reads."""

    def __init__(self, raw: "urllib3.BaseHTTPResponse", end: float) -> None:
        self._raw, self._end = raw, end
        self._since = time.monotonic()
        """When the measured seconds began."""
        self._before = self._received = 0
        """Bytes that had come by then, and by now."""
        self._too_slow = False

    def pieces(self) -> Iterator[bytes]:
        """Yield what has arrived, so that a slow line shows its progress and loses little."""
        piece = b"begin"
        while piece:
            try:
                piece = self._raw.read1(PIECE, decode_content=False)
            except Exception as fault:
                # A cut surfaces as one of many exceptions of ssl, http.client and urllib3.
                raise self._slow_error() or RequestError.of(fault) from fault
            self._received += len(piece)
            yield piece
        if slow := self._slow_error():
            raise slow

    def _slow_error(self) -> RequestError | None:
        if not self._too_slow:
            return None
        return RequestError(
            FaultKind.SLOW, f"it sent only {self._received:,} bytes before its time was over"
        )

    def cut_if_slow(self) -> None:
        """End the transfer of a server that does not keep its pace."""
        now = time.monotonic()
        measured = now - self._since >= SLOW_SECONDS
        slow = measured and self._received - self._before < LEAST_SPEED * SLOW_SECONDS
        if measured:
            self._since, self._before = now, self._received
        if slow or now > self._end:
            self._too_slow = True
            self.cut()

    def cut(self) -> None:
        """End the transfer: whoever reads the pieces meets the end."""
        with suppress(ValueError, RuntimeError, OSError):  # it ended by itself in this moment
            self._raw.shutdown()


class _Host:
    """What this run learned about one server."""

    def __init__(self) -> None:
        self.slots = threading.Semaphore(PER_HOST)
        self.heard_at = self.rests_until = 0.0
        self.gone = ""
        """Why it is not asked again."""


class _StoppedError(Exception):
    """The run is over, and nobody waits for this file any more."""


class _Run:
    """All downloads of one call: threads that bring files, and a main thread that watches them."""

    def __init__(self, transfers: Sequence[_Transfer], pauses: tuple[float, ...]) -> None:
        self.transfers, self.pauses = transfers, pauses
        # The large ones first, so that none is left running alone at the end.
        self.waiting = iter(sorted(transfers, key=lambda one: -(one.wanted.size or 0)))
        urls = [url for one in transfers for url in one.wanted.urls]
        self.hosts = {host: _Host() for host in map(_host_of, urls)}
        self.slots = threading.Semaphore(AT_ONCE)
        self.lock = threading.Lock()
        self.active: list[_Answer] = []
        self.over = threading.Event()
        self.fault: BaseException | None = None

    def complete(self, report: Report) -> list[DownloadOutcome]:
        """Run until every file has its outcome."""
        from tfwright.tools.http import connections

        with connections.session() as self.session:
            # More than may ask at once: most of them wait, for a slot or for a server that rests.
            count = min(AT_ONCE * 4, len(self.transfers))
            threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
            try:
                for thread in threads:
                    thread.start()
                over = not threads
                # Reported at least once, also where all came before the first look.
                while not over:
                    over = self.over.wait(TICK)
                    with self.lock:
                        for answer in self.active:
                            answer.cut_if_slow()
                    report(self._progress())
            except BaseException as fault:
                self._stop(fault)
                raise
            finally:
                deadline = time.monotonic() + GRACE
                for thread in threads:
                    thread.join(max(0.0, deadline - time.monotonic()))
        if self.fault:
            raise self.fault
        return [transfer.outcome for transfer in self.transfers if transfer.outcome]

    def _progress(self) -> Progress:
        """Sum up what this run transfers, without the files that were there or have failed."""
        ended = [transfer.outcome for transfer in self.transfers if transfer.outcome]
        # Only a file that this run downloaded has a url in its outcome.
        moving = [one for one in self.transfers if not one.outcome or one.outcome.url]
        under_way = [one.wanted.name for one in moving if one.arrived and not one.outcome]
        totals = [transfer.announced or transfer.wanted.size for transfer in moving]
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
        with self.lock:
            self.fault = self.fault or fault
            self.over.set()
            for answer in self.active:
                answer.cut()

    def _pause(self, seconds: float) -> None:
        if self.over.wait(max(0.0, seconds)):
            raise _StoppedError

    def _work(self) -> None:
        """Bring files as long as there are any; an error that concerns all of them ends the run."""
        try:
            for transfer in self.waiting:
                transfer.outcome = self._transfer_file(transfer)
                if all(each.outcome for each in self.transfers):
                    self.over.set()
        # It is raised again in the thread that waits for the outcomes.
        except BaseException as fault:  # noqa: BLE001
            self._stop(fault)

    def _transfer_file(self, transfer: _Transfer) -> DownloadOutcome:
        """Ask one url after the other until the file is in its place."""
        wanted, failures = transfer.wanted, list[Failure]()
        try:
            partial = self._open_partial(transfer)
        except FileExistsError:
            return DownloadOutcome(wanted, obtained=True, url=None, failures=())
        urls, deferred = list(wanted.urls), set[str]()
        with closing(partial):
            while urls:
                url = urls.pop(0)
                # A url that was deferred offers nothing new: it gets the patience of the last one.
                another = wanted.alternatives or any(each not in deferred for each in urls)
                transfer.end = time.monotonic() + DEADLINE if another else math.inf
                try:
                    self._ask(url, transfer, partial)
                except RequestError as fault:
                    # A slow one is asked last: it may be the only one that has the file.
                    again = url not in deferred and (urls or not wanted.alternatives)
                    if fault.kind is FaultKind.SLOW and again:
                        deferred.add(url)
                        urls.append(url)
                    else:
                        failures.append(Failure(url, str(fault), fault.kind in client.SILENT))
                else:
                    partial.keep()
                    return DownloadOutcome(wanted, obtained=True, url=url, failures=tuple(failures))
        return DownloadOutcome(wanted, obtained=False, url=None, failures=tuple(failures))

    def _open_partial(self, transfer: _Transfer) -> Partial:
        """Open what has arrived of a file, once no other process brings it.

        Raises FileExistsError if another one has brought it.
        """
        while True:
            try:
                return Partial(transfer.to, transfer.wanted.sha256)
            except BusyError:
                self._pause(TICK)

    def _ask(self, url: str, transfer: _Transfer, partial: Partial) -> None:
        """Bring what is missing of a file from one url, asked again where that may help.

        Raises RequestError.
        """
        host = self.hosts[_host_of(url)]
        pauses, furthest, grown_at = iter(self.pauses), 0, time.monotonic()
        # Later than any moment: no attempt has failed to connect.
        missed_at = math.inf
        while fault := self._attempt(url, host, transfer, partial):
            # No pause: the server answered, and only the question was wrong.
            if fault.kind is FaultKind.RESTART:
                continue
            # A server that cuts each answer still gives a large file, a piece at a time; with a
            # byte an answer it would never end.
            now = time.monotonic()
            if transfer.arrived - furthest > LEAST_SPEED * (now - grown_at):
                pauses, furthest, grown_at = iter(self.pauses), transfer.arrived, now
            pause = next(pauses, None)
            if fault.kind in client.SILENT:
                # It did not answer this file twice, nor any other one in between. One without an
                # address is not asked a second time.
                missed_twice = host.heard_at <= missed_at < math.inf
                if fault.kind is FaultKind.NO_SUCH_HOST or missed_twice:
                    host.gone = str(fault)
                missed_at = now
            if host.gone or pause is None or fault.after > PATIENCE:
                raise fault
            host.rests_until = max(host.rests_until, now + fault.after)
            if fault.after > SHORT_PATIENCE and transfer.end < math.inf:
                # The file returns to this server when no other has it.
                raise RequestError(FaultKind.SLOW, str(fault))
            self._pause(pause)

    def _attempt(
        self, url: str, host: _Host, transfer: _Transfer, partial: Partial
    ) -> RequestError | None:
        """Ask a url once, as soon as its server may be asked.

        Returns why it has to be asked again; raises RequestError where that would not help.
        """
        with host.slots:
            self._pause(host.rests_until - time.monotonic())
            with self.slots:
                if host.gone:
                    raise RequestError(FaultKind.UNREACHABLE, host.gone)
                try:
                    self._receive(url, host, transfer, partial)
                except RequestError as fault:
                    final = fault.kind in {FaultKind.REFUSED, FaultKind.OVERSIZE}
                    # A server that announces more than it has ends every answer with a cut, also
                    # the complete one, and another one does not hang up.
                    if not final and partial.is_complete():
                        return None
                    if fault.kind in {FaultKind.OVERSIZE, FaultKind.RESTART}:
                        partial.restart()
                    if final or fault.kind is FaultKind.SLOW:
                        raise
                    return fault
        return None

    def _receive(self, url: str, host: _Host, transfer: _Transfer, partial: Partial) -> None:
        """Bring what is missing of a file; it is complete and right unless an error is raised.

        A server may send all of the file where only the rest was asked for. No validator goes with
        the range: mirrors give different ones for the same bytes, and the digest of the whole
        decides in the end.
        """
        wanted = transfer.wanted
        if not wanted.sha256:
            # Nothing could tell whether the rest belongs to the same file.
            partial.restart()
        start = transfer.arrived = partial.size
        space = start + partial.free_space()
        headers = client.PLAIN | ({"Range": f"bytes={start}-"} if start else {})
        try:
            response = client.get(self.session, url, headers)
        except Exception as fault:
            # Libraries raise what they like for an answer that makes no sense: ValueError,
            # UnicodeError, …
            raise RequestError.of(fault) from fault
        with response:
            begun, total = _file_span(response, start)
            largest = _size_limit(wanted, total, space)
            transfer.announced = total
            if not begun:
                partial.restart()
            with self._watching(_Answer(response.raw, transfer.end)) as answer:
                for piece in answer.pieces():
                    # However many files of unknown size come at once, room is left for the others.
                    crowded = wanted.size is None and partial.free_space() < space // 4
                    if crowded or partial.size + len(piece) > largest:
                        raise RequestError(
                            FaultKind.OVERSIZE,
                            f"the server sends more than the {largest:,} bytes that the file may "
                            "have, or that the disk has to spare",
                        )
                    partial.append(piece)
                    transfer.arrived = partial.size
                    host.heard_at = time.monotonic()
        _verify(wanted, partial, begun, total)

    @contextmanager
    def _watching(self, answer: _Answer) -> Iterator[_Answer]:
        """Let the main thread cut an answer while it is read."""
        with self.lock:
            if self.fault:
                raise _StoppedError
            self.active.append(answer)
        try:
            yield answer
        finally:
            with self.lock:
                self.active.remove(answer)


def _host_of(url: str) -> str:
    """Return the server of a url; empty if it cannot be read."""
    with suppress(ValueError):
        return urlsplit(url).netloc
    return ""


def _file_span(response: "requests.Response", start: int) -> tuple[int, int | None]:
    """Return where the bytes begin and how large the file is, as far as the server states it.

    Raises RequestError if the answer does not hold the file.
    """
    why = f"the server answered {client.status_text(response)}"
    code = response.status_code
    if code in client.TRANSIENT:
        raise RequestError(FaultKind.BROKEN, why, client.retry_after(response))
    span = re.fullmatch(
        r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)",
        response.headers.get("Content-Range", ""),
    )
    if code == PARTIAL_CONTENT and span and int(span[1]) == start:
        return start, client.parse_number(span[2])
    if start and code in {PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE}:
        raise RequestError(FaultKind.RESTART, why)
    if code != OK:
        raise RequestError(FaultKind.REFUSED, why)
    return 0, client.content_length(response)


def _size_limit(wanted: WantedFile, announced: int | None, space: int) -> int:
    """Return how many bytes a file may have, where a server announces so many.

    `space` is what the disk has for it. Raises RequestError for an announcement that cannot be, or
    must not be, believed.
    """
    size = wanted.size
    # Without a stated size one file may not use up the disk that the others need too.
    most = min(LARGEST, space // 2) if size is None else size
    if announced is not None and (announced > most or size not in {None, announced}):
        raise RequestError(
            FaultKind.OVERSIZE,
            f"the server announces {announced:,} bytes, "
            + (
                f"and without a size in the lock file, at most {most:,} are accepted on this disk"
                if size is None
                else f"the file has {size:,}"
            ),
        )
    return most if announced is None else announced


def _verify(wanted: WantedFile, partial: Partial, begun: int, total: int | None) -> None:
    """Raise RequestError for a file that did not end as it should; wrong bytes are thrown away."""
    if partial.is_complete():
        return
    expected = total if wanted.size is None else wanted.size
    if expected is not None and partial.size < expected:
        raise RequestError(
            FaultKind.BROKEN, f"the connection ended after {partial.size:,} of {expected:,} bytes"
        )
    if not wanted.sha256:
        return
    # Two servers may hold different files; the same url is asked again for all of it.
    if begun:
        raise RequestError(
            FaultKind.RESTART, "the rest does not belong to what another answer began with"
        )
    found = partial.sha256()
    partial.restart()
    raise RequestError(
        FaultKind.REFUSED,
        f"it sent other bytes than the pinned ones: sha256 {found}, wanted {wanted.sha256}",
    )
