"""`invoke plan`: what a build would do, also for a recipe that this host cannot build."""

from collections.abc import Iterable

from tfwright.host import examination, probes
from tfwright.host.findings import Finding
from tfwright.pipeline import engine
from tfwright.pipeline.engine import Planned
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.stages import configure


def plan(job: BuildRequest, *, again: str = "") -> tuple[Iterable[Planned], list[Finding]]:
    """Return the plan, and what keeps this host from building the recipe up to the last stage."""
    findings = examination.examine(job.recipe, job.host_file, probes.here())
    blocking = [finding for finding in findings if examination.blocks(finding, job.until)]
    # A host that cannot build still gets the plan: it shows what another host would do.
    return engine.plan(
        job,
        again=again,
        blocked=bool(blocking),
    ), blocking


def bazelrc(job: BuildRequest) -> str:
    """Return the .tf_configure.bazelrc that the recipe's answers give; no tree is needed."""
    return configure.rendered(job.recipe, job.host_file)
