"""The error for a run of Bazel that failed, sorted by who must act."""

from collections.abc import Sequence
from dataclasses import replace

from tfwright.diagnosis.reader import FailureRecord
from tfwright.errors import (
    Evidence,
    FullDiskError,
    HostError,
    RecipeError,
    SupplyError,
    TfwrightError,
    ToolError,
)
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Unpinned
from tfwright.tools import disk
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.bazel.client import BazelRun
from tfwright.tools.bazel.output import DownloadFault, download_faults, failed_repositories
from tfwright.tools.process.command import Command, open_container
from tfwright.tools.process.runner import TAIL_LINES
from tfwright.vault import substitutes


def error_of(
    job: Job,
    command: Command,
    outcome: BazelRun,
    failed: FailureRecord,
    unpinned_downloads: Sequence[Unpinned] = (),
) -> TfwrightError:
    """Return the error for a build that failed, sorted by who must act."""
    known, status = failed.match, outcome.status
    evidence = Evidence(
        command=command.argv,
        status=status,
        log=outcome.log,
        lines=outcome.errors[:TAIL_LINES],
        failure=failed,
    )
    # Python reports a signal as a negative status.
    ending = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
    what = f"Bazel {ending}"
    if root := failed.excerpt:
        what = (root.action or root.what).removeprefix("ERROR: ")
        evidence = replace(evidence, where=root.where, lines=root.lines)
    # Asked first: a failed download ends Bazel with the same status as a failed compile.
    downloads = download_faults(outcome.errors)
    # A clone fails for many reasons with a network, and for one without.
    offline = job.offline or open_container() is not None
    broken = failed_repositories(outcome.errors) if offline else set[str]()
    asked = {download.url for download in downloads}
    if loose := [
        entry
        for entry in unpinned_downloads
        if entry.name in broken or not asked.isdisjoint(entry.urls)
    ]:
        return _unpinned_error(job, loose, downloads, evidence)
    if downloads:
        return _download_error(job, downloads, evidence)
    if status == bazel_client.REFUSED:
        return RecipeError(
            f"Bazel refuses the build: {what}",
            remedy="Correct the flags in the recipe's [compile], or pin another Bazel in [bazel]; "
            "the log says from which rc file a flag came.",
            evidence=evidence,
        )
    if known and known.entry.retry == "fewer":
        # The attempts halved the actions down to one before they gave up.
        error = HostError(
            f"The memory ran out, with one action at a time: {what}",
            remedy="Close other programs, raise the container's limit, or add swap.",
            evidence=evidence,
        )
        if outcome.died_early:
            server_log = job.places.bazel / "server/jvm.out"
            error = HostError(
                f"Bazel's server ended before its first action: {what}",
                remedy=f"Read {server_log}, where the server writes its last words. It crashed, "
                "was killed, or had too little memory to load the packages.",
                evidence=evidence,
            )
        return error
    # A compiler on a full disk often reports something else, such as a truncated object.
    written = (job.places.own, job.places.bazel)
    if (known and failed.disk_is_full) or any(map(disk.is_full, written)):
        return FullDiskError(what, evidence)
    return ToolError(
        what,
        remedy="Look at the lines above; the log holds the whole command. What was built is kept.",
        evidence=evidence,
    )


def _unpinned_error(
    job: Job, loose: Sequence[Unpinned], faults: Sequence[DownloadFault], evidence: Evidence
) -> RecipeError:
    """Return the error for downloads that fetch could not bring, since no checksum holds them."""
    names = list(dict.fromkeys(download.name for download in loose))
    of_them = {url for download in loose for url in download.urls}
    lines = [line for download in loose for line in download.lines]
    # The others need a mirror or a dropped file, which the next run of fetch will say.
    lines += [f"{fault.url}: {fault.why}" for fault in faults if fault.url not in of_them]
    tables = {download.name for download in loose if download.by_table}
    return RecipeError(
        f"Bazel could not download what has no checksum, and fetch left to it: {', '.join(names)}",
        remedy=substitutes.pinning_remedy(
            job.argument, names, tables, locked=job.locked is not None
        ),
        # Whatever the log suggests, such as a dropped file, cannot help here.
        evidence=replace(evidence, lines=lines, failure=FailureRecord(None, None)),
    )


def _download_error(job: Job, faults: Sequence[DownloadFault], evidence: Evidence) -> SupplyError:
    """Return the error for the archives that Bazel could not get."""
    first, count = faults[0], len(faults)
    many = f"{first.url} and {count - 1} more" if count > 1 else first.url
    if count > 1:
        lines = [f"{fault.url}: {fault.why}" for fault in faults]
        evidence = replace(evidence, lines=lines)
    if job.offline:
        what = f"This build is offline, and Bazel wanted to download {many}"
        remedy = (
            f"Run 'invoke fetch --recipe {job.argument}' with a network. What it does not find "
            "either needs a mirror in [mirrors] or [downloads] of the host file; or put the file, "
            "under any name, into the folder that the host file names as 'drop'."
        )
    else:
        what = f"Bazel could not download {many}" + ("" if count > 1 else f": {first.why}")
        remedy = (
            "Check the network; or put the files, under any name, into the folder that the host "
            f"file names as 'drop', then run 'invoke fetch --recipe {job.argument}'."
        )
    return SupplyError(what, remedy=remedy, evidence=evidence)
