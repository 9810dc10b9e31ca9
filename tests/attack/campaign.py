"""What the attacks share: how long each may take, by which seed, and what came of it."""

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

SECONDS = float(os.environ.get("TFWRIGHT_ATTACK_SECONDS", "3600"))
"""Seconds for all attacks together; those that were chosen share them evenly."""
SEED = int(os.environ.get("TFWRIGHT_ATTACK_SEED", "1"))
"""The same seed tries the same cases in the same order."""


@dataclass
class Attack:
    """One row of the table: what was tried, and what ended wrong."""

    name: str
    seconds: float
    """How long it goes on."""
    cases: int = 0
    kinds: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    """Each case that ended otherwise than it should, with what repeats it."""
    begun: float = field(default_factory=time.monotonic)
    spent: float = 0.0

    def numbers(self) -> Iterator[int]:
        """Return the numbers of the cases, for as long as there is time; at least one."""
        self.begun = time.monotonic()
        number = 0
        while not number or time.monotonic() - self.begun < self.seconds:
            yield number
            number += 1
        self.spent = time.monotonic() - self.begun

    def luck(self, number: int) -> random.Random:
        """Return the chance that decides a case: by seed, attack and number alone."""
        return random.Random(f"{SEED} {self.name} {number}")

    def tried(self, kind: str, wrong: str = "") -> None:
        """Count a case; `wrong` says what was not as it should be."""
        self.cases += 1
        self.kinds.add(kind)
        if wrong:
            self.wrong.append(f"seed {SEED}, {kind}: {wrong}")


def table(attacks: list[Attack]) -> Iterator[str]:
    """Return the lines of a Markdown table."""
    yield "| attack | seconds | cases | kinds | ended wrong |"
    yield "|---|---|---|---|---|"
    for attack in attacks:
        row = (attack.name, f"{attack.spent:.0f}", f"{attack.cases:,}", len(attack.kinds))
        yield f"| {' | '.join(map(str, row))} | {len(attack.wrong)} |"
