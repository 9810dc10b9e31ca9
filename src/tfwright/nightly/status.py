"""What the nights say of a target: one word and a date; and which builds its pointers name."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tfwright.documents.nightly import NightlyFile
from tfwright.nightly.state import KeptBuild, NightVerdict, State

TONES = {
    "newly failing": "bad",
    "still failing": "bad",
    "stale": "bad",
    "blocked": "warn",
    "out of budget": "warn",
    "never run": "dim",
    "withdrawn": "warn",
    "newly fixed": "good",
    "untested": "warn",
    "good": "good",
    "good-unchanged": "good",
}
"""The words for a target and their colours, those in trouble first: the order of a page."""
GOOD = ("good", "unchanged", "untested")
FAILED = ("failed", "smoke failed")


@dataclass(frozen=True)
class Status:
    """One target, now."""

    word: str
    """One of TONES."""
    since: dt.datetime | None = None
    """When this began: the first good night, or the first failure in a row."""
    last_good: dt.datetime | None = None
    nights_bad: int = 0
    """Nights since the last good one."""
    detail: str = ""
    nights: int = 0
    """Nights in a row with the same verdict."""

    @property
    def phrase(self) -> str:
        """The word, and how long it holds: ``blocked for 7 nights``, ``stale since 2026-11-02``."""
        if self.word == "blocked" and self.nights > 1:
            return f"blocked for {self.nights} nights"
        return self.word + (f" since {self.since:%Y-%m-%d}" if self.since else "")

    @property
    def label(self) -> str:
        """The word as a page writes it."""
        return self.word.removeprefix("good-")

    @property
    def fine(self) -> bool:
        """Whether users have a current wheel."""
        return self.word in {"good", "good-unchanged", "untested", "newly fixed"}

    @property
    def tone(self) -> str:
        """The colour of the word."""
        return TONES[self.word]


def status_of(history: Sequence[NightVerdict], now: dt.datetime, stale_nights: int) -> Status:
    """Return a target's status after its verdicts, oldest first.

    A night out of budget or blocked by the host says nothing about the recipe: it neither breaks
    nor mends, but it lets the target grow stale.
    """
    if not history:
        return Status("never run")
    good_since = bad_since = last_good = built = None
    nights_bad, fixed, broke = 0, False, ""
    for night in history:
        if night.verdict in GOOD:
            fixed = bad_since is not None
            good_since = night.at if fixed or good_since is None else good_since
            last_good, bad_since, nights_bad = night.at, None, 0
            # "unchanged" is good without a build: the page dates the wheel, not the night.
            built = night.at if night.build else built
            continue
        nights_bad, fixed = nights_bad + 1, False
        if night.verdict in FAILED:
            broke, bad_since = night.detail, bad_since or night.at
    last = history[-1]
    same = [*takewhile(lambda night: night.verdict == last.verdict, reversed(history))]
    run = same[-1].at
    failing = bad_since is not None
    # A target that fails or is blocked is reported as that, however long it lasts: the word says
    # what to do. A night far in the future has an unknown age: the clock was wrong then.
    stale = (nights_bad >= stale_nights and not failing and last.verdict != "blocked") or (
        abs(now - last.at) > dt.timedelta(days=stale_nights)
    )
    # The first rule that holds gives the word: what keeps users from a wheel comes first.
    rules = (
        (stale, "stale", last_good or history[0].at),
        (last.verdict == "blocked", "blocked", run),
        (last.verdict in FAILED and bad_since == last.at, "newly failing", bad_since),
        (failing, "still failing", bad_since),
        (last.verdict == "skipped", "out of budget", run),
        (fixed, "newly fixed", last.at),
        (last.verdict == "unchanged", "good-unchanged", built or good_since),
        (last.verdict == "untested", "untested", good_since),
        (True, "good", good_since),
    )
    word, since = next((word, since) for holds, word, since in rules if holds)
    # A night out of budget does not say what broke.
    detail = broke if word == "still failing" else last.detail
    if stale and not detail:
        detail = no_night(last.at)
    return Status(word, since, last_good, nights_bad, detail, len(same))


def no_night(since: dt.datetime) -> str:
    """Say that no night came to a target, and what helps."""
    return f"No night has come to it since {since:%Y-%m-%d}. Run 'invoke nightly'."


def pointers(
    nightly: NightlyFile, state: State, kept: Iterable[KeptBuild]
) -> dict[str, dict[str, KeptBuild]]:
    """Return by target the build that each of its pointers names; the builds come oldest first."""
    reproduced = state.reproduced()
    found = defaultdict[str, dict[str, KeptBuild]](dict)
    for build in kept:
        if not build.listed:
            continue
        own = found[build.target]
        own["nightly"] = build
        if build.good:
            own["last-good"] = build
        if build.tested == "passed" and (build.id in reproduced or not nightly.reproduce):
            own["stable"] = build
    return dict(found)
