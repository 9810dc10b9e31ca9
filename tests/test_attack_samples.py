"""What the attacks damage is sound before: a reader that refuses it at once is hardly attacked."""

import pytest
from tests.attack.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_takes_the_samples_of_its_attack(name: str) -> None:
    target = TARGETS[name]
    samples = target.samples()
    assert samples
    for sample in samples:
        target.read(sample)
