"""The download engine: many files at once, each verified, from the first url that gives it."""

import math
import ssl
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tfwright.errors import Evidence, SilentServerError, SupplyError
from tfwright.progress import SILENCE, Progress
from tfwright.tools import files
from tfwright.tools.http import reply
from tfwright.tools.http.partial import BusyError, Partial
from tfwright.tools.http.reply import (
    NoRangeError,
    OversizeError,
    RefusedError,
    Reply,
    SlowError,
    TransientError,
    UnreachableError,
)
from tfwright.tools.http.transfer import (
    PAUSES,
    DownloadOutcome,
    Failure,
    FileTransfer,
    Limits,
    WantedFile,
)

if TYPE_CHECKING:
    import requests

TICK = 0.1
"""Seconds between two reports, and two looks at a file that another process brings."""
GRACE = 1.0
"""Seconds that threads get to release their files at the end; after Ctrl-C, a thread that still
waits for a server is left behind."""
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
    transfers = [FileTransfer(wanted, store.path(wanted.sha256), limits) for wanted in requests]
    return _Run(transfers, limits).complete(report)


def download(  # noqa: PLR0913 each is a fact of its own
    url: str,
    to: Path,
    *,
    sha256: str = "",
    report: Callable[[Progress], None] = SILENCE.progress,
    pauses: tuple[float, ...] = PAUSES,
    alternatives: bool = False,
) -> str:
    """Download one file to `to` and return its SHA-256.

    Without `sha256` whatever comes is accepted.

    Raises SupplyError, of the kind SilentServerError where no server answered; `to` is then as it
    was.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    # On the same disk, so that the move at the end is a rename.
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as room:
        arrived = Path(room, "file")
        limits = Limits(pauses=pauses)
        name = url.rpartition("/")[2]
        wanted = WantedFile(name, sha256, (url,), alternatives=alternatives)
        (outcome,) = _Run([FileTransfer(wanted, arrived, limits)], limits).complete(report)
        if not outcome.obtained:
            raise _unobtainable(url, outcome.failures[0])
        files.move(arrived, to, 0o644)
    return files.sha256(to)


def _unobtainable(url: str, failure: Failure) -> SupplyError:
    kind = SilentServerError if failure.silent else SupplyError
    return kind(
        f"{url} could not be downloaded: {failure.why}",
        remedy="Check the network and the proxy variables, or name a mirror in the host file.",
        evidence=Evidence(where=url),
    )


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

    def __init__(self, transfers: Sequence[FileTransfer], limits: Limits) -> None:
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
        self.active: dict[int, Reply] = {}
        self.trust = ssl.create_default_context()
        self.fault: BaseException | None = None

    def complete(self, report: Callable[[Progress], None]) -> list[DownloadOutcome]:
        """Run until every file has its outcome."""
        count = min(self.limits.at_once, len(self.waiting))
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        try:
            for thread in threads:
                thread.start()
            while not self._over():
                with self.turn:
                    # Each tick, to report the progress and to find servers that are too slow.
                    self.turn.wait(TICK)
                    for answer in self.active.values():
                        answer.give_up_if_slow()
                report(self._progress())
        except BaseException as fault:
            self._stop(fault)
            raise
        finally:
            self._dismiss(threads)
        if self.fault:
            raise self.fault
        return [transfer.outcome for transfer in self.transfers if transfer.outcome]

    def _over(self) -> bool:
        return self.fault is not None or all(transfer.outcome for transfer in self.transfers)

    def _progress(self) -> Progress:
        """Sum up what this run transfers, without the files that were there or have failed."""
        ended = [transfer.outcome for transfer in self.transfers if transfer.outcome]
        moving = list[FileTransfer]()
        under_way = list[str]()
        for transfer in self.transfers:
            # Only a file that this run downloaded has a url in its outcome.
            if not transfer.outcome or transfer.outcome.url:
                moving.append(transfer)
            if transfer.arrived and not transfer.outcome:
                under_way.append(transfer.wanted.name)
        totals = [transfer.total for transfer in moving]
        counted = f"{len(ended)} of {len(self.transfers)} files"
        return Progress(
            done=sum(transfer.arrived for transfer in moving),
            # One unknown size makes the sum unknown.
            total=None if None in totals else sum(filter(None, totals)),
            unit="B",
            doing=", ".join([counted, *under_way[:1]]),
            failures=sum(not outcome.obtained for outcome in ended),
        )

    def _stop(self, fault: BaseException) -> None:
        """Make every thread end, also those that wait for bytes."""
        with self.turn:
            self.fault = self.fault or fault
            for answer in self.active.values():
                answer.cut()
            self.turn.notify_all()

    def _dismiss(self, threads: Sequence[threading.Thread]) -> None:
        """Let the threads end, and leave nothing locked."""
        deadline = time.monotonic() + GRACE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for transfer in self.waiting:
            transfer.release()

    def _work(self) -> None:
        """Take files as long as there are any; an error that concerns all of them ends the run."""
        from tfwright.tools.http import connections

        try:
            with connections.session(self.trust) as session:
                while transfer := self._next():
                    self._advance(transfer, session)
        # It is raised again in the thread that waits for the outcomes.
        except BaseException as fault:  # noqa: BLE001
            self._stop(fault)

    def _next(self) -> FileTransfer | None:
        """Wait for a file that can continue; None when the run is over."""
        with self.turn:
            while not self._over():
                for transfer in filter(self._ready, self.waiting):
                    self.waiting.remove(transfer)
                    self.hosts[transfer.host].busy += 1
                    return transfer
                self.turn.wait(TICK)
        return None

    def _ready(self, transfer: FileTransfer) -> bool:
        host = self.hosts[transfer.host]
        rested = max(transfer.not_before, host.rests_until) <= time.monotonic()
        # A file of a lost host is ready at once: it fails, and turns to its next url.
        return bool(host.gone) or (rested and host.busy < self.limits.per_host)

    def _advance(self, transfer: FileTransfer, session: "requests.Session") -> None:
        """Make one attempt; keep the file if it is complete, or let it wait for the next."""
        try:
            complete = self._visit(transfer, session)
            if complete and transfer.partial:
                transfer.partial.keep()
                transfer.conclude(obtained=True, url=transfer.url)
        finally:
            with self.turn:
                if not transfer.outcome:
                    self.waiting.append(transfer)
                self.turn.notify_all()

    def _visit(self, transfer: FileTransfer, session: "requests.Session") -> bool:
        """Make one attempt.

        The host is free for the next file before this one is flushed to the disk.
        """
        host = self.hosts[transfer.host]
        try:
            partial = self._open(transfer)
            return partial is not None and self._attempt(transfer, partial, session)
        finally:
            with self.turn:
                host.busy -= 1
                self.turn.notify()

    def _open(self, transfer: FileTransfer) -> Partial | None:
        """Continue what is in the store; None if another process does, or if it is everything."""
        try:
            transfer.partial = transfer.partial or Partial(transfer.to, transfer.wanted.sha256)
        except BusyError:
            transfer.wait(TICK)
        except FileExistsError:
            transfer.conclude(obtained=True)
        return transfer.partial

    def _attempt(
        self, transfer: FileTransfer, partial: Partial, session: "requests.Session"
    ) -> bool:
        """Ask a url once, and return whether the file is complete now.

        If not, decide how to continue.
        """
        try:
            self._transfer(transfer, partial, session)
        except OversizeError as fault:
            # What arrived cannot be a part of the wanted file.
            partial.restart()
            transfer.fail(str(fault))
        except RefusedError as fault:
            gone = bool(self.hosts[transfer.host].gone)
            transfer.fail(str(fault), silent=gone)
        except SlowError as fault:
            # It may have sent everything, and only not hung up.
            if partial.whole():
                return True
            transfer.defer(str(fault))
        except TransientError as fault:
            # A server that announces more than it has ends every answer with a cut, also the
            # complete one.
            if partial.whole():
                return True
            self._put_off(transfer, partial, fault)
        else:
            return True
        return False

    def _transfer(
        self, transfer: FileTransfer, partial: Partial, session: "requests.Session"
    ) -> None:
        """Bring what is missing of a file; it is complete and right unless an error is raised."""
        host = self.hosts[transfer.host]
        if host.gone:
            raise RefusedError(host.gone)
        if not transfer.wanted.sha256:
            # Nothing could tell whether the rest belongs to the same file.
            partial.restart()
        transfer.arrived = partial.size
        bounds = transfer.bounds(partial)
        pace = transfer.begin()
        asked = reply.asking(session, transfer.url, partial.size, bounds, pace)
        with asked as answer, self._watched(answer):
            transfer.total = answer.total or transfer.wanted.size
            for size in answer.into(partial):
                transfer.arrived = size
                host.heard_at = time.monotonic()
        _verify(transfer.wanted, partial, answer)

    @contextmanager
    def _watched(self, answer: Reply) -> Iterator[None]:
        """Let the main thread cut an answer while it is read."""
        with self.turn:
            if self.fault:
                raise TransientError("the run was stopped")
            self.active[id(answer)] = answer
        try:
            yield
        finally:
            with self.turn:
                del self.active[id(answer)]

    def _put_off(self, transfer: FileTransfer, partial: Partial, fault: TransientError) -> None:
        """Decide when the url is asked again, if at all."""
        if isinstance(fault, NoRangeError):
            # No pause: the server answered, and only the question was wrong.
            partial.restart()
            return
        host = self.hosts[transfer.host]
        pause = transfer.next_pause()
        if isinstance(fault, UnreachableError):
            self._doubt(host, transfer, fault)
        if host.gone or pause is None or fault.after > self.limits.patience:
            silent = isinstance(fault, UnreachableError)
            transfer.fail(str(fault), silent=silent)
            return
        host.rests_until = max(host.rests_until, time.monotonic() + fault.after)
        if fault.after > self.limits.short_patience and transfer.another_url():
            # The file returns to this server when no other has it.
            transfer.defer(str(fault))
            return
        transfer.wait(pause)

    def _doubt(self, host: _Host, transfer: FileTransfer, fault: UnreachableError) -> None:
        """Give a host up that did not answer this file twice, nor any other one in between.

        One without an address is not asked a second time.
        """
        missed_twice = host.heard_at <= transfer.missed_at < math.inf
        if fault.unknown or missed_twice:
            host.gone = str(fault)
        transfer.missed_at = time.monotonic()


def _verify(wanted: WantedFile, partial: Partial, answer: Reply) -> None:
    """Raise an error for a file that did not end as it should; wrong bytes are thrown away."""
    if partial.whole():
        return
    expected = answer.total if wanted.size is None else wanted.size
    if expected is not None and partial.size < expected:
        raise TransientError(f"the connection ended after {partial.size:,} of {expected:,} bytes")
    if not wanted.sha256:
        return
    # Two servers may hold different files; the same url is asked again for all of it.
    if answer.start:
        raise NoRangeError("the rest does not belong to what another answer began with")
    found = partial.sha256()
    partial.restart()
    raise RefusedError(
        f"it sent other bytes than the pinned ones: sha256 {found}, wanted {wanted.sha256}"
    )
