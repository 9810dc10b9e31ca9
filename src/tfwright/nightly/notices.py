"""Notices: one thread for each cause, opened by a failure and closed by the next success.

A notice is first written into the state and then sent, so that a channel that fails delays it and
loses nothing. No failure to send ever fails the night.
"""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from tfwright.documents.nightly import NightlyFile, targets
from tfwright.errors import TfwrightError
from tfwright.nightly.builds import Breakage
from tfwright.nightly.standing import Standing, stand
from tfwright.nightly.state import State, sound_rows
from tfwright.tools import json_text

MOST_ATTEMPTS = 50
"""After so many nights a notice is given up; the page still shows what it was about."""

PATIENCE = 3
"""Failures in a row after which a channel counts as down."""

CUT_OFF = "build-host cut-off"
"""The thread of nights that do not come to their end."""

KNOWN = "known"
"""The kind of check that notes when a target was first seen."""


@dataclass(frozen=True)
class Notice:
    """Something that the owner of the build host should know."""

    thread: str
    """The same for every notice about one cause, so that mail programs group them."""
    target: str
    kind: str
    """``failing``, ``stale``, ``fixed``, or ``cut off`` for a whole night."""
    subject: str
    text: str
    url: str = ""
    """The page of the build, if the site has an address."""


class Channel(Protocol):
    """A way to send notices."""

    @property
    def name(self) -> str:
        """A name that stays the same, without secrets."""

    def send(self, notice: Notice) -> None:
        """Send one notice; raise TfwrightError if that failed."""


def raise_all(
    nightly: NightlyFile, state: State, now: dt.datetime, channels: Sequence[Channel]
) -> list[Notice]:
    """Write a notice for every transition since the last call; return them."""
    history = state.history()
    changes = []
    for target in targets(nightly):
        nights = history.get(target.name, [])
        stale_nights = nightly.notices.stale_nights
        standing = stand(nights, now, stale_nights)
        if not nights:
            standing = _waiting(state, target.name, now, stale_nights)
        build = next((fell.build for fell in reversed(nights) if fell.build), "")
        url = f"{nightly.url}builds/{build}/" if nightly.url and build else ""
        known = _open_threads(state, target.name)
        kind = _kind(standing, stale_nights)
        changes += _changes(target.name, standing, kind, known, url)
    _record(state, changes, now, channels)
    return changes


def raise_cut_off(state: State, now: dt.datetime, channels: Sequence[Channel]) -> None:
    """Write a notice that the last night was cut off, once.

    No recipe is to blame for it, so that its thread has no target.
    """
    started = state.last_night()
    if started is None or _open_threads(state, ""):
        return
    text = (
        f"The night of {started:%Y-%m-%d %H:%M} UTC was killed, or failed as a whole. The next "
        "start goes on with it.\nIts last lines: journalctl --user -u tfwright-nightly, without "
        "--user for a system unit.\n"
    )
    subject = "the build host: a night did not come to its end"
    raised = Notice(CUT_OFF, "", "cut off", subject, text)
    _record(state, [raised], now, channels)


def close_cut_off(state: State, now: dt.datetime, channels: Sequence[Channel]) -> None:
    """Write a notice that a night came to its end, if one was cut off before."""
    text = "A night came to its end again.\n"
    closed = [
        Notice(thread, "", "fixed", "the build host: fixed", text)
        for thread in _open_threads(state, "")
    ]
    _record(state, closed, now, channels)


def _waiting(state: State, target: str, now: dt.datetime, stale_nights: int) -> Standing:
    """Return how a target stands that no night has come to: stale, if it waits for too long."""
    known = state.checks(KNOWN).get(target)
    if known is None:
        state.check(target, KNOWN, now, passed=True, detail="")
    elif abs(now - known.at) > dt.timedelta(days=stale_nights):
        text = f"No night has come to it since {known.at:%Y-%m-%d}."
        return Standing("stale", known.at, None, detail=text)
    return Standing("never run", None, None)


def _changes(
    target: str, standing: Standing, kind: str, known: Sequence[str], url: str
) -> list[Notice]:
    """Return what there is to say of one target; `known` are its open threads."""
    if standing.fine:
        text = "The last night was good.\n"
        return [Notice(name, target, "fixed", f"{target}: fixed", text) for name in known]
    cause = Breakage(stage=kind, line=standing.detail).thread if kind == "failing" else ""
    thread = f"{target} {kind} {cause}".rstrip()
    # An open thread was announced already: one notice for each cause, not one each night.
    if not kind or thread in known:
        return []
    since = f" since {standing.since:%Y-%m-%d}" if standing.since else ""
    good = f"{standing.last_good:%Y-%m-%d}" if standing.last_good else "never"
    text = f"{standing.detail or standing.word}\nLast good: {good}.\n"
    return [Notice(thread, target, kind, f"{target}: {standing.word}{since}", text, url)]


def _kind(standing: Standing, stale_nights: int) -> str:
    """Return what a target's thread is about; empty if there is nothing to say yet."""
    if standing.word in {"newly failing", "still failing"}:
        return "failing"
    # One blocked night says little; many of them leave users without a new wheel.
    stale = standing.word == "stale" or standing.nights_bad >= stale_nights
    return "stale" if stale else ""


def _open_threads(state: State, target: str) -> list[str]:
    rows = state.database.execute(
        "select thread from thread where target = ? and closed is null", (target,)
    )
    return [row[0] for row in rows]


def _record(
    state: State, changes: Sequence[Notice], now: dt.datetime, channels: Sequence[Channel]
) -> None:
    """Open and close threads and queue their notices, in one transaction: none is lost."""
    with state.database as transaction:
        for notice in changes:
            closed = now.isoformat() if notice.kind == "fixed" else None
            # A cause that comes back opens its old thread again.
            transaction.execute(
                "insert into thread (thread, target, opened, closed) values (?, ?, ?, ?)"
                " on conflict (thread) do update set closed = excluded.closed",
                (notice.thread, notice.target, now.isoformat(), closed),
            )
            body = json.dumps(asdict(notice))
            for channel in channels:
                transaction.execute(
                    "insert into notice (thread, body, created, channel) values (?, ?, ?, ?)",
                    (notice.thread, body, now.isoformat(), channel.name),
                )


def send(state: State, now: dt.datetime, channels: Sequence[Channel]) -> int:
    """Send what waits, oldest first; return how many notices went out.

    A channel that fails several times in a row is left alone until the next night.
    """
    sent = 0
    # Each channel has its own queue: one that fails does not delay the others.
    for channel in channels:
        rows = state.database.execute(
            "select number, body from notice where channel = ? and sent is null"
            " and attempts < ? order by number",
            (channel.name, MOST_ATTEMPTS),
        ).fetchall()
        failures = 0
        for number, body in rows:
            with sound_rows():
                notice = Notice(**json_text.parsed(body))
            problem = _sent(channel, notice)
            _mark(state, number, now, problem)
            sent += not problem
            # One notice that a channel refuses must not hold up the others. But a mail server
            # that is down would cost a timeout for each of them.
            failures = failures + 1 if problem else 0
            if failures == PATIENCE:
                break
    return sent


def _sent(channel: Channel, notice: Notice) -> str:
    """Send one notice; return why that failed."""
    try:
        channel.send(notice)
    except TfwrightError as fault:
        return fault.what
    except Exception as fault:  # noqa: BLE001 a flaw in a channel must not cost the night
        return f"a flaw in tfwright: {type(fault).__name__}: {fault}"
    return ""


def _mark(state: State, number: int, now: dt.datetime, problem: str) -> None:
    with state.database as transaction:
        transaction.execute(
            "update notice set sent = ?, attempts = attempts + 1, problem = ? where number = ?",
            (None if problem else now.isoformat(), problem, number),
        )
