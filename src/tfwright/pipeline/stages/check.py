"""Compares this host with the recipe: everything that is missing, at once.

Runs every time and keeps nothing, so it asks only what the recipe needs to know: for one without
TensorFlow's own source or CUDA, a handful of programs that answer within milliseconds.
"""

from collections.abc import Sequence
from pathlib import Path

from tfwright.configure import expected
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import HostTable, Recipe
from tfwright.errors import HostError, RecipeError
from tfwright.host import cuda, probes, pythons, requirements
from tfwright.host.findings import Finding
from tfwright.host.probes import Host
from tfwright.pipeline.results import HostFacts
from tfwright.pipeline.stage import Job
from tfwright.pipeline.stages import NAMES

CACHED = False


def run(job: Job, table: HostTable) -> HostFacts:
    """Say what of this host takes part in the build.

    Raises RecipeError for answers that ./configure would refuse, ignore or ask for in vain, and
    HostError with every finding if a stage up to the job's last one could not run; a
    finding that only later stages would mind is passed on as a note.
    """
    _verify_answers(job)
    if _reaches(job, "package"):
        job.recipe.insist_on_wheel()
    host = probes.here()
    findings = examine(job.recipe, job.host_file, host)
    interpreter = pythons.find(table.python, job.host_file)
    if interpreter is None or any(blocks(finding, job.until) for finding in findings):
        raise refusal(job, findings)
    for finding in findings:
        job.listener.note(f"{finding}. {_advice(job, finding)}")
    return facts(job, host, interpreter)


def _reaches(job: Job, stage: str) -> bool:
    """Say whether a build goes as far as a stage."""
    return NAMES.index(stage) <= NAMES.index(job.until)


def _verify_answers(job: Job) -> None:
    """Say what of the recipe's answers cannot be meant; a build that does not configure goes on."""
    answers = expected.interview(job.recipe, job.host_file)
    for remark in expected.remarks(answers):
        job.listener.note(remark)
    try:
        expected.insist_on_answers(answers)
    except RecipeError as fault:
        if _reaches(job, "configure"):
            raise
        job.listener.note(fault.what)


def examine(recipe: Recipe, host_file: HostFile, host: Host) -> list[Finding]:
    """Return everything that is not as the recipe wants it, the worst first: what `invoke doctor` shows."""
    return worst_first(requirements.compare(recipe, host_file, host))


def obstacle(recipe: Recipe, host_file: HostFile) -> str | None:
    """Say in a few words what keeps a recipe from being built here to its end; None if nothing does."""
    return next(
        (finding.found for finding in examine(recipe, host_file, probes.here()) if finding.blocks),
        None,
    )


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort by the stage that is blocked, the earliest first, notes last."""
    return sorted(
        findings, key=lambda finding: NAMES.index(finding.blocks) if finding.blocks else len(NAMES)
    )


def blocks(finding: Finding, until: str) -> bool:
    """Say whether a build up to the stage `until` would run into a finding."""
    return bool(finding.blocks) and NAMES.index(finding.blocks) <= NAMES.index(until)


def refusal(job: Job, findings: Sequence[Finding]) -> HostError:
    """Put all findings into one error; a single one is said as plainly as it is."""
    goal = f"{job.recipe.name} cannot be built here up to '{job.until}'"
    if len(findings) == 1:
        return HostError(f"{goal}: {findings[0]}", remedy=findings[0].remedy)
    lines = [
        f"  {number}. {finding}\n     {_advice(job, finding)}"
        for number, finding in enumerate(findings, 1)
    ]
    return HostError(
        "\n".join([f"{goal}:", *lines]), remedy="Do what stands under each, then start again."
    )


def _advice(job: Job, finding: Finding) -> str:
    """Return a remedy on one line; several commands are left to where there is room for them."""
    return (
        finding.remedy
        if "\n" not in finding.remedy
        else f"'invoke doctor --recipe {job.recipe.name}' has the commands."
    )


def facts(job: Job, host: Host, interpreter: Path) -> HostFacts:
    """Return what of a host takes part in a build with this interpreter."""
    toolkit, cudnn = cuda.present(job.recipe, job.host_file)
    return HostFacts(
        system=host.system,
        machine=host.machine,
        glibc=host.glibc.value,
        interpreter=interpreter,
        python=pythons.version_of(interpreter),
        compiler=host.compiler.value,
        cuda=toolkit,
        cudnn=cudnn,
    )
