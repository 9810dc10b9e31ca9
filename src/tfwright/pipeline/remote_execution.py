"""Bazel's own remote execution, by flags of the host file; tfwright only passes them.

Nothing of it was tried. It is refused where it cannot work: the CUDA rules of old TensorFlows read
the host outside of what Bazel would send, and buildfarm reports failures with Bazel 0.24.
"""

from tfwright.documents.release import Release
from tfwright.errors import HostError
from tfwright.pipeline.job import Job
from tfwright.tools.process import inside

FIRST = Release(6, 0)
"""The first Bazel that is given the flags."""
NOTE = "Bazel runs actions on other machines, by remote_execution of the host file: untested"


def flags(job: Job, version: str) -> tuple[str, ...]:
    """Return the flags for a Bazel of a version; none where the host file has none.

    Raises HostError where they cannot work.
    """
    given = job.host_file.remote_execution
    if not given:
        return ()
    # Refused and not ignored: whoever names other machines expects them to be used.
    reason = _obstacle(job, version)
    if reason:
        raise HostError(
            f"remote_execution in the host file cannot be used: {reason}",
            remedy="Remove it, or build this recipe with another host file.",
        )
    return given


def _obstacle(job: Job, version: str) -> str:
    """Say why this build cannot use it; empty if it can."""
    if Release.parse(version) < FIRST:
        return f"the recipe pins Bazel {version}, and it is passed to Bazel 6 and later"
    # An offline build proves that it needs no network, and these machines are one.
    if job.offline:
        return "an offline build reaches no other machine"
    if inside.current():
        return "the recipe's container has no network"
    return ""
