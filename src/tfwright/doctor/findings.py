"""A finding: one thing about this host that is not as a recipe wants it."""

from dataclasses import dataclass


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

    def __str__(self) -> str:
        return f"{self.found}; wanted: {self.wanted}"
