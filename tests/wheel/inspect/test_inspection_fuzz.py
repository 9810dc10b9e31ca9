"""The readers of libraries and wheels on damaged input, for a second each.

`invoke test --attack --part readers` does the same for all readers, for as long as it is given. A
failure names the seed that repeats it.
"""

import os
import random
import time

import pytest
from tests.attack.mutation import damaged
from tests.attack.targets import TARGETS

SECONDS = float(os.environ.get("TFWRIGHT_FUZZ_SECONDS", "1"))
LONGEST = 10.0
"""Seconds of the processor that one damaged file may take; by the clock it would depend on what
else runs."""
READERS = (
    "elf",
    "mach-o",
    "fat binary",
    "NCCL's version",
    "directories of the host",
    "library compared",
    "wheel",
    "build_info",
)


@pytest.mark.medium
@pytest.mark.parametrize("name", READERS)
def test_damaged_input_is_refused_and_nothing_else_happens(name: str) -> None:
    target = TARGETS[name]
    samples = target.samples()
    ends = time.monotonic() + SECONDS
    seed = 0
    while time.monotonic() < ends:
        luck = random.Random(seed)
        _, content = damaged(luck.choice(samples), luck)
        started = time.process_time()
        try:
            target.read(content)
        except target.allowed:
            pass
        except Exception as fault:  # noqa: BLE001 whatever it is, it is what the test looks for
            pytest.fail(f"seed {seed}: {type(fault).__name__}: {fault}")
        assert time.process_time() - started < LONGEST, f"seed {seed} took too long"
        seed += 1
