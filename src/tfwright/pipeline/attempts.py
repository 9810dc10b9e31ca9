"""Runs of Bazel until it succeeds, and what they teach about the memory of this host."""

import time
from dataclasses import replace
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import FailureRecord, Match
from tfwright.documents.recipe import CompileTable
from tfwright.pipeline import cost, failure, unmet
from tfwright.pipeline.forecast import Forecast
from tfwright.pipeline.invocation import Invocation
from tfwright.pipeline.job import Job
from tfwright.progress import Listener, Progress
from tfwright.tools import files
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.bazel.client import BazelRun
from tfwright.tools.bazel.output import download_fault, download_faults
from tfwright.tools.process import capacity
from tfwright.tools.process.command import Command

PAUSES = (5.0, 20.0)
"""Seconds before a build is tried again after a failure that may pass by itself. Bazel has tried a
download for 13 seconds by then."""
THRASHING = 20.0
"""Percent of ten seconds, at worst, that everything waited for memory: from here on fewer actions
at once take less time."""

ALIKE = 1.1
"""A host whose memory grew by more than a tenth is another one: what was too much before may
fit."""


# In the recipe's own directory: how much memory an action takes depends on the recipe.
class Experience(BaseModel):
    """What is remembered of a recipe's builds, in ``memory.json`` of the recipe's directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    peak: float = Field(default=0, ge=0)
    """GiB that one action took at most."""
    jobs: int | None = Field(default=None, gt=0)
    """How many actions at once the memory is known to hold; None while it never ran out."""
    memory: float = Field(default=0, ge=0)
    """GiB that the host had then."""
    seconds: float = Field(default=0, ge=0)
    """How long the longest run of Bazel took that succeeded: how long the next may take."""


def build(calls: Invocation) -> BazelRun:
    """Run Bazel until it succeeds, or until another run would fail in the same way.

    Whether it would, the catalogue says of the first error. Raises a TfwrightError for the last
    run.
    """
    job, table = calls.job, calls.table
    jobs = _first_jobs(job, table)
    pauses, before = list(PAUSES), None
    while True:
        outcome, command = _run(calls, jobs)
        if outcome.status == 0:
            unmet.remember(job, ())
            return outcome
        failed = _cause(job, outcome)
        known = failed.match
        # Halving ends at 1, so it needs no limit of its own.
        if known and known.entry.retry == "fewer" and jobs > 1:
            jobs = _fewer(job, jobs)
        elif known is None or not pauses or not _may_pass(job, known, before):
            outcome = _with_all_downloads(calls, outcome)
            lacking = download_faults(outcome.errors)
            unmet.remember(job, (fault.url for fault in lacking))
            raise failure.error_of(job, command, outcome, failed, calls.unpinned)
        else:
            job.listener.note(f"{_reason(outcome, known)}; trying again in {pauses[0]:g} s")
            time.sleep(pauses.pop(0))
        before = known


def _run(calls: Invocation, jobs: int) -> tuple[BazelRun, Command]:
    """Run Bazel once; remember what the run took, and return it with its command."""
    job = calls.job
    command = calls.build(jobs)
    begun = time.monotonic()
    # Read before each run: the run before this one may have taught something.
    hear = partial(_report, job.listener, Forecast(read(job).seconds))
    outcome = calls.client.run(command, job.log("compile"), hear, partial(cost.note, job))
    _learn(job, calls.table, outcome, jobs)
    if outcome.status == 0:
        _learn_seconds(job, time.monotonic() - begun)
    return outcome, command


def _report(listener: Listener, forecast: Forecast, progress: Progress) -> None:
    """Pass progress on, with the seconds that are left."""
    listener.progress(replace(progress, remaining=forecast.remaining(progress)))


def _learn_seconds(job: Job, seconds: float) -> None:
    """Remember how long a run took that succeeded, if none took longer."""
    known = read(job)
    # The longest: a later run that takes most from the
    # cache says nothing about a fresh one.
    if seconds > known.seconds:
        _keep(job, known.model_copy(update={"seconds": round(seconds, 1)}))


def _cause(job: Job, outcome: BazelRun) -> FailureRecord:
    """Return what is known of the first error of a run."""
    # From where this run began: the log of all attempts holds earlier errors as well.
    return reader.record(
        job.log("compile"),
        outcome.start,
        killed=outcome.killed > 0,
        died=outcome.status == bazel_client.SERVER_DIED,
    )


def _first_jobs(job: Job, table: CompileTable) -> int:
    """Return how many actions the first run has at once.

    It is asked once: how much memory is free changes during the build.
    """
    wanted = actions_at_once(job, table)
    if job.jobs is None and wanted == read(job).jobs:
        job.listener.note(
            f"{wanted} at once, since more actions did not fit into the memory before "
            f"({job.places.memory})"
        )
    return wanted


def _learn(job: Job, table: CompileTable, outcome: BazelRun, jobs: int) -> None:
    """Remember for later builds what this run did to the memory."""
    peak = outcome.peak / capacity.GIB
    if peak > max(table.peak, read(job).peak):
        job.listener.note(
            f"One action took {peak:.1f} GiB of memory, more than the recipe's peak of "
            f"{table.peak:g}; later builds take that into account"
        )
    learn_peak(job, peak)
    _learn_pressure(job, outcome, jobs)


def _learn_pressure(job: Job, outcome: BazelRun, jobs: int) -> None:
    # A run that failed has its own remedy; this one
    # succeeded, only slower than need be.
    if outcome.status == 0 and outcome.pressure >= THRASHING and jobs > 1:
        learn_jobs(job, jobs - 1)
        job.listener.note(
            f"With {jobs} actions at once everything waited for memory "
            f"{outcome.pressure:.0f} % of the time; later builds run {jobs - 1}"
        )


def _fewer(job: Job, jobs: int) -> int:
    """Return half as many actions at once, and remember that for the next build."""
    fewer = jobs // 2
    learn_jobs(job, fewer)
    job.listener.note(
        f"The memory did not hold {jobs} actions at once; going on with {fewer}, "
        f"now and in later builds ({job.places.memory} keeps it)"
    )
    return fewer


def _may_pass(job: Job, known: Match, before: Match | None) -> bool:
    """Say whether the next run may succeed without any change."""
    # An offline build downloads nothing, however often it is tried.
    if job.offline and known.entry.stage == "fetch":
        return False
    if known.entry.retry == "pass":
        return True
    # The same wrong checksum twice: the server has
    # other bytes, no transfer was damaged.
    same = before is not None and before.text == known.text
    return known.entry.retry == "once" and not same


def _with_all_downloads(calls: Invocation, outcome: BazelRun) -> BazelRun:
    """Add to a run that failed for one download the others that would fail after it.

    A build stops at the first archive that it cannot get, so that without a lock each of them would
    cost a build. With --keep_going and --nobuild, Bazel asks for all of them.
    """
    fault = download_fault(outcome.errors)
    # Wrong bytes came from somewhere: more of them would only be downloaded again.
    if fault is None or fault.why.startswith("Checksum"):
        return outcome
    job = calls.job
    job.listener.note("Asking Bazel which other archives it cannot get")
    flags = calls.flags(_first_jobs(job, calls.table))
    asking = calls.client.command(*flags, "--nobuild", "--keep_going", "--", calls.table.target)
    all_of_them = calls.client.run(asking, job.log("compile-missing"), job.listener.progress)
    return replace(outcome, errors=(*outcome.errors, *all_of_them.errors))


def _reason(outcome: BazelRun, known: Match) -> str:
    """Say in one line what stopped Bazel."""
    fault = download_fault(outcome.errors)
    if fault:
        return f"{fault.url} could not be downloaded ({fault.why})"
    return known.cause.rstrip(".")


def read(job: Job) -> Experience:
    """Return what is remembered; nothing, if that cannot be read."""
    try:
        return Experience.model_validate_json(files.content(job.places.memory))
    except (OSError, ValueError):
        return Experience()


def learn_peak(job: Job, peak: float) -> None:
    """Remember the GiB that one action took, if that is more than is known."""
    known = read(job)
    if peak > known.peak:
        _keep(job, known.model_copy(update={"peak": round(peak, 3)}))


def learn_jobs(job: Job, jobs: int) -> None:
    """Remember that the memory did not hold more actions at once than `jobs`."""
    # With the host's memory, so that the lesson ends when the host is given more.
    memory = round(capacity.total() / capacity.GIB, 3)
    _keep(job, read(job).model_copy(update={"jobs": jobs, "memory": memory}))


def _keep(job: Job, experience: Experience) -> None:
    files.write(job.places.memory, experience.model_dump_json(indent=1) + "\n")


def actions_at_once(job: Job, table: CompileTable) -> int:
    """Return how many actions are run at once.

    What the user asks for wins. Else it is what the host file says, or what the processors and the
    memory allow; where the memory ran out before, no more than it held.
    """
    if job.jobs:
        return job.jobs
    known = read(job)
    # The worst case: every action at once takes as much as the largest one.
    peak = max(table.peak, known.peak)
    room = int(capacity.memory() / capacity.GIB / peak)
    wanted = job.host_file.jobs or max(1, min(capacity.cores(), room))
    same_host = capacity.total() / capacity.GIB <= known.memory * ALIKE
    if known.jobs and same_host:
        return min(wanted, known.jobs)
    return wanted
