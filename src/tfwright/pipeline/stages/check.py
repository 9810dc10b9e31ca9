"""Compares this host with the recipe: everything that is missing, at once.

Runs every time and keeps nothing, so it asks only what the recipe needs to know: for one without
TensorFlow's own source or CUDA, a handful of programs that answer within milliseconds.
"""

from collections.abc import Sequence

from tfwright.configure import expected
from tfwright.doctor import requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents.recipe import Recipe, check_makes_wheel
from tfwright.errors import HostError, RecipeError
from tfwright.host import probes, pythons
from tfwright.pipeline import host_facts
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import HostFacts
from tfwright.tools.python import pips

CACHED = False


def run(job: Job, recipe: Recipe) -> HostFacts:
    """Say what of this host takes part in the build.

    Raises RecipeError for answers that ./configure would refuse, ignore or ask for in vain, and
    HostError with every finding if a stage up to the job's last one could not run; a
    finding that only later stages would mind is passed on as a note.
    """
    # Known from the recipe alone, so it comes before the slower look at the host.
    answers = expected.interview(recipe, job.host_file)
    remarks = [*expected.remarks(answers)]
    # What the first build takes, before it begins.
    if job.reaches("compile") and not job.places.bazel.exists():
        remarks.append(requirements.forecast(recipe))
    for remark in filter(None, remarks):
        job.listener.note(remark)
    try:
        expected.check_answers(answers)
    except RecipeError as fault:
        # A build that does not configure goes on.
        if job.reaches("configure"):
            raise
        job.listener.note(fault.what)
    if job.reaches("package"):
        check_makes_wheel(recipe.compile.target, recipe.package, recipe.source.release)
    host = probes.this_host()
    findings = requirements.examine(recipe, job.host_file, host)
    interpreter = pythons.find(recipe.host.python, job.host_file)
    blocking = [finding for finding in findings if finding.stops(job.until)]
    # What stops nothing is a note also where something else stops the build.
    notes = [finding for finding in findings if finding not in blocking]
    for finding in notes:
        job.listener.note(". ".join(filter(None, (str(finding), _short_remedy(finding)))))
    # The facts name the interpreter, so a build without one stops here in any case.
    if interpreter is None or blocking:
        raise _refusal(job, blocking or findings)
    if not all(map(_short_remedy, notes)):
        job.listener.note(f"'invoke doctor --recipe {job.argument}' shows what to do")
    if job.reaches("verify"):
        # Here and not above: only the interpreter says which Python "any" is.
        version = pythons.version_of(interpreter)
        pins = (*recipe.verify.requirements, *recipe.verify.plugins)
        pips.check_reads_platform(recipe.package.platform, version, pins)
    return host_facts.facts(recipe, job.host_file, host, interpreter)


def _refusal(job: Job, findings: Sequence[Finding]) -> HostError:
    """Put all findings into one error; a single one is said as plainly as it is."""
    goal = f"{job.name} cannot be built here up to '{job.until}'"
    if len(findings) == 1:
        fault = HostError(f"{goal}: {findings[0]}", remedy=findings[0].remedy)
        fault.lasting = findings[0].lasting
        return fault
    lines = [f"{goal}:"]
    for number, finding in enumerate(findings, 1):
        lines.append(f"  {number}. {finding}")
        if sentence := _short_remedy(finding):
            lines.append(f"     {sentence}")
    remedy = "Follow the advice under each finding, then start again."
    if not all(map(_short_remedy, findings)):
        remedy = f"invoke doctor --recipe {job.argument}   # shows what to do for each finding"
    fault = HostError("\n".join(lines), remedy=remedy)
    fault.lasting = any(finding.lasting for finding in findings)
    return fault


def _short_remedy(finding: Finding) -> str:
    """Return a remedy of one line; several commands are left to doctor, which has room for them."""
    return "" if "\n" in finding.remedy else finding.remedy
