"""What the attacks share: how long each may take, by which seed, and what came of it."""

import math
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

SECONDS = float(os.environ.get("TFWRIGHT_ATTACK_SECONDS", "3600"))
"""Seconds for all attacks together; those that were chosen share them."""
WEIGHTS = {"kills": 10, "disks": 10, "damage": 10, "strangers": 3, "readers": 1}
"""How many shares of the time an attack of each part has: a build takes seconds, a reader
milliseconds."""
MOST_CASES = 200
"""Cases after which an attack on whole builds ends, even where there is time left."""
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

    def numbers(self, at_most: float = math.inf) -> Iterator[int]:
        """Yield the numbers of the rounds, at least one, until the time or the cases are over."""
        self.begun = time.monotonic()
        number = 0
        while not number or (self.time_left() and self.cases < at_most):
            yield number
            number += 1
        self.spent = time.monotonic() - self.begun

    def time_left(self) -> bool:
        """Tell whether this attack's share of the time is not over yet."""
        return time.monotonic() - self.begun < self.seconds

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
