"""The external repositories that the recipe's target needs, as Bazel's analysis reports them."""

import time
from collections.abc import Mapping
from dataclasses import replace

from tfwright.diagnosis.reader import FailureRecord
from tfwright.pipeline import attempts, failure
from tfwright.pipeline.invocation import Invocation
from tfwright.rules import repositories
from tfwright.tools import files


def wanted(calls: Invocation) -> Mapping[str, str]:
    """Return the repositories that the target wants, by name, with digest or commit.

    Bazel names only the repositories that it makes, so that it is asked in an output base where it
    has none yet. Raises as the compile stage does if the target cannot be analysed.
    """
    job = calls.job
    client = replace(calls.client, output_base=job.places.own / "asked")
    report = job.places.logs / "resolved.bzl"
    # The same flags as a build: a --config or --define may bring other repositories in.
    flags = calls.flags(attempts.actions_at_once(job, calls.table))
    command = client.command(
        *flags,
        "--nobuild",
        # All archives that are missing are to be named at once, and not only the first.
        "--keep_going",
        f"--experimental_repository_resolved_file={report}",
        "--",
        calls.table.target,
    )
    calls.write_settings()
    job.listener.started("analysis", "asked Bazel which archives the target needs")
    begun = time.monotonic()
    try:
        outcome = client.run(command, job.log("lock"), job.listener.progress)
    finally:
        # The server holds files of the output base open, so it goes first.
        client.stop()
        files.remove(client.output_base)
    job.listener.finished("analysis", time.monotonic() - begun)
    if outcome.status != 0:
        raise failure.error_of(job, command, outcome, FailureRecord(None, None), calls.unpinned)
    return repositories.resolved(files.text(report))
