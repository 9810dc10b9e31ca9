"""This host compared with a recipe: every difference, the worst first."""

from collections.abc import Sequence

from tfwright.doctor import requirements
from tfwright.doctor.findings import Finding
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.stages import NAMES
from tfwright.host import probes
from tfwright.host.probes import Host


def examine(recipe: Recipe, host_file: HostFile, host: Host) -> list[Finding]:
    """Return all that is not as the recipe wants it, the worst first, as `invoke doctor` does."""
    return worst_first(requirements.compare(recipe, host_file, host))


def obstacle(recipe: Recipe, host_file: HostFile) -> str | None:
    """Say in a few words what keeps this host from building a recipe; None if nothing does."""
    findings = examine(recipe, host_file, probes.here())
    return next((finding.found for finding in findings if finding.blocks), None)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort by the stage that is blocked, the earliest first, notes last."""

    def place(finding: Finding) -> int:
        # The sort is stable: within a stage the order of the requirements stays.
        return NAMES.index(finding.blocks) if finding.blocks else len(NAMES)

    return sorted(findings, key=place)


def blocks(finding: Finding, until: str) -> bool:
    """Say whether a build up to the stage `until` would run into a finding."""
    return bool(finding.blocks) and NAMES.index(finding.blocks) <= NAMES.index(until)
