"""What the pages show of each target: how it stands, its builds, its wheel, what broke."""

import datetime as dt
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile

from tfwright.documents.nightly import NightlyFile, Target, targets
from tfwright.documents.release import NO_RELEASE
from tfwright.errors import TfwrightError
from tfwright.host.cuda import capabilities_variable
from tfwright.nightly import builds as build_documents
from tfwright.nightly import targets as recipes
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.pages import charts
from tfwright.nightly.pages.charts import Sparkline
from tfwright.nightly.state import CheckedOn, Culprit, KeptBuild, NightVerdict, State
from tfwright.nightly.status import TONES, Status, status_of
from tfwright.tools.redaction import redact_text

RECIPES = "recipes"
MARKS = {"bad": "\N{BALLOT X}", "warn": "!", "good": "\N{CHECK MARK}", "dim": "\N{MIDDLE DOT}"}
"""Colour alone tells nothing to one reader in twelve."""


@dataclass(frozen=True)
class TargetFacts:
    """What its recipe says of a target: by this it is found among many."""

    summary: str = ""
    release: str = ""
    """Of TensorFlow; empty where its rules do not apply, or the recipe cannot be read."""
    python: str = ""
    gpu: str = ""
    """The architectures that its wheel has code for; ``CPU`` without any."""

    @property
    def family(self) -> str:
        """The heading of the recipes of one release."""
        return f"TensorFlow {self.release}" if self.release else "Other recipes"

    @property
    def order(self) -> tuple[int, ...]:
        """By which releases are sorted, newest first, others last."""
        return tuple(-int(part) for part in re.findall(r"\d+", self.release)) or (1,)


# A page is made several times a night, and a recipe takes a millisecond.
@lru_cache(maxsize=4096)
def facts_of(target: Target) -> TargetFacts:
    """Return what its recipe says of a target; nothing if it cannot be read."""
    try:
        recipe = recipes.recipe_of(target)
    except TfwrightError:
        return TargetFacts()
    answers = recipe.configure.answers
    capabilities = str(answers.get(capabilities_variable(answers), ""))
    release, python = recipe.source.release, recipe.host.python
    # Its wheel is for the Python that built it.
    if python == "any" and not recipe.host.image:
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return TargetFacts(
        redact_text(recipe.summary),
        "" if release == NO_RELEASE else str(release),
        python,
        ", ".join(recipe.verify.architectures) or capabilities.replace(",", ", ") or "CPU",
    )


@dataclass
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
    culprit: Culprit | None = None
    """The change that broke it, where a bisection says so."""
    worker: str = ""
    """The machine that built the newest wheel; empty for the build host itself."""

    @property
    def facts(self) -> TargetFacts:
        """What its recipe says of it."""
        return facts_of(self.target)

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

    @cached_property
    def withdrawn(self) -> Mapping[str, str]:
        """Why wheels that are newer than the offered one were yanked, by version."""
        newer = takewhile(lambda build: build is not self.newest, reversed(self.builds))
        return {
            build.version: self.yanked[build.wheel] or "no reason given"
            for build in newer
            if build.listed and build.wheel in self.yanked
        }

    @property
    def spark(self) -> Sparkline:
        """Its last nights."""
        return charts.sparkline(self.nights, {build.id: build.seconds for build in self.builds})

    @property
    def failed_page(self) -> str:
        """The page that says what broke; the target's own where that of the build is gone."""
        if self.failed and any(build.id == self.failed.id for build in self.builds):
            return f"builds/{self.failed.id}/#broken"
        return f"{RECIPES}/{self.target.name}.html"

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
        if self.culprit:
            entry["culprit"] = {"said": self.culprit.sentence, "commit": self.culprit.commit}
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


def install(url: str | None, build: KeptBuild | None) -> str:
    """Return the command that installs exactly this wheel; `url` is that of the site, if any.

    A version with a local part cannot be on a public index, so the exact pin also keeps out a wheel
    of the same name from elsewhere.
    """
    if not (url and build):
        return ""
    project = build.wheel.split("-")[0].replace("_", "-")
    return f"pip install --extra-index-url {url}r/{build.target}/ {project}=={build.version}"


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
    links, culprits = state.checks("links"), state.culprits()
    builds: dict[str, list[KeptBuild]] = defaultdict(list)
    placed = {path.name for path in nightly.builds.glob("*")}
    for build in state.builds():
        # One that ended in the middle, as on a full disk, left no page that could be linked.
        if build.id in placed:
            builds[build.target].append(build)
    listed = {target.name: target for target in targets(nightly)}
    former = {name: Target(name=name, recipe=name) for name in builds}
    found = []
    for name, target in (former | listed).items():
        # One that has left nightly.toml may have had its last night before those.
        nights = history.get(name) or state.history_of(name, 1)
        status = status_of(nights, now, nightly.notices.stale_nights)
        view = TargetView(
            target,
            name in listed,
            status,
            nights,
            builds[name],
            yanked,
            reproduced,
            checks.get(name),
            links.get(name),
        )
        if status.fine and view.withdrawn and view.newest is None:
            # The build is as good as it was, but its users have no wheel.
            view.status = status = replace(status, word="withdrawn", since=None)
        if not status.fine:
            identifier = next((night.build for night in reversed(nights) if night.build), "")
            failed, culprit = state.build(identifier), culprits.get(name)
            # What blocks it now is not what broke it before.
            if failed and failed.detail == status.detail:
                view.failed = failed
            if culprit and culprit.thread == build_documents.failure_digest(status.detail):
                view.culprit = culprit
        # The short form of a build lacks the worker; its document is read only where others build.
        if nightly.on != "here" and view.newest and (own := state.build(view.newest.id)):
            view.worker = own.worker
        found.append(view)
    order = list(TONES)
    return sorted(found, key=lambda view: (order.index(view.status.word), view.target.name))
