"""A finding: one thing about this host that is not as a recipe wants it."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.stages import NAMES
from tfwright.host.probes import Host


@dataclass(frozen=True)
class Finding:
    """What was found, what is wanted instead, why, and what to do about it."""

    found: str
    """As short as it can be said: ``no Python 3.6``; also a cell of `invoke recipes`."""
    wanted: str
    remedy: str
    """Commands, one a line, where there are some; else a sentence."""
    blocks: str = ""
    """The first stage that cannot run because of it; empty for something worth knowing only."""
    why: str = ""
    """Where the rule is from: an address, a file of this host, or the recipe when empty."""
    lasting: bool = False
    """Whether it is so whatever is done on this host, such as its kind of machine."""

    def __str__(self) -> str:
        return f"{self.found}; wanted: {self.wanted}"

    def stops(self, until: str) -> bool:
        """Say whether a build up to the stage `until` would run into it."""
        return bool(self.blocks) and NAMES.index(self.blocks) <= NAMES.index(until)


@dataclass(frozen=True)
class Comparison:
    """A recipe, and the host on which it is to be built."""

    recipe: Recipe
    host_file: HostFile
    host: Host


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort by the stage that is blocked, the earliest first, notes last."""

    def place(finding: Finding) -> int:
        # The sort is stable: within a stage the order of the requirements stays.
        return NAMES.index(finding.blocks) if finding.blocks else len(NAMES)

    return sorted(findings, key=place)
