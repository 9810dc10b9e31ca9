"""Every reader on damaged input says what is wrong, in bounded time, and never fails otherwise."""

import time

import pytest
from tests.attack.campaign import Attack
from tests.attack.mutation import damaged
from tests.attack.targets import TARGETS

LONGEST = 10.0
"""Seconds of processor time that one damaged file may take."""


@pytest.mark.parametrize("name", TARGETS)
def test_reader(name: str, attack: Attack) -> None:
    target = TARGETS[name]
    samples = target.samples()
    if not samples:
        pytest.skip(f"there is no sample of {name}")
    for number in attack.numbers():
        luck = attack.luck(number)
        kind, content = damaged(luck.choice(samples), luck)
        wrong, begun = "", time.process_time()
        try:
            target.read(content)
        except target.allowed:
            pass
        except Exception as fault:  # noqa: BLE001 whatever it is, it is what the attack looks for
            wrong = f"case {number} ended in {type(fault).__name__}: {str(fault)[:200]}"
        if (spent := time.process_time() - begun) > LONGEST:
            wrong = f"case {number} took {spent:.1f} s of the processor"
        attack.tried(kind, wrong)
