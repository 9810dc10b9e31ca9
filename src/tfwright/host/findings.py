"""A finding: one thing about this host that is not as a recipe wants it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was found, what is wanted instead, and what to do about it."""

    found: str
    """As short as it can be said: ``no Python 3.6``; also a cell of `invoke recipes`."""
    wanted: str
    remedy: str
    """A command where there is one."""
    blocks: str = ""
    """The first stage that cannot run because of it; empty for something worth knowing only."""

    def __str__(self) -> str:
        return f"{self.found}; wanted: {self.wanted}"
