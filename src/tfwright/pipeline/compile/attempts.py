"""Runs of Bazel until it succeeds, and what they teach about the memory of this host."""

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import FailureRecord, Match
from tfwright.documents.recipe import CompileTable
from tfwright.pipeline import cost
from tfwright.pipeline.compile import failure
from tfwright.pipeline.compile.invocation import Invocation
from tfwright.pipeline.job import Job
from tfwright.progress import Listener, Progress
from tfwright.rules import repositories as rules
from tfwright.tools import files, json_text
from tfwright.tools.bazel.client import BazelRun
from tfwright.tools.bazel.output import download_faults
from tfwright.tools.process import capacity

PAUSES = (5.0, 20.0)
"""Seconds before a build is tried again after a failure that may pass by itself. Bazel has tried a
download for 13 seconds by then."""
THRASHING = 20.0
"""Percent of ten seconds, at worst, that everything waited for memory: from here on fewer actions
at once take less time."""
MEMORY_TOLERANCE = 1.1
"""A host whose memory grew by more than a tenth is another one: what was too much before may
fit."""
WINDOW = 3600.0
"""Seconds over which the pace is measured: TensorFlow's kernels and MLIR dialects take minutes
each, one after the other."""
RECENT, RECENT_ACTIONS = 180.0, 10
"""Seconds, and actions in them, after which a slower pace counts: what comes from a cache, first,
takes no time."""
STABLE_TOTAL = 900.0
"""Seconds for which the total of a first build has to stand before it is believed."""
REQUEST_KEY = "//asking"
"""What tells Bazel which repositories it needs, next to their names, where no name can be so."""
SHORTEST_WINDOW = 60.0
"""Seconds of a run below which its pace says nothing: Bazel passes what is up to date at once."""


class Experience(BaseModel):
    """What is remembered of a recipe's builds, in ``memory.json`` of the recipe's directory."""

    model_config = ConfigDict(frozen=True)

    peak: float = Field(default=0, ge=0)
    """GiB that one action took at most: how much that is depends on the recipe."""
    jobs: int | None = Field(default=None, gt=0)
    """How many actions at once the memory is known to hold; None while it never ran out."""
    actions: int = Field(default=0, ge=0)
    """How many actions the largest build took; 0 before one ended."""
    memory: float = Field(default=0, ge=0)
    """GiB that the host had then."""

    @classmethod
    def of(cls, job: Job) -> "Experience":
        """Return what is remembered; nothing, if that cannot be read."""
        return json_text.load_or_none(job.places.memory, cls) or cls()


def learn_peak(job: Job, peak: float) -> None:
    """Remember the GiB that one action took, if that is more than is known."""
    if peak > Experience.of(job).peak:
        _remember(job, peak=round(peak, 3))


def learn_jobs(job: Job, jobs: int) -> None:
    """Remember that the memory did not hold more actions at once than `jobs`."""
    # With the host's memory, so that the lesson ends when the host is given more.
    _remember(job, jobs=jobs, memory=round(capacity.total_memory() / capacity.GIB, 3))


def _remember(job: Job, **known: float) -> None:
    experience = Experience.of(job).model_copy(update=known)
    files.write(job.places.memory, experience.model_dump_json(indent=1) + "\n")


def actions_at_once(job: Job, table: CompileTable) -> int:
    """Return how many actions are run at once.

    What the user asks for wins. Else it is what the host file says, or what the processors and the
    memory allow; where the memory ran out before, no more than it held.
    """
    if job.jobs:
        return job.jobs
    known = Experience.of(job)
    # The worst case: every action at once takes as much as the largest one.
    fitting = int(capacity.available_memory() / capacity.GIB / max(table.peak, known.peak))
    wanted = job.host_file.jobs or max(1, min(capacity.usable_cores(), fitting))
    same_host = capacity.total_memory() / capacity.GIB <= known.memory * MEMORY_TOLERANCE
    return min(wanted, known.jobs) if known.jobs and same_host else wanted


class Pace:
    """Tells how far a run has come, and how long it still takes, from what it did lately."""

    def __init__(self, usual: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing seen.

        `usual` is how many actions an earlier build took, 0 for the first one.
        """
        self._usual, self._clock = usual, clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def estimate(self, progress: Progress) -> Progress:
        """Return the progress with the seconds left, or without a total that is still growing.

        With few actions at once Bazel learns of the next ones only as it gets to them: its total
        is then always a little more than what is done.
        """
        if not progress.total:
            return progress
        now = self._clock()
        self._seen.append((now, progress.done, progress.total))
        # The first one that is kept is older than the window, so that the window is full.
        while len(self._seen) > 1 and now - self._seen[1][0] >= WINDOW:
            self._seen.popleft()
        lately = [seen for seen in self._seen if now - seen[0] >= SHORTEST_WINDOW]
        if not lately:
            return progress
        _, done, total = lately[-1]
        grows = 2 * (progress.total - total) > progress.done - done
        # While it works off the sources of one library, the total stands still.
        if grows or 2 * progress.total < self._usual:
            return replace(progress, total=None)
        enough = min(RECENT_ACTIONS, progress.done - self._seen[0][1])
        slow = (
            seen
            for seen in reversed(self._seen)
            if now - seen[0] >= RECENT and progress.done - seen[1] >= enough
        )
        since = (self._seen[0], next(slow, self._seen[0]))
        paces = [(now - then) / (progress.done - b) for then, b, _ in since if progress.done > b]
        remaining = (progress.total - progress.done) * max(paces) if paces else None
        stood = now - next(then for then, _, total in self._seen if total == progress.total)
        if remaining and not self._usual and stood < min(remaining, STABLE_TOTAL):
            return progress
        return replace(progress, remaining=remaining)


def build(bazel: Invocation) -> BazelRun:
    """Run Bazel until it succeeds, or until another run would fail in the same way.

    Whether it would, the catalogue says of the first error. Raises a TfwrightError for the last
    run.
    """
    job, log = bazel.job, bazel.job.log("compile")
    # Asked once: how much memory is free changes during the build.
    jobs = actions_at_once(job, bazel.table)
    if job.jobs is None and jobs == Experience.of(job).jobs:
        job.listener.note(
            f"{jobs} at once, since more actions did not fit into the memory before "
            f"({job.places.memory})"
        )
    pauses, before = list(PAUSES), None
    while True:
        command = bazel.build(jobs)
        report = partial(_report, job.listener, Pace(Experience.of(job).actions))
        outcome = bazel.client.run(command, log, report, partial(cost.record_run, job))
        _learn_memory(bazel, outcome, jobs)
        if outcome.status == 0:
            return outcome
        failed = _failure_of(outcome, log)
        known = failed.match
        # Halving ends at 1, so it needs no limit of its own.
        if known and known.entry.retry == "fewer" and jobs > 1 and not outcome.died_early:
            jobs //= 2
            learn_jobs(job, jobs)
            job.listener.note(
                f"The memory did not hold {2 * jobs} actions at once; going on with {jobs}, "
                f"now and in later builds ({job.places.memory} keeps it)"
            )
        elif known is None or not pauses or not _may_succeed(job, known, before):
            outcome = _with_all_downloads(bazel, outcome, jobs)
            raise failure.error_of(job, command, outcome, failed, bazel.unpinned)
        else:
            reason = known.cause.rstrip(".")
            if faults := download_faults(outcome.errors):
                reason = f"{faults[0].url} could not be downloaded ({faults[0].why})"
            job.listener.note(f"{reason}; trying again in {pauses[0]:g} s")
            time.sleep(pauses.pop(0))
        before = known


def _failure_of(outcome: BazelRun, log: Path) -> FailureRecord:
    """Return what a run says of its failure, in a log that may hold earlier ones as well."""
    return reader.read_failure(log, outcome.start, killed=outcome.killed > 0, died=outcome.died)


def _report(listener: Listener, pace: Pace, progress: Progress) -> None:
    listener.progress(pace.estimate(progress))


def _learn_memory(bazel: Invocation, outcome: BazelRun, jobs: int) -> None:
    """Remember for later builds what this run did to the memory."""
    job, table, known = bazel.job, bazel.table, Experience.of(bazel.job)
    peak = outcome.peak / capacity.GIB
    if peak > max(table.peak, known.peak):
        job.listener.note(
            f"One action took {peak:.1f} GiB of memory, more than the recipe's peak of "
            f"{table.peak:g}; later builds take that into account"
        )
    learn_peak(job, peak)
    # A run that failed has its own remedy; one that succeeded was only slower than need be.
    if outcome.status != 0:
        return
    if outcome.actions > known.actions:
        _remember(job, actions=outcome.actions)
    if outcome.pressure >= THRASHING and jobs > 1:
        learn_jobs(job, jobs - 1)
        job.listener.note(
            f"With {jobs} actions at once everything waited for memory "
            f"{outcome.pressure:.0f} % of the time; later builds run {jobs - 1}"
        )


def _may_succeed(job: Job, known: Match, before: Match | None) -> bool:
    """Say whether the next run may succeed without any change."""
    # An offline build downloads nothing, however often it is tried.
    if job.offline and known.entry.stage == "fetch":
        return False
    if known.entry.retry == "pass":
        return True
    # The same wrong checksum twice: the server has other bytes, no transfer was damaged.
    same = before is not None and before.text == known.text
    return known.entry.retry == "once" and not same


def _with_all_downloads(bazel: Invocation, outcome: BazelRun, jobs: int) -> BazelRun:
    """Add to a run that failed for one download the others that would fail after it.

    A build stops at the first archive that it cannot get, so that without a lock each of them would
    cost a build. With --keep_going and --nobuild, Bazel asks for all of them.
    """
    faults = download_faults(outcome.errors)
    # Wrong bytes came from somewhere: more of them would only be downloaded again.
    if not faults or faults[0].why.startswith("Checksum"):
        return outcome
    job = bazel.job
    job.listener.note("Asking Bazel which other archives it cannot get")
    asking = bazel.analysis(jobs)
    all_of_them = bazel.client.run(asking, job.log("compile-missing"), job.listener.progress)
    return replace(outcome, errors=(*outcome.errors, *all_of_them.errors))


def needed_repositories(bazel: Invocation) -> Mapping[str, str]:
    """Return the external repositories that the target needs, by name, with digest or commit.

    Bazel's analysis names only the repositories that it makes, so that it is asked in an output
    base of its own. That one stays after a failure, with the names of what is in it: the next call
    goes on there. Raises as `build` does if the target cannot be analysed.
    """
    job = bazel.job
    bazel = replace(bazel, output_base=job.places.asked)
    report, kept = job.places.logs / "resolved.bzl", job.places.asked / "tfwright.json"
    # The same flags as a build: a --config or --define may bring other repositories in.
    jobs = actions_at_once(job, bazel.table)
    command = bazel.analysis(jobs, f"--experimental_repository_resolved_file={report}")
    bazel.write_settings()
    asking = json_text.digest([bazel.binary, bazel.table.model_dump(), bazel.exported])
    before = json_text.load_object(kept)
    # What is there and has no name here would be missing in the lock.
    if before.pop(REQUEST_KEY, "") != asking:
        files.remove(job.places.asked)
        before = {}
    for stale in (kept, report):
        files.remove(stale)
    job.listener.started("analysis", "asked Bazel which archives the target needs")
    begun = time.monotonic()
    try:
        outcome = bazel.client.run(command, job.log("lock"), job.listener.progress)
    finally:
        # The server holds files of the output base open, and would serve another recipe's.
        bazel.client.stop()
        # Written by Bazel even where it was stopped, but not where it was killed.
        if report.is_file():
            before |= rules.resolved_pins(files.text(report))
            files.write(kept, json.dumps({**before, REQUEST_KEY: asking}))
    job.listener.finished("analysis", time.monotonic() - begun)
    if outcome.status != 0:
        failed = _failure_of(outcome, job.log("lock"))
        raise failure.error_of(job, command, outcome, failed, bazel.unpinned)
    files.remove(job.places.asked)
    return before
