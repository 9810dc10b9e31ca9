"""One night: builds each target that is due, here or on other machines, and updates the site.

The caller passes the builder in, so that a test can simulate a year of nights in seconds. A failure
of one target does not affect the others. Every step leaves the directory in a state from which the
next start goes on: a kill costs only the build under way.
"""

import datetime as dt
import errno
import functools
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tfwright.documents.nightly import NightlyFile, Target, targets
from tfwright.errors import HostError, TfwrightError
from tfwright.nightly import builds, due, notices, retention, site
from tfwright.nightly import state as states
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.due import DueTarget
from tfwright.nightly.state import State, Verdict
from tfwright.tools import files
from tfwright.tools.process import file_lock

LOCK = "lock"
UNSETTLED = {None, "blocked", "skipped"}
"""Verdicts after which a resumed night comes to a target again; None stands for no verdict."""
RESUMED_WITHIN = dt.timedelta(hours=20)
"""An unfinished night that is older than this is over; its targets are due again."""
FULL = builds.Breakage(
    stage="publish",
    line="No space left on device",
    cause="the disk of the build host is full",
    remedy="Free some space, or lower retention.size in nightly.toml.",
)
# A quota that is used up reads the same to a user as a full disk.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class Builder(Protocol):
    """Builds targets: the pipeline, or a test's substitute for it."""

    def fingerprint(self, target: Target) -> Mapping[str, str]:
        """Return what decides the target's wheel now; a followed commit is resolved for it."""

    def obstacle(self, target: Target) -> str:
        """Say in a few words what keeps this host from building a target; empty if nothing does."""

    def build(self, order: "BuildOrder") -> NightlyBuild:
        """Build a target into the order's directory; a failure is part of the result."""

    def reproduce(self, target: Target, wheel: Path) -> str:
        """Build a wheel again from nothing, offline; say how it differs, nothing if it is equal."""

    def links(self, target: Target) -> str:
        """Ask the servers of a target's archives; say what is lost, nothing if all is there."""

    def make_room(self, wanted: int) -> "FreeSpace":
        """Remove what can be had again until so many bytes are free; return how many are."""


@dataclass(frozen=True)
class FreeSpace:
    """Bytes that are free where a build needs them."""

    site: int
    """Where finished builds are kept."""
    work: int
    """Where recipes are built."""


@dataclass(frozen=True)
class BuildOrder:
    """One build that the builder is asked for."""

    id: str
    target: Target
    fingerprint: Mapping[str, str]
    work: Path
    """An empty directory that the builder fills."""
    started: dt.datetime
    last_good: NightlyBuild | None
    last_wheel: Path | None
    """The last good wheel, to compare with."""
    again: bool = False
    """Whether that wheel is to be built again, from nothing."""


Settle = Callable[[BuildOrder, Callable[[], NightlyBuild]], None]
"""Receives an order that came to its end, and what returns its build once its directory exists."""


class Fleet(Protocol):
    """Other machines, which build several targets at once."""

    @property
    def width(self) -> int:
        """How many targets are built at once."""

    def build(
        self, orders: Sequence[BuildOrder], seconds: Mapping[str, float], settle: Settle
    ) -> None:
        """Build all orders; `seconds` are what their targets took last time."""

    def reproduce(self, order: BuildOrder) -> str:
        """Build the last good wheel of an order again, as `Builder.reproduce` does."""


@dataclass(frozen=True)
class BuildHost:
    """A build host: its file, who builds, and what time it is."""

    nightly: NightlyFile
    builder: Builder
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    hear: Callable[[str], None] = lambda _: None
    """Is given a line for each thing that happens."""
    channels: tuple[notices.Channel, ...] = ()
    fleet: Fleet | None = None
    """Builds instead of the builder, which then only looks and checks."""

    @property
    def directory(self) -> Path:
        """Where everything of this host is kept."""
        return self.nightly.directory

    @property
    def site(self) -> Path:
        """What a web server serves."""
        return self.directory / "site"

    @property
    def builds(self) -> Path:
        """The complete builds."""
        return self.site / "builds"


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
    linked: str = ""
    """The target whose archives' servers were asked."""
    hidden: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class NightPlan:
    """What a night would do."""

    targets: Sequence[DueTarget]
    """In the order in which they are built."""
    blocked: Mapping[str, str]
    """By target, what keeps this host from building it."""


def plan(host: BuildHost, *, only: str = "", now: bool = False) -> NightPlan:
    """Say what a night would build, without changing anything."""
    with states.opened(host.directory) as state:
        # No lock: a plan only reads, and may be asked for while a night runs.
        return _planned(host, state, _chosen(host, only), asked=now, look=True)


def run(host: BuildHost, *, only: str = "", now: bool = False, wait: bool = False) -> NightOutcome:
    """Run one night to its end; return what it did.

    `only` names a recipe or a target, `now` builds even what is unchanged. Raises HostError if
    another process, perhaps on another host, runs a night in the same directory.
    """
    chosen = _chosen(host, only)
    with _alone(host.directory, wait=wait), states.opened(host.directory) as state:
        begun = host.clock()
        cut_off = state.unfinished_night() is not None
        night = _recover(host, state)
        if cut_off:
            # What a killed night built is offered before anything else is tried.
            _publish(host, state)
        _sweep(host, state)
        planned = _planned(host, state, chosen, asked=now)
        wanted = _settle(state, night, planned, again=now and bool(only))
        _attempt_all(host, state, night, wanted)
        # A night without a build has time for any reproduction, however long.
        left = _seconds_left(host, begun) if wanted else math.inf
        reproduced = (
            _reproduce(host, state, planned.targets, left)
            if host.nightly.reproduce
            else NightOutcome()
        )
        linked = _links(host, state, planned.targets) if host.nightly.links else ""
        return _close(host, state, night, replace(reproduced, linked=linked))


def _settle(state: State, night: int, planned: NightPlan, *, again: bool) -> list[DueTarget]:
    """Judge what is not built tonight; return the rest. `again` builds what was built tonight."""
    verdicts = _verdicts_of(state, night)
    for target, why in planned.blocked.items():
        # Before it was cut off, this night may have built what cannot be judged now.
        if verdicts.get(target) in UNSETTLED:
            state.judge(target, night, "blocked", detail=why)
    waiting = [item for item in planned.targets if again or _waits(item, verdicts)]
    _judge_idle(state, night, [item for item in waiting if not item.due])
    return [item for item in waiting if item.due]


def _seconds_left(host: BuildHost, begun: dt.datetime) -> float:
    """Return what is left of a night's budget."""
    return host.nightly.hours * 3600 - (host.clock() - begun).total_seconds()


def _waits(item: DueTarget, verdicts: Mapping[str, Verdict]) -> bool:
    """Say whether a night has still to come to a target, which it may have done before a kill."""
    # A person may have corrected the recipe before they started the night again.
    return verdicts.get(item.target.name) in UNSETTLED or item.why == "changed"


def _publish(host: BuildHost, state: State, *, pages: bool = True) -> None:
    """Bring the site up to date; say which files it does not list."""
    update = site.publish(host.nightly, state, host.clock(), pages=pages)
    for fault in update.refused:
        host.hear(f"not in the index: {fault.what}")


def _sweep(host: BuildHost, state: State) -> None:
    """Remove the files of deleted builds, while no process makes the site from them."""
    with site.publishing(host.directory):
        retention.sweep(state, host.site)


def _judge_idle(state: State, night: int, idle: list[DueTarget]) -> None:
    """Keep the verdicts on what is not built tonight."""
    unchanged = [item.target.name for item in idle if item.why == "unchanged"]
    state.judge_unchanged(unchanged, night)
    for item in idle:
        # It still fails, also in the nights in which it waits with the next attempt.
        if item.why == "its name is taken":
            state.judge(item.target.name, night, "failed", detail=item.detail)


def _close(host: BuildHost, state: State, night: int, outcome: NightOutcome) -> NightOutcome:
    """End a night: retention, the site, the notices."""
    moment = host.clock()
    today = moment.date()
    hidden = retention.hide(host.nightly, state, host.site, today)
    deleted = retention.expire(host.nightly, state, host.site, today)
    # Before the pages, which show what is raised; what cannot be sent now waits.
    notices.raise_all(host.nightly, state, moment, host.channels)
    notices.close_cut_off(state, moment, host.channels)
    _publish(host, state)
    # A night whose site is not complete is resumed.
    state.end_night(night, moment)
    # Only after index and pages have dropped a build may its files go.
    _sweep(host, state)
    notices.send(state, moment, host.channels)
    return replace(
        outcome,
        verdicts=_verdicts_of(state, night),
        details=_details_of(state, night),
        hidden=hidden,
        deleted=deleted,
    )


def watch(nightly: NightlyFile, moment: dt.datetime, channels: Sequence[notices.Channel]) -> int:
    """Send what waits, and a notice if no night came for too long, or one was cut off.

    Builds nothing; returns how many notices went out.
    """
    with states.opened(nightly.directory) as state:
        notices.raise_all(nightly, state, moment, channels)
        if _is_cut_off(nightly.directory, state):
            notices.raise_cut_off(state, moment, channels)
        return notices.send(state, moment, channels)


def _is_cut_off(directory: Path, state: State) -> bool:
    """Say whether the last night ended in the middle; one that still runs has not."""
    if state.unfinished_night() is None:
        return False
    try:
        with _alone(directory, wait=False):
            # Asked again: it may have come to its end while the lock was waited for.
            return state.unfinished_night() is not None
    except HostError:
        return False


@contextmanager
def _alone(directory: Path, *, wait: bool) -> Iterator[None]:
    """Hold the directory's lock; two hosts may share the directory."""
    place = directory / LOCK
    try:
        with file_lock.held(place, "invoke nightly", wait=wait):
            yield
    except HostError as fault:
        # The body of the `with` may raise a HostError of its own.
        if fault.evidence.where != str(place):
            raise
        raise HostError(
            f"Another night runs in {directory}: {fault.what}",
            remedy="Wait for it, or add --wait; nothing was changed.",
            evidence=fault.evidence,
        ) from fault


def _chosen(host: BuildHost, only: str) -> list[Target]:
    """Return the targets of a recipe, or all; raise HostError if none has that name."""
    everything = targets(host.nightly)
    chosen = [target for target in everything if only in {"", target.name, target.recipe}]
    if only and not chosen:
        names = ", ".join(target.name for target in everything) or "none"
        raise HostError(
            f"nightly.toml has no recipe {only!r}",
            remedy=f"Add a [[recipe]] with this name, or choose one of: {names}.",
        )
    return chosen


def _recover(host: BuildHost, state: State) -> int:
    """Clear what a killed night left, keep what it finished; return the number of this night."""
    files.remove(host.directory / builds.WORK)
    moment = host.clock()
    night = state.unfinished_night()
    last = state.last_night()
    # Resuming an old night would skip the targets that it had judged, for one night more.
    # A clock that was set back leaves the last night in the future.
    if night is not None and last and abs(moment - last) > RESUMED_WITHIN:
        state.end_night(night, last)
        night = None
    known = state.known_builds()
    resumed = night if night is not None else state.begin_night(moment)
    for build in builds.all_below(host.builds, known):
        host.hear(f"{build.target}: found the finished build {build.id} of a cut-off night")
        state.add_build(build)
    for kept in state.unjudged():
        cut_off = state.build(kept.id)
        if cut_off:
            detail = _detail(cut_off)
            state.judge(cut_off.target, resumed, _verdict(cut_off), cut_off.id, detail)
    return resumed


def _planned(
    host: BuildHost, state: State, chosen: list[Target], *, asked: bool, look: bool = False
) -> NightPlan:
    """Return each target with why it is due, best first, and those whose inputs are unknown.

    With `look`, a target that this host cannot build is among the blocked ones.
    """
    past = due.past_of(state, chosen)
    found, blocked = [], {}
    for target in chosen:
        try:
            fingerprint = host.builder.fingerprint(target)
            item = due.judge(target, fingerprint, past[target.name], asked=asked)
            obstacle = host.builder.obstacle(target) if look and item.due else ""
        except TfwrightError as fault:
            blocked[target.name] = fault.what
            continue
        except Exception as fault:  # noqa: BLE001 a flaw of ours in one recipe must reach no other
            blocked[target.name] = f"a flaw in tfwright: {type(fault).__name__}: {fault}"
            continue
        if obstacle:
            blocked[target.name] = obstacle
        else:
            found.append(item)
    ordered = due.ordered(found, past)
    # Machines that build side by side fit more into a night.
    width = host.fleet.width if host.fleet else 1
    return NightPlan(due.fitting(ordered, host.nightly.hours * width), blocked)


def _verdicts_of(state: State, night: int) -> dict[str, Verdict]:
    return {name: fell[-1].verdict for name, fell in state.history(night).items()}


def _details_of(state: State, night: int) -> dict[str, str]:
    return {name: fell[-1].detail for name, fell in state.history(night).items() if fell[-1].detail}


def _attempt_all(host: BuildHost, state: State, night: int, due: Sequence[DueTarget]) -> None:
    """Build the targets that are due: one after the other here, or on other machines."""
    if host.fleet is None:
        _attempt_here(host, state, night, due)
        return
    orders = []
    for item in due:
        if not item.within_budget:
            _skip(host, state, night, item)
        elif order := _ready(host, state, night, item):
            orders.append(order)

    def settle(order: BuildOrder, made: Callable[[], NightlyBuild]) -> None:
        _conclude(host, state, night, order, made)

    host.fleet.build(orders, state.last_seconds(), settle)


def _attempt_here(host: BuildHost, state: State, night: int, due: Sequence[DueTarget]) -> None:
    """Build one target after the other, as long as the night's budget lasts."""
    left = host.nightly.hours * 3600
    begun = False
    # What did not fit into the plan comes last: others may have been blocked at once, or quicker
    # than the last time.
    for item in sorted(due, key=lambda item: not item.within_budget):
        if begun and item.seconds > left:
            _skip(host, state, night, item)
            continue
        order = _ready(host, state, night, item)
        if order is None:
            continue
        made = functools.partial(host.builder.build, order)
        build = _conclude(host, state, night, order, made)
        left -= build.seconds
        # One build always runs; a host that lacks something runs none.
        begun = begun or build.result != "blocked"


def _skip(host: BuildHost, state: State, night: int, item: DueTarget) -> None:
    """Leave a target to the next night."""
    took = f"it took {item.seconds / 3600:.1f} h last time"
    if item.why == "never built":
        took = f"a first build counts as {item.seconds / 3600:.1f} h"
    # A verdict all the same: a target that never fits has to become stale on the page.
    state.judge(item.target.name, night, "skipped", detail=took)
    host.hear(f"{item.target.name}: out of tonight's budget")


def _ready(host: BuildHost, state: State, night: int, item: DueTarget) -> BuildOrder | None:
    """Return an order for a target; judge it if the disk has no room to build it."""
    name = item.target.name
    changed = f" ({', '.join(item.changed)})" if item.changed else ""
    host.hear(f"{name}: {item.why}{changed}")
    lacking = _lacking_room(host, state)
    if lacking:
        state.judge(name, night, "blocked", detail=lacking)
        return None
    return _order(host, state, item)


def _conclude(
    host: BuildHost, state: State, night: int, order: BuildOrder, made: Callable[[], NightlyBuild]
) -> NightlyBuild:
    """Put a build into its place, and keep the verdict; return it."""
    build = _build(host, state, order, made)
    name = order.target.name
    state.judge(name, night, _verdict(build), build.id, _detail(build))
    # At once, not at the end of the night: a wheel that exists is a wheel that users can have.
    _publish(host, state, pages=False)
    where = f" on {build.worker}" if build.worker else ""
    verdict = f"{_verdict(build)}{where} after {build.seconds:.0f} s"
    host.hear(": ".join(filter(None, (name, verdict, _detail(build)))))
    return build


def _lacking_room(host: BuildHost, state: State) -> str:
    """See to free space before a build; say what is missing."""
    wanted = host.nightly.retention.free
    space = _freed(host, state, wanted)
    free = min(space.site, space.work)
    if free >= wanted:
        return ""
    where = "the host's directory" if space.site < wanted else "build_out"
    return (
        f"only {free / 1e9:.1f} GB are free in {where}; "
        f"retention.free asks for {wanted / 1e9:.1f} GB"
    )


def _freed(host: BuildHost, state: State, wanted: int) -> FreeSpace:
    """Free space, at the end at the cost of hidden builds; return what is free then."""
    space = host.builder.make_room(wanted)
    while space.site < wanted and _expire_early(host, state, wanted - space.site):
        space = host.builder.make_room(wanted)
    return space


def _expire_early(host: BuildHost, state: State, missing: int) -> int:
    """Delete builds that are hidden already, before their day; return how many."""
    today = host.clock().date()
    count = retention.expire(host.nightly, state, host.site, today, missing)
    if count:
        _publish(host, state)
        _sweep(host, state)
        host.hear(f"short of room: {count} hidden builds deleted before their day")
    return count


def _order(host: BuildHost, state: State, item: DueTarget) -> BuildOrder:
    """Return the order for a target that is due."""
    started = host.clock()
    identifier = builds.identifier(started, item.target.name, item.fingerprint)
    work = host.directory / builds.WORK / identifier
    last = state.build(item.last_good)
    wheel = host.builds / last.id / last.wheel if last else None
    return BuildOrder(identifier, item.target, item.fingerprint, work, started, last, wheel)


def _build(
    host: BuildHost, state: State, order: BuildOrder, made: Callable[[], NightlyBuild]
) -> NightlyBuild:
    """Build a target, and put the result into its immutable directory."""
    work = order.work
    try:
        # Inside the try: a disk that is full already fails here.
        work.mkdir(parents=True)
        # Checked before the directory is final, since it does not change after that.
        build = site.unless_taken(host.site, _compared(made(), order))
        _describe(host, work, build, order.last_good)
        builds.finish(work, host.builds, build)
    except TfwrightError as fault:
        # A worker left no result, or the index's catalog cannot be read.
        blocked = isinstance(fault, HostError)
        build = _cut_off(host, order, _said(fault), blocked=blocked)
    except OSError as fault:
        full = fault.errno in NO_ROOM
        broken = FULL if full else _flaw(fault, order.id)
        build = _cut_off(host, order, broken, blocked=full)
    except Exception as fault:  # noqa: BLE001 a flaw of ours in one recipe must reach no other
        build = _cut_off(host, order, _flaw(fault, order.id))
    state.add_build(build)
    return build


def _compared(build: NightlyBuild, order: BuildOrder) -> NightlyBuild:
    """Return the build with what changed since the last good one, if nothing was compared yet.

    A build that ended before its stages, or on no machine, compares nothing itself.
    """
    last = order.last_good
    if build.against or last is None:
        return build
    changed = due.differing(last.fingerprint, order.fingerprint)
    return build.model_copy(update={"against": last.id, "changed": changed})


def _describe(host: BuildHost, work: Path, build: NightlyBuild, last: NightlyBuild | None) -> None:
    """Put the build's own page, and the same as Markdown, next to its files."""
    from tfwright.nightly.pages import build as page

    files.write(work / page.PAGE, page.page(build, work, last, host.builds))
    files.write(work / "report.md", page.markdown(build, work))


def _said(fault: TfwrightError) -> builds.Breakage:
    """Describe an error that says itself what is wrong."""
    return builds.Breakage(
        stage=fault.stage or "check", line=fault.what, cause=fault.what, remedy=fault.remedy
    )


def _flaw(fault: Exception, build: str) -> builds.Breakage:
    """Describe an unexpected error in a build, with the place in tfwright that raised it."""
    last = traceback.extract_tb(fault.__traceback__)[-1]
    return builds.Breakage(
        stage="tfwright",
        line=f"{type(fault).__name__}: {fault}",
        cause=f"a flaw in tfwright, {Path(last.filename).name}:{last.lineno}",
        remedy=f"Report it: 'invoke report --build {build}' prints what is needed.",
    )


def _cut_off(
    host: BuildHost, order: BuildOrder, broken: builds.Breakage, *, blocked: bool = False
) -> NightlyBuild:
    """Return a build that ended in the middle; its files are removed, so that others have room."""
    files.remove(order.work)
    seconds = (host.clock() - order.started).total_seconds()
    build = NightlyBuild(
        id=order.id,
        target=order.target.name,
        recipe=order.target.recipe,
        started=order.started,
        # The clock may have been set back meanwhile.
        seconds=max(0.0, seconds),
        result="blocked" if blocked else "failed",
        fingerprint=dict(order.fingerprint),
        broken=broken,
    )
    return _compared(build, order)


def _verdict(build: NightlyBuild) -> Verdict:
    """Return what a build means for its target."""
    if build.result != "built":
        return build.result
    # Users cannot install such a wheel, however good it is.
    if build.unpublished:
        return "failed"
    tested = build.tested
    if tested == "smoke failed":
        return "smoke failed"
    return "untested" if tested == "untested" else "good"


def _detail(build: NightlyBuild) -> str:
    """Return the one line that says what broke."""
    if build.unpublished:
        return build.unpublished
    if build.broken:
        return f"{build.broken.stage}: {build.broken.line}"
    failed = [line.program for line in build.smoke if line.status == "failed"]
    return f"smoke: {failed[0]}" if failed else ""


def _reproduce(
    host: BuildHost, state: State, found: Sequence[DueTarget], left: float
) -> NightOutcome:
    """Build an unchanged, pinned target again, in at most `left` seconds; say what came of it."""
    candidates: dict[Target, DueTarget] = {}
    for item in found:
        # A target that is due would be built from other inputs than its last wheel.
        same = item.why == "unchanged" and not item.target.follow
        if same and item.last_good and item.seconds <= left:
            candidates[item.target] = item
    turns = {name: check.at for name, check in state.checks("reproduced").items()}
    target = due.in_turn(list(candidates), turns, host.clock())
    order = _order(host, state, candidates[target]) if target else None
    if order is None or order.last_good is None or order.last_wheel is None:
        return NightOutcome()
    why = _asked(functools.partial(_rebuilt, host, order, order.last_wheel))
    name = order.target.name
    # By target for the turn, by build for the index: a later build is not reproduced yet.
    for kind in ("reproduced", f"reproduced:{order.last_good.id}"):
        state.check(name, kind, host.clock(), passed=not why, detail=why)
    host.hear(f"{name}: {why or 'reproduced'}")
    return NightOutcome(reproduced=name, difference=why)


def _rebuilt(host: BuildHost, order: BuildOrder, wheel: Path) -> str:
    """Build a wheel again where it was built; say how it differs."""
    if host.fleet:
        return host.fleet.reproduce(replace(order, again=True))
    return host.builder.reproduce(order.target, wheel)


def _links(host: BuildHost, state: State, found: Sequence[DueTarget]) -> str:
    """Ask the servers of one target's archives; return its name."""
    turns = {name: check.at for name, check in state.checks("links").items()}
    target = due.in_turn([item.target for item in found], turns, host.clock())
    if target is None:
        return ""
    why = _asked(lambda: host.builder.links(target))
    state.check(target.name, "links", host.clock(), passed=not why, detail=why)
    return target.name


def _asked(question: Callable[[], str]) -> str:
    """Return the answer; a check that cannot be made says why, and fails no night."""
    try:
        return question()
    except TfwrightError as fault:
        return fault.what
    except Exception as fault:  # noqa: BLE001 a flaw in a check must not cost the night
        return f"the check failed: {type(fault).__name__}: {fault}"
