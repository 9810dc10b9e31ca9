"""The pages of the site, and what programs read: an Atom feed, ``latest.json``, badges.

The first page has a line for each target, trouble first, with what broke and what helps.
"""

import datetime as dt
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tfwright.documents.nightly import NightlyFile, Target, targets
from tfwright.nightly import pages, retention, timer
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.pages import charts
from tfwright.nightly.pages.charts import Sparkline
from tfwright.nightly.state import CheckedOn, KeptBuild, NightVerdict, State
from tfwright.nightly.status import TONES, Status, status_of
from tfwright.tools import batch as batches
from tfwright.tools.redaction import redacted
from tfwright.tools.render import renderer

RECIPES = "recipes"
BADGES = "badges"
BUILDS_SHOWN = 120
"""Builds on the page of one recipe."""
MARKS = {"bad": "\N{BALLOT X}", "warn": "!", "good": "\N{CHECK MARK}", "dim": "\N{MIDDLE DOT}"}
"""Colour alone tells nothing to one reader in twelve."""
COLOURS = {"good": "#1a7f42", "warn": "#8a6d00", "bad": "#c0292b", "dim": "#656c76"}
"""Of a badge, by the tone of the status."""
ENTRIES = 50
"""Events in the feed."""
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold; a log can."""


@dataclass(frozen=True)
class TargetView:
    """What the pages show of one target."""

    target: Target
    listed: bool
    """Whether nightly.toml still lists it."""
    status: Status
    nights: Sequence[NightVerdict]
    builds: Sequence[KeptBuild]
    """Oldest first."""
    yanked: Mapping[str, str]
    """Reason by wheel, of any target."""
    reproduced: Collection[str]
    """Identifiers of the builds, of any target, that gave the same bytes again."""
    check: CheckedOn | None
    """The last attempt to reproduce one of them."""
    links: CheckedOn | None = None
    """What the servers of its archives said; where some are lost, since when."""
    failed: NightlyBuild | None = None
    """What broke, while the target fails."""
    worker: str = ""
    """The machine that built the newest wheel; empty for the build host itself."""

    @property
    def mark(self) -> str:
        """The character that says the same as the colour."""
        return MARKS[self.status.tone]

    @cached_property
    def offered(self) -> Sequence[KeptBuild]:
        """The builds whose wheels the page offers: those that passed, else all in the index."""
        listed = [
            build
            for build in self.builds
            if build.listed and not build.hidden and build.wheel not in self.yanked
        ]
        # A wheel that failed its tests is in the index, but no reason to leave the last good one.
        return [build for build in listed if build.good] or listed

    @property
    def newest(self) -> KeptBuild | None:
        """The newest wheel that is offered."""
        return self.offered[-1] if self.offered else None

    @property
    def size_change(self) -> str:
        """How much larger the newest wheel is than the one before it."""
        if len(self.offered) < 2:  # noqa: PLR2004 a pair
            return ""
        before, newest = self.offered[-2:]
        return pages.change(before.size, newest.size)

    @cached_property
    def withdrawn(self) -> Mapping[str, str]:
        """Why wheels that are newer than the offered one were yanked, by version."""
        found = {}
        for build in reversed(self.builds):
            if self.newest and build.id == self.newest.id:
                break
            if build.listed and build.wheel in self.yanked:
                found[build.version] = self.yanked[build.wheel] or "no reason given"
        return found

    @property
    def spark(self) -> Sparkline:
        """Its last nights."""
        return charts.sparkline(self.nights, {build.id: build.seconds for build in self.builds})

    @property
    def reproduction(self) -> tuple[str, str]:
        """Whether the newest wheel was built again to the same bytes, and in which tone."""
        if self.newest and self.newest.id in self.reproduced:
            return "reproduced", "good"
        if self.check and not self.check.passed:
            day = pages.day(self.check.at)
            return f"not reproduced on {day}: {self.check.detail}", "bad"
        return "not reproduced yet", "dim"

    @property
    def failed_page(self) -> str:
        """The page that says what broke; the target's own where that of the build is gone."""
        if self.failed and any(build.id == self.failed.id for build in self.builds):
            return f"builds/{self.failed.id}/#broken"
        return f"{RECIPES}/{self.target.name}.html"

    @property
    def changed(self) -> str:
        """How what failed differs from the last good build, or that there is none.

        Empty for a build of an earlier tfwright that was not compared with the last good one.
        """
        failed = self.failed
        if failed is None:
            return ""
        if not failed.against:
            if any(build.good for build in self.builds):
                return ""
            built = any(build.result == "built" for build in self.builds)
            return "none yet" if built else "none; it was never built"
        parts = [*failed.changed]
        if failed.commits:
            count = len(failed.commits)
            plural = "" if count == 1 else "s"
            newest = failed.commits[0].subject[:100]
            parts.append(f"{count} commit{plural}, newest “{newest}”")
        return ", ".join(parts) or "nothing that tfwright knows of"

    def install(self, url: str | None) -> str:
        """Return the command that installs exactly the newest wheel; `url` is that of the site.

        A version with a local part cannot be on a public index, so the exact pin also keeps out a
        wheel of the same name from elsewhere.
        """
        if self.newest is None or not url:
            return ""
        project = self.newest.wheel.split("-")[0].replace("_", "-")
        index = f"{url}r/{self.target.name}/"
        return f"pip install --extra-index-url {index} {project}=={self.newest.version}"

    def badge(self, now: dt.datetime) -> str:
        """Return a badge that says how the target stands, as SVG."""
        status = self.status
        text = status.said
        if status.fine and status.since:
            days = max(0, (now - status.since).days)
            text = f"good since {days} day{'' if days == 1 else 's'}"
        values = {"name": self.target.name, "said": text, "colour": COLOURS[status.tone]}
        return renderer("nightly_badge.svg.j2")(values)

    def summary(self) -> dict[str, object]:
        """Return its entry in ``latest.json``."""
        status, newest = self.status, self.newest
        entry: dict[str, object] = {
            "name": self.target.name,
            "state": status.word,
            "fine": status.fine,
            "since": status.since.isoformat() if status.since else None,
            "last-good": status.last_good.isoformat() if status.last_good else None,
            "detail": status.detail,
        }
        if self.links:
            lost = not self.links.passed
            entry["archives"] = {
                "lost-since": self.links.at.isoformat() if lost else None,
                "detail": self.links.detail,
            }
        if newest:
            entry["wheel"] = {
                "filename": newest.wheel,
                "version": newest.version,
                "sha256": newest.sha256,
                "size": newest.size,
                "build": newest.id,
                "tested": newest.tested,
            }
        return entry


def views(
    nightly: NightlyFile, state: State, yanked: Mapping[str, str], now: dt.datetime
) -> list[TargetView]:
    """Return every target that a host has or had, those in trouble first.

    `yanked` holds the reason for each yanked wheel, by file name. A target that nightly.toml does
    not list any more keeps its builds, and becomes stale.
    """
    last = state.last_night()
    # More than a year is not shown, and a host may have ten years of nights.
    history = state.history(max(0, last.number - 400) if last else 0)
    checks, reproduced = state.checks("reproduced"), state.reproduced()
    links = state.checks("links")
    builds: dict[str, list[KeptBuild]] = defaultdict(list)
    for build in state.builds():
        builds[build.target].append(build)
    listed = {target.name: target for target in targets(nightly)}
    former = {name: Target(name=name, recipe=name) for name in builds}
    found = []
    for name, target in (former | listed).items():
        # One that has left nightly.toml may have had its last night before those.
        nights = history.get(name) or state.history_of(name, 1)
        view = TargetView(
            target,
            name in listed,
            status_of(nights, now, nightly.notices.stale_nights),
            nights,
            builds[name],
            yanked,
            reproduced,
            checks.get(name),
            links.get(name),
        )
        if view.status.fine and view.withdrawn and view.newest is None:
            # The build is as good as it was, but its users have no wheel.
            view = replace(view, status=replace(view.status, word="withdrawn", since=None))
        if not view.status.fine:
            identifier = next((night.build for night in reversed(nights) if night.build), "")
            view = replace(view, failed=state.build(identifier))
        # The short form of a build lacks the worker; its document is read only where others build.
        if nightly.on != "here" and view.newest and (own := state.build(view.newest.id)):
            view = replace(view, worker=own.worker)
        found.append(view)
    order = list(TONES)
    return sorted(found, key=lambda view: (order.index(view.status.word), view.target.name))


def write(nightly: NightlyFile, state: State, now: dt.datetime, yanked: Mapping[str, str]) -> int:
    """Write the first page, a page for each target, feed, badges; return how many changed.

    `yanked` holds the reason for each yanked wheel, by file name.
    """
    site = nightly.site
    everything = views(nightly, state, yanked, now)
    listed = [view for view in everything if view.listed]
    common = {
        "title": redacted(nightly.title),
        "url": nightly.url or "",
        "now": now,
        "words": pages,
    }
    with batches.below(site) as batch:
        for view in everything:
            name = view.target.name
            builds = view.builds[-BUILDS_SHOWN:]
            days = dt.timedelta(days=nightly.retention.hidden_days)
            values = common | {
                "view": view,
                "builds": builds[::-1],
                "nights": state.history_of(name, BUILDS_SHOWN)[::-1],
                "deletion": {build.id: build.hidden + days for build in builds if build.hidden},
                "known": {build.id for build in view.builds},
                "kept": retention.kept_by_file(builds, site),
            }
            page = renderer("nightly_recipe.html.j2")(values)
            batch.add(site / RECIPES / f"{name}.html", page.encode())
            batch.add(site / BADGES / f"{name}.svg", view.badge(now).encode())
        batch.add(site / "feed.xml", _feed(state, now, common))
        latest = {"format": 1, "made": _stamp(now), "targets": [view.summary() for view in listed]}
        batch.add(site / "latest.json", (json.dumps(latest, indent=1) + "\n").encode())
        said, tone = sentence(listed)
        last = state.last_night()
        values = common | {
            "views": listed,
            "said": said,
            "tone": tone,
            "last": last.started if last else None,
            "next": timer.next_start(nightly.directory, now),
            "stale_nights": nightly.notices.stale_nights,
        }
        # The first page comes last: whoever reads it finds what it links.
        batch.add(site / "index.html", renderer("nightly_index.html.j2")(values).encode())
        count = batch.place()
    # Pages of targets that nothing names any more would go on to say how they once stood.
    names = {view.target.name for view in everything}
    for path in (*site.glob(f"{RECIPES}/*.html"), *site.glob(f"{BADGES}/*.svg")):
        if path.stem not in names:
            path.unlink()
    return count


def sentence(found: Sequence[TargetView]) -> tuple[str, str]:
    """Say in one sentence whether all is well; return it with its tone."""
    if not found:
        return "No recipe is listed in nightly.toml yet.", "dim"
    fine = sum(view.status.fine for view in found)
    if fine == len(found):
        every = "The recipe has" if fine == 1 else f"All {fine} recipes have"
        return f"{every} a current wheel.", "good"
    # In the order of the page.
    counts = Counter(view.status.word for view in found)
    parts = ", ".join(f"{count} {word}" for word, count in counts.items())
    tone = "bad" if any(view.status.tone == "bad" for view in found) else "warn"
    return f"{fine} of {len(found)} recipes have a current wheel: {parts}.", tone


def _feed(state: State, now: dt.datetime, common: Mapping[str, object]) -> bytes:
    """Return the Atom feed: each notice that was raised, newest first."""
    events = []
    for thread, target, opened, closed in state.database.execute(
        "select thread, target, opened, closed from thread"
    ):
        # A thread is named after its target and its kind; the build host's own has no target.
        kind = thread.removeprefix(target or "build-host").split()[0]
        events.append((opened, thread, target, kind))
        if closed:
            events.append((closed, thread, target, "fixed"))
    newest = sorted(events, reverse=True)[:ENTRIES]
    # The time of the last event: a night without an event leaves the feed unchanged.
    updated = newest[0][0] if newest else _stamp(now)
    told = [(*event, *_about(state, event)) for event in newest]
    text = renderer("nightly_feed.xml.j2")({**common, "events": told, "updated": updated})
    return ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _about(state: State, event: tuple[str, str, str, str]) -> tuple[str, str]:
    """Return what an event was about, and the build that it came from; empty where none is."""
    at, _, target, kind = event
    if kind == "links":
        found = state.checks("links").get(target)
        return found.detail if found else "", ""
    row = state.database.execute(
        "select detail, build from verdict join night on night.number = verdict.night"
        " where target = ? and started <= ? order by night desc limit 1",
        (target, at),
    ).fetchone()
    detail, identifier = row or ("", "")
    build = state.build(identifier or "")
    said = [detail or ""]
    if build and build.broken and kind != "fixed":
        said += [build.broken.cause, build.broken.remedy]
    return "\n".join(dict.fromkeys(filter(None, said))), identifier or ""


def _stamp(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")
