"""The pages of the site, and what programs read: an Atom feed, ``latest.json``, badges.

The first page has a line for each target, trouble first, with what broke and what helps.
"""

import datetime as dt
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from tfwright.documents.nightly import NightlyFile
from tfwright.nightly import notices, pages, retention, timer
from tfwright.nightly.notices import Notice
from tfwright.nightly.pages import charts
from tfwright.nightly.pages.views import RECIPES, TargetView, install, views
from tfwright.nightly.state import LOCK, NightVerdict, PastNight, State, WaitingBuild, stamp
from tfwright.tools import batch as batches
from tfwright.tools.batch import FileBatch
from tfwright.tools.git import forge
from tfwright.tools.process import file_lock
from tfwright.tools.redaction import redact_text
from tfwright.tools.render import renderer

BADGES = "badges"
NIGHTS = "nights"
BUILDS_SHOWN = 120
"""Builds on the page of one recipe."""
PLOTTED = 60
"""Builds in a plot."""
NIGHTS_SHOWN = 60
"""Nights that have a page."""
ONE_LIST = 12
"""Recipes with a current wheel from which on they are grouped by release."""
ENTRIES = 50
"""Events in the feed."""
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML 1.0 nor a page can hold; a log can."""


@dataclass(frozen=True)
class NightLine:
    """What one night gave for one target."""

    view: TargetView
    night: NightVerdict
    before: str
    """What the night before gave; empty before the first."""


@dataclass(frozen=True)
class Tonight:
    """The night under way, or cut off."""

    began: dt.datetime
    queue: Sequence[WaitingBuild]
    """What runs, then what waits."""
    ends: Mapping[str, dt.datetime]
    """When each build of the queue is expected to end."""
    cut_off: bool = False
    """Whether no process runs it: it was killed, or failed as a whole."""

    @property
    def running(self) -> int:
        """How many builds run."""
        return 0 if self.cut_off else sum(build.began is not None for build in self.queue)

    @property
    def end(self) -> dt.datetime | None:
        """When the last build is expected to end."""
        return max(self.ends.values(), default=None)

    def summary(self) -> dict[str, object]:
        """Return its entry in ``latest.json``."""
        return {
            "began": stamp(self.began),
            "cut-off": self.cut_off,
            "expected-end": stamp(self.end) if self.end else None,
            "running": [build.target for build in self.queue[: self.running]],
            "waiting": [build.target for build in self.queue[self.running :]],
        }


def write(  # noqa: PLR0913 one choice each, all with a default
    nightly: NightlyFile,
    state: State,
    now: dt.datetime,
    yanked: Mapping[str, str],
    *,
    only_first: bool = False,
    ended: bool = False,
) -> None:
    """Write the pages, feed, badges and `latest.json`.

    `yanked` holds the reason for each yanked wheel, by file name. With `only_first`, the pages that
    a build which begins does not change are left as they are. `ended` says that the last night ends
    now, which the state keeps only once its site is complete.
    """
    site = nightly.site
    all_views = views(nightly, state, yanked, now)
    listed = [view for view in all_views if view.listed]
    common = {
        "title": redact_text(nightly.title),
        "url": nightly.url or "",
        "now": now,
        "words": pages,
        "forge": forge,
        "redacted": redact_text,
        "install": install,
        "as_html": notices.as_html,
    }
    past = state.nights(NIGHTS_SHOWN)
    if ended:
        past[0] = replace(past[0], ended=now)
    with batches.file_batch(site) as batch:
        pen = Pen(site, batch, common)
        if not only_first:
            _add_recipes(nightly, state, all_views, pen)
            _add_nights(past, all_views, pen)
            pen.add("matrix.html", rows=matrix(listed), pythons=pythons(listed))
            pen.add("compare.html")
            pen.add("feed.xml", events=_events(nightly, state))
        latest = {"format": 1, "made": stamp(now), "targets": [view.summary() for view in listed]}
        last = past[0] if past else None
        current = tonight(last, state.queued(), now) if last and not last.ended else None
        sentence, tone = headline(listed)
        if current:
            if not file_lock.is_held(nightly.directory / LOCK):
                current = replace(current, ends={}, cut_off=True)
                sentence, tone = f"The last night was cut off. {sentence}", "bad"
            latest["night"] = current.summary()
        known: dict[str, Any] = {"listed": listed, "last": last, "tonight": current}
        pen.add("metrics.txt", past=past, **known)
        begun = stamp(last.started) if last else None
        health = {"status": HEALTH[tone], "output": sentence, "time": stamp(now), "night": begun}
        for name, document in (("health", health), ("latest", latest)):
            batch.add(site / f"{name}.json", (json.dumps(document, indent=1) + "\n").encode())
        # The first page comes last: whoever reads it finds what it links.
        pen.add(
            "index.html",
            groups=groups(listed),
            **known,
            sentence=sentence,
            tone=tone,
            next=timer.next_start(nightly.directory, now),
            stale_nights=nightly.notices.stale_nights,
        )
        batch.place()
    # Pages of targets that nothing names any more would go on to say how they once stood.
    names = {view.target.name for view in all_views}
    numbers = {str(night.number) for night in past} | {"index"}
    for folder, wanted in ((RECIPES, names), (BADGES, names), (NIGHTS, numbers)):
        for path in site.glob(f"{folder}/*.*"):
            if path.stem not in wanted:
                path.unlink()


@dataclass(frozen=True)
class Pen:
    """Writes pages of a site into a batch."""

    site: Path
    batch: FileBatch
    common: Mapping[str, object]
    """What every page may name."""

    def add(self, place: str, template: str = "", **values: object) -> None:
        """Add a page, by the template of its own name or another; it finds the site as `root`."""
        root = "../" * place.count("/")
        text = renderer(f"nightly_{template or place}.j2")({**self.common, "root": root, **values})
        self.batch.add(self.site / place, ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text).encode())


def _add_recipes(
    nightly: NightlyFile, state: State, all_views: Sequence[TargetView], pen: Pen
) -> None:
    """Add the page and the badge of each target."""
    days = dt.timedelta(days=nightly.retention.hidden_days)
    for view in all_views:
        name = view.target.name
        builds = view.builds[-BUILDS_SHOWN:]
        pen.add(
            f"{RECIPES}/{name}.html",
            "recipe.html",
            view=view,
            builds=builds[::-1],
            nights=runs(state.history_of(name, BUILDS_SHOWN)[::-1]),
            deletion={build.id: build.hidden + days for build in builds if build.hidden},
            known={build.id for build in view.builds},
            kept=retention.kept_by_file(nightly, builds),
            plots=charts.history(builds[-PLOTTED:], state.smoke(name, PLOTTED)),
        )
        pen.add(f"{BADGES}/{name}.svg", "badge.svg", view=view)


def _add_nights(past: Sequence[PastNight], all_views: Sequence[TargetView], pen: Pen) -> None:
    """Add a page for each night, and their list."""
    lines: dict[int, list[NightLine]] = defaultdict(list)
    for view in all_views:
        before = ""
        for night_verdict in view.nights:
            lines[night_verdict.night].append(NightLine(view, night_verdict, before))
            before = night_verdict.verdict
    nights = []
    for later, night, earlier in zip([None, *past], past, [*past[1:], None], strict=False):
        own = lines[night.number]
        counts = Counter(line.night.verdict for line in own)
        nights.append((night, counts))
        around = {"later": later, "earlier": earlier}
        place = f"{NIGHTS}/{night.number}.html"
        pen.add(place, "night.html", night=night, lines=own, counts=counts, **around)
    pen.add(f"{NIGHTS}/index.html", "nights.html", nights=nights)


def runs(nights: Sequence[NightVerdict]) -> list[list[NightVerdict]]:
    """Return nights in a row that gave the same, without a build in between, as the nights come."""
    alike = groupby(nights, lambda night: (night.verdict, night.detail, night.build))
    return [list(own) for _, own in alike]


def groups(listed: Sequence[TargetView]) -> list[tuple[str, list[TargetView]]]:
    """Return the targets under their headings: those in trouble, then the others by release."""
    found: dict[str, list[TargetView]] = defaultdict(list)
    fine = [view for view in listed if view.status.fine]
    if trouble := [view for view in listed if not view.status.fine]:
        found["Without a current wheel"] = trouble
    for view in sorted(fine, key=lambda view: view.facts.order):
        found[view.facts.family if len(fine) > ONE_LIST else "With a current wheel"].append(view)
    return [*found.items()]


Matrix = dict[str, dict[str, dict[str, list[TargetView]]]]
"""Targets by release, GPU code and Python."""


def matrix(listed: Sequence[TargetView]) -> Matrix:
    """Return the targets by what their wheels are for, the newest release first."""
    found: Matrix = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for view in sorted(listed, key=lambda view: (view.facts.order, view.facts.gpu)):
        facts = view.facts
        found[facts.family][facts.gpu or "unknown"][facts.python or "unknown"].append(view)
    return found


def pythons(listed: Sequence[TargetView]) -> list[str]:
    """Return the Pythons of the matrix, oldest first."""
    named = {view.facts.python or "unknown" for view in listed}
    return sorted(named, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def tonight(night: PastNight, queue: Sequence[WaitingBuild], now: dt.datetime) -> Tonight:
    """Return the night under way, with when its builds are expected to end."""
    ends: dict[str, dt.datetime] = {}
    free: list[dt.datetime] = []
    for build in queue:
        lasts = dt.timedelta(seconds=build.seconds)
        # As many go on side by side as run now; what takes longer than expected may end any time.
        start = build.began or (heapq.heappop(free) if free else now)
        ends[build.target] = max(start + lasts, now)
        heapq.heappush(free, ends[build.target])
    return Tonight(night.started, queue, ends)


HEALTH = {"good": "pass", "dim": "pass", "warn": "warn", "bad": "fail"}
"""What `health.json` says, by the tone of the first line."""


def headline(found: Sequence[TargetView]) -> tuple[str, str]:
    """Say in one sentence whether all is well; return it with its tone."""
    if not found:
        return "No recipe is listed in nightly.toml yet.", "dim"
    fine = sum(view.status.fine for view in found)
    if fine == len(found):
        every = "The recipe has" if fine == 1 else f"All {fine} recipes have"
        return f"{every} a current wheel.", "good"
    # In the order of the page.
    counts = Counter(view.status.label for view in found)
    parts = ", ".join(f"{count} {word}" for word, count in counts.items())
    tone = "bad" if any(view.status.tone == "bad" for view in found) else "warn"
    return f"{fine} of {len(found)} recipes have a current wheel: {parts}.", tone


def _events(nightly: NightlyFile, state: State) -> list[tuple[str, Notice]]:
    """Return the last notices and wheels, newest first, each with its time."""
    events = notices.newest(state, ENTRIES)
    for build in state.builds():
        if build.listed and build.good:
            at = stamp(build.started + dt.timedelta(seconds=build.seconds))
            events.append((at, notices.wheel_notice(nightly, build)))
    events.sort(key=lambda event: (event[0], event[1].thread), reverse=True)
    return events[:ENTRIES]
