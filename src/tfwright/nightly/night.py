"""One night: builds each target that is due, here or on other machines, and updates the site.

The caller passes the builder in, so that a test can simulate a year of nights in seconds. A failure
of one target does not affect the others. Every step leaves the directory in a state from which the
next start goes on: a kill costs only the build under way.
"""

import datetime as dt
import functools
import math
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.nightly import NightlyFile, Target, named_targets, targets
from tfwright.errors import HostError, TfwrightError, in_one_line
from tfwright.nightly import builds, notices, retention, site, status
from tfwright.nightly import plan as plans
from tfwright.nightly import state as states
from tfwright.nightly.builds import Breakage, BuildOrder, NightlyBuild, Verdict
from tfwright.nightly.plan import PlannedTarget
from tfwright.nightly.state import LOCK, Culprit, NightVerdict, State, WaitingBuild
from tfwright.tools import disk, files
from tfwright.tools.process import file_lock
from tfwright.tools.process.file_lock import LockHeldError
from tfwright.vault.links import SILENT, LinkRow

if TYPE_CHECKING:
    from tfwright.nightly.builder import PipelineBuilder
    from tfwright.nightly.fleets import NightFleet

UNSETTLED = {None, "blocked", "skipped"}
"""Verdicts after which a resumed night comes to a target again; None stands for no verdict."""
RESUMED_WITHIN = dt.timedelta(hours=20)
"""An unfinished night that is older than this is over; its targets are due again."""
FULL = Breakage(
    stage="publish",
    line="No space left on device",
    cause="the disk of the build host is full",
    remedy="Free some space, or lower retention.size in nightly.toml.",
)


@dataclass(frozen=True)
class LostArchives:
    """What the servers of a target's archives say; empty texts where one of them has each."""

    gone: str = ""
    """The archives that no server has any more."""
    silent: str = ""
    """Those of which some server did not answer: it may be back tomorrow."""

    @classmethod
    def of(cls, rows: Sequence[LinkRow]) -> "LostArchives":
        """Return what is lost; an archive that only this host's vault has is lost to all others."""
        gone, silent = [], []
        for row in rows:
            if row.left:
                continue
            if any(link.state == SILENT for link in row.links):
                silent.append(row.name)
            else:
                gone.append(row.name + (" (this host's vault still has it)" if row.kept else ""))
        return cls(
            f"No server has {', '.join(gone)}" if gone else "",
            f"No server answers for {', '.join(silent)}" if silent else "",
        )


@dataclass(frozen=True)
class FreeSpace:
    """Bytes that are free where a build needs them."""

    site: int
    """Where finished builds are kept."""
    work: int
    """Where recipes are built."""


Conclude = Callable[[BuildOrder, Callable[[], NightlyBuild]], NightlyBuild]
"""Receives an order that came to its end, and what returns its build once its directory exists.

Returns the build as it is kept."""


@dataclass(frozen=True)
class BuildHost:
    """A build host: its file, who builds, and what time it is."""

    nightly: NightlyFile
    builder: "PipelineBuilder"
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    note: Callable[[str], None] = lambda _: None
    """Is given a line for each thing that happens."""
    channels: tuple[notices.Channel, ...] = ()
    bisect: Callable[[NightlyBuild, float], Culprit | None] | None = None
    """Finds the change that broke a build in so many seconds; None while it is not known."""
    fleet: "NightFleet | None" = None
    """Builds instead of the builder, which then only looks and checks."""

    @property
    def directory(self) -> Path:
        """Where everything of this host is kept."""
        return self.nightly.directory

    @property
    def site(self) -> Path:
        """What a web server serves."""
        return self.nightly.site

    @property
    def builds(self) -> Path:
        """The complete builds."""
        return self.nightly.builds


@dataclass(frozen=True)
class NightOutcome:
    """What a night did."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    """By target, the line that says what broke, or what blocks it."""
    reproduced: str = ""
    """The target that was built again; empty if none was."""
    difference: str = ""
    """How its wheel differs, or why it could not be built again."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """By target, the archives that no server has any more."""
    culprits: Mapping[str, str] = field(default_factory=dict)
    """By target, what a bisection of this night found."""
    hidden: int = 0
    deleted: int = 0
    """Builds that retention hid and deleted in this night."""


def plan(host: BuildHost, *, only: str = "", now: bool = False) -> list[PlannedTarget]:
    """Say what a night would build, in its order, without changing anything."""
    chosen = named_targets(host.nightly, only) if only else targets(host.nightly)
    # No lock: a plan only reads, and may be asked for while a night runs.
    with states.open_state(host.directory, create=False) as state:
        return _plan_targets(host, state, chosen, asked=now, check_host=True)


def run(host: BuildHost, *, only: str = "", now: bool = False, wait: bool = False) -> NightOutcome:
    """Run one night to its end; return what it did.

    `only` names a recipe or a target, `now` builds even what is unchanged. Raises HostError if
    another process, perhaps on another host, runs a night in the same directory.
    """
    chosen = named_targets(host.nightly, only) if only else targets(host.nightly)
    with _hold_lock(host.directory, wait=wait), states.open_state(host.directory) as state:
        begun = host.clock()
        night = Night(host, state)
        if host.fleet:
            host.fleet.adopt(night.conclude)
        # Only now: what a killed night built is not due any more.
        planned = _plan_targets(host, state, chosen, asked=now)
        due = night.judge_idle(planned, again=now and bool(only))
        night.build(due)
        culprits = night.find_culprits(begun)
        # A night without a build has time for any reproduction, however long.
        spent = (host.clock() - begun).total_seconds()
        left = host.nightly.hours * 3600 - spent if due else math.inf
        reproduced, difference = night.reproduce(planned, left)
        lost = night.check_links([item.target for item in planned])
        return night.close(
            NightOutcome(reproduced=reproduced, difference=difference, culprits=culprits, lost=lost)
        )


def watch(
    nightly: NightlyFile,
    moment: dt.datetime,
    channels: Sequence[notices.Channel],
    note: Callable[[str], None],
) -> int:
    """Send what waits, and a notice if no night came for too long, or one was cut off.

    Builds nothing; returns how many notices went out.
    """
    with states.open_state(nightly.directory) as state:
        book, cut_off = notices.Book(nightly, state, moment, channels, note), False
        book.raise_all()
        last = state.last_night()
        if last and not last.ended:
            # A night that still runs has not ended in the middle.
            with suppress(LockHeldError), _hold_lock(nightly.directory, wait=False):
                # Asked again: it may have come to its end while the lock was waited for.
                if (last := state.last_night()) and not last.ended:
                    book.raise_cut_off(last)
                    cut_off = True
        sent = book.send()
        if cut_off:
            # The first page would say that it is under way.
            site.show_queue(nightly, state, moment)
            site.copy(nightly)
        return sent


def _hold_lock(directory: Path, *, wait: bool) -> AbstractContextManager[None]:
    """Hold the directory's lock; two hosts may share the directory."""
    remedy = "Wait for it, or add --wait; nothing was changed."
    return file_lock.locked(directory / LOCK, "a night", wait=wait, remedy=remedy)


def _plan_targets(
    host: BuildHost,
    state: State,
    chosen: Sequence[Target],
    *,
    asked: bool,
    check_host: bool = False,
) -> list[PlannedTarget]:
    """Return each target with why it is due, best first; last those whose inputs are unknown.

    With `check_host`, a target that this host cannot build is one of these.
    """
    past = plans.read_past(state, chosen)
    found = []
    for target in chosen:
        try:
            fingerprint = host.builder.fingerprint(target)
            item = plans.plan_target(target, fingerprint, past[target.name], asked=asked)
            obstacle = host.builder.obstacle(target) if check_host and item.due else ""
        except Exception as fault:  # noqa: BLE001 a flaw of ours in one recipe must reach no other
            obstacle = in_one_line(fault)
        if obstacle:
            item = PlannedTarget(
                target, {}, "blocked", seconds=0.0, within_budget=False, detail=obstacle
            )
        found.append(item)
    # Machines that build side by side fit more into a night.
    width = host.fleet.width if host.fleet else 1
    return plans.mark_fitting(plans.sorted_by_worth(found, past), host.nightly.hours * width)


class Night:
    """A night under way; its verdicts are in the state."""

    def __init__(self, host: BuildHost, state: State) -> None:
        """Begin a night, or go on with one that was cut off: what it finished is kept."""
        self.host = host
        self.state = state
        self._shown = 0.0
        """Until when the page of the queue is not made again."""
        builds.remove_unfinished(host.directory / builds.WORK, host.builds)
        moment = host.clock()
        last = state.last_night()
        cut_off = resumed = last if last and not last.ended else None
        # Resuming an old night would skip the targets that it had judged, for one night more.
        # A clock that was set back leaves the last night in the future.
        if resumed and abs(moment - resumed.started) > RESUMED_WITHIN:
            state.end_night(resumed.number, resumed.started)
            resumed = None
        begun = resumed.started if resumed else moment
        self.number = resumed.number if resumed else state.begin_night(moment)
        for build in builds.read_all(host.builds, state.known_builds()):
            host.note(f"{build.target}: found the finished build {build.id} of a cut-off night")
            # What a person brought back is of an earlier night; so is all if the state was lost.
            state.add_build(build, None if build.started < begun else self.number)
        if cut_off:
            # What a killed night built is offered before anything else is tried.
            self._publish()
        self._sweep()

    def judge_idle(self, planned: Sequence[PlannedTarget], *, again: bool) -> list[PlannedTarget]:
        """Judge what is not built tonight; return the rest. `again` builds what was built."""
        verdicts = {name: night.verdict for name, night in self._verdicts_tonight().items()}
        due, unchanged = [], []
        for item in planned:
            name = item.target.name
            settled = verdicts.get(name) not in UNSETTLED
            # A person may have corrected the recipe before they started the night again. What
            # cannot be judged now, this night may have built before it was cut off.
            if settled and item.why != "changed" and (item.why == "blocked" or not again):
                continue
            if item.due:
                due.append(item)
            elif item.why == "unchanged":
                unchanged.append(name)
            else:
                # It still fails, also in the nights in which it waits with the next attempt.
                verdict: Verdict = "blocked" if item.why == "blocked" else "failed"
                self.state.judge(self.number, verdict, name, detail=item.detail)
        self.state.judge(self.number, "unchanged", *unchanged)
        return due

    def build(self, due: Sequence[PlannedTarget]) -> None:
        """Build the targets that are due: one after the other here, or on other machines."""
        fleet = self.host.fleet
        # What did not fit into the plan comes last: others may have been blocked at once, or
        # quicker than the last time.
        ordered = sorted(due, key=lambda item: not item.within_budget)
        self._queue(
            WaitingBuild(item.target.name, item.why, item.seconds)
            for item in ordered
            if item.within_budget
        )
        left, orders, begun = self.host.nightly.hours * 3600, [], False
        for item in ordered:
            fits = item.within_budget if fleet else not begun or item.seconds <= left
            if not fits:
                hours = f"{item.seconds / 3600:.1f} h"
                detail = f"it took {hours} last time"
                if item.why == "never built":
                    detail = f"a first build counts as {hours}"
                # A verdict all the same: a target that never fits has to become stale on the page.
                self.state.judge(self.number, "skipped", item.target.name, detail=detail)
                self.host.note(f"{item.target.name}: out of tonight's budget")
            elif order := self._prepare_order(item):
                if fleet:
                    orders.append(order)
                    continue
                self._begin(item.target.name)
                build = self.conclude(order, functools.partial(self.host.builder.build, order))
                left -= build.seconds
                # One build always runs; a host that lacks something runs none.
                begun = begun or build.result != "blocked"
        if fleet:
            fleet.build(orders, self.state.last_seconds(), self.conclude, self._begin)

    def _queue(self, builds: Iterable[WaitingBuild]) -> None:
        """Show what the night has still to do; without anything, the pages stay as they are."""
        if queue := list(builds):
            self.state.queue(queue)
            self._publish()

    def _begin(self, target: str, worker: str = "") -> None:
        """Show that a target is built now."""
        moment = self.host.clock()
        self.state.begin(target, moment, worker)
        # With very many recipes and machines, a page for each start would hold up the builds.
        if time.monotonic() >= self._shown:
            began = time.monotonic()
            site.show_queue(self.host.nightly, self.state, moment)
            spent = time.monotonic() - began
            self._shown = time.monotonic() + (60 if spent > 1 else 0)

    def _prepare_order(self, item: PlannedTarget) -> BuildOrder | None:
        """Return an order for a target; judge it if the disk has no room to build it."""
        changed = f" ({', '.join(item.changed)})" if item.changed else ""
        self.host.note(f"{item.target.name}: {item.why}{changed}")
        wanted = self.host.nightly.retention.free
        space = self.host.builder.make_room(wanted)
        # At the end at the cost of hidden builds.
        while space.site < wanted:
            today = self.host.clock().date()
            count = retention.expire(self.host.nightly, self.state, today, wanted - space.site)
            if not count:
                break
            self._publish()
            self._sweep()
            self.host.note(f"short of room: {count} hidden builds deleted before their day")
            space = self.host.builder.make_room(wanted)
        free = min(space.site, space.work)
        if free >= wanted:
            return self._order(item)
        where = "the host's directory" if space.site < wanted else "build_out"
        lacking = (
            f"only {free / 1e9:.1f} GB are free in {where}; "
            f"retention.free asks for {wanted / 1e9:.1f} GB"
        )
        self.state.judge(self.number, "blocked", item.target.name, detail=lacking)
        return None

    def _order(self, item: PlannedTarget) -> BuildOrder:
        started = self.host.clock()
        identifier = builds.identifier(started, item.target.name, item.fingerprint)
        work = self.host.directory / builds.WORK / identifier
        last = self.state.build(item.last_good)
        return BuildOrder(
            id=identifier,
            target=item.target,
            fingerprint=item.fingerprint,
            started=started,
            last_good=last,
            last_wheel=str(self.host.builds / last.id / last.wheel) if last else "",
            work=work,
        )

    def conclude(self, order: BuildOrder, read_build: Callable[[], NightlyBuild]) -> NightlyBuild:
        """Put a build into its place, and keep the verdict; return it."""
        build = self._place_build(order, read_build)
        self.state.add_build(build, self.number)
        # At once, not at the end of the night: a wheel that exists is one that users can have.
        self._publish(pages=False)
        where = f" on {build.worker}" if build.worker else ""
        verdict = f"{build.verdict}{where} after {build.seconds:.0f} s"
        self.host.note(": ".join(filter(None, (build.target, verdict, build.detail))))
        return build

    def _place_build(
        self, order: BuildOrder, read_build: Callable[[], NightlyBuild]
    ) -> NightlyBuild:
        """Build a target, and put the result into its immutable directory."""
        host, work = self.host, order.work
        try:
            # Inside the try: a disk that is full already fails here.
            work.mkdir(parents=True)
            # Checked before the directory is final, since it does not change after that.
            build = site.with_refusal(host.site, read_build(), work).redact()
            past = next(iter(self.state.history_of(build.target, 1)), None)
            if build.result == "blocked" and past and past.verdict == "blocked":
                before = self.state.build(past.build) if past.detail == build.detail else None
                # Blocked by the same the night before: one page is enough.
                if before:
                    files.remove(work)
                    return before
            from tfwright.nightly.pages import build as pages

            files.write(work / pages.PAGE, pages.page(build, work, order.last_good, host.builds))
            files.write(work / "report.md", pages.markdown(build, work))
            builds.finish(work, host.builds, build)
        except TfwrightError as fault:
            # A worker left no result, or the index's catalog cannot be read.
            broken = Breakage(
                stage=fault.stage or "check", line=fault.what, cause=fault.what, remedy=fault.remedy
            )
            return self._abandon_build(order, broken, blocked=isinstance(fault, HostError))
        except Exception as fault:  # noqa: BLE001 a flaw of ours in one recipe must reach no other
            if isinstance(fault, OSError) and fault.errno in disk.FULL:
                return self._abandon_build(order, FULL, blocked=True)
            last = traceback.extract_tb(fault.__traceback__)[-1]
            broken = Breakage(
                stage="tfwright",
                line=f"{type(fault).__name__}: {fault}",
                cause=f"a flaw in tfwright, {Path(last.filename).name}:{last.lineno}",
                remedy=f"Report it: 'invoke report --build {order.id}' prints what is needed.",
            )
            return self._abandon_build(order, broken, blocked=False)
        return build

    def _abandon_build(self, order: BuildOrder, broken: Breakage, *, blocked: bool) -> NightlyBuild:
        """Return a build that ended in the middle; its files go, so that others have room."""
        files.remove(order.work)
        seconds = (self.host.clock() - order.started).total_seconds()
        result = "blocked" if blocked else "failed"
        # The clock may have been set back meanwhile.
        return order.outcome(result=result, seconds=max(0.0, seconds), broken=broken).redact()

    def find_culprits(self, begun: dt.datetime) -> dict[str, str]:
        """Bisect what fails for a new reason, the quickest first, while the budget lasts.

        What is not found in time goes on in the next night; its trials are kept.
        """
        if self.host.bisect is None:
            return {}
        known, failed = self.state.culprits(), []
        for name, night in self._verdicts_tonight().items():
            before = known.get(name)
            build = self.state.build(night.build)
            if night.verdict not in status.FAILED or not (build and build.against):
                continue
            # A wheel without a place, or a flaw of ours, is broken by no change of the recipe.
            if build.unpublished or (build.broken and build.broken.stage == "tfwright"):
                continue
            if before is None or before.thread != builds.failure_digest(night.detail):
                failed.append(build)
        failed.sort(key=lambda build: build.seconds)
        self._queue(WaitingBuild(one.target, "bisect", one.seconds) for one in failed)
        found = {}
        for build in failed:
            left = self.host.nightly.hours * 3600 - (self.host.clock() - begun).total_seconds()
            if left <= 0:
                break
            self._begin(build.target)
            try:
                culprit = self.host.bisect(build, left)
            except Exception as fault:  # noqa: BLE001 a bisection must not cost the night
                self.host.note(f"{build.target}: bisect: {in_one_line(fault)}")
                continue
            if culprit:
                found[build.target] = culprit.sentence
                culprit = replace(culprit, thread=builds.failure_digest(build.detail))
                self.state.keep_culprit(build.target, culprit, self.host.clock())
                self.host.note(f"{build.target}: {culprit.sentence}")
        return found

    def reproduce(self, found: Sequence[PlannedTarget], left: float) -> tuple[str, str]:
        """Build an unchanged, pinned target again, in at most `left` seconds.

        Returns its name, and how its wheel differs; nothing where none had its turn.
        """
        if not self.host.nightly.reproduce:
            return "", ""
        # A target that is due would be built from other inputs than its last wheel.
        same = (item for item in found if item.why == "unchanged" and not item.target.follow)
        candidates = {item.target: item for item in same if item.last_good and item.seconds <= left}
        checks, moment = self.state.checks("reproduced"), self.host.clock()
        target = plans.longest_unchecked(candidates, checks, moment)
        order = self._order(candidates[target]) if target else None
        if order is None or order.last_good is None:
            return "", ""
        fleet, name = self.host.fleet, order.target.name
        why = "built again from nothing, to compare"
        self._queue([WaitingBuild(name, why, candidates[order.target].seconds)])
        self._begin(name)
        try:
            if fleet:
                why = fleet.reproduce(order.model_copy(update={"again": True}))
            else:
                why = self.host.builder.reproduce(order.target, Path(order.last_wheel))
        except Exception as fault:  # noqa: BLE001 a flaw in a check must not cost the night
            why = in_one_line(fault)
        # By target for the turn, by build for the index: a later build is not reproduced yet.
        for kind in ("reproduced", f"reproduced:{order.last_good.id}"):
            self.state.check(name, kind, self.host.clock(), passed=not why, detail=why)
        self.host.note(f"{name}: {why or 'reproduced'}")
        return name, why

    def check_links(self, asked: Sequence[Target]) -> dict[str, str]:
        """Ask the servers of all archives; keep what is lost, and since when; return it."""
        if not self.host.nightly.links:
            return {}
        self.host.note("the servers of all archives are asked")
        try:
            found = self.host.builder.lost_archives(asked)
        except Exception as fault:  # noqa: BLE001 a failed check must not end the night
            self.host.note(f"the addresses of archives were not checked: {fault}")
            return {}
        moment, lost = self.host.clock(), {}
        before, silent = self.state.checks("links"), self.state.checks("silent")
        for name, answer in found.items():
            # One night without an answer may be the server's night off, or this host's network.
            again = answer.silent and name in silent and not silent[name].passed
            self.state.check(name, "silent", moment, passed=not answer.silent, detail="")
            why = "; ".join(filter(None, (answer.gone, answer.silent if again else "")))
            since = moment
            if why:
                lost[name] = why
                self.host.note(f"{name}: {why}")
                # The day on which it was seen first stays.
                if name in before and not before[name].passed:
                    since = before[name].at
            self.state.check(name, "links", since, passed=not why, detail=why)
        return lost

    def close(self, outcome: NightOutcome) -> NightOutcome:
        """End the night: retention, the site, the notices; return what it did."""
        nightly, state, moment = self.host.nightly, self.state, self.host.clock()
        hidden = retention.hide(nightly, state, moment.date())
        deleted = retention.expire(nightly, state, moment.date())
        book = notices.Book(nightly, state, moment, self.host.channels, self.host.note)
        # Before the pages, which show what is raised; what cannot be sent now waits.
        book.raise_all()
        book.close_cut_off()
        self._publish(ended=True)
        # A night whose site is not complete is resumed.
        state.end_night(self.number, moment)
        # Only after index and pages have dropped a build may its files go.
        self._sweep()
        book.send()
        nights = self._verdicts_tonight()
        verdicts = {name: night.verdict for name, night in nights.items()}
        details = {name: night.detail for name, night in nights.items() if night.detail}
        return replace(outcome, verdicts=verdicts, details=details, hidden=hidden, deleted=deleted)

    def _verdicts_tonight(self) -> dict[str, NightVerdict]:
        """Return this night's verdicts so far."""
        return {name: own[-1] for name, own in self.state.history(self.number).items()}

    def _publish(self, *, pages: bool = True, ended: bool = False) -> None:
        """Bring the site up to date; say which files it does not list."""
        host = self.host
        update = site.publish(host.nightly, self.state, host.clock(), pages=pages, ended=ended)
        for fault in update.refused:
            host.note(f"not in the index: {fault.what}")
        try:
            site.copy(host.nightly)
        except TfwrightError as fault:
            # The next update of the site copies everything.
            host.note(f"the site was not copied: {fault.what}")

    def _sweep(self) -> None:
        """Remove the files of deleted builds, while no process makes the site from them."""
        with site.publishing(self.host.directory):
            for lost in retention.sweep(self.host.nightly, self.state):
                self.host.note(f"{lost}: its files are gone")
