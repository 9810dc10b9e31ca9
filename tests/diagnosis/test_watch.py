"""The watch: the fast way and Python's own find the same."""

import random
import sys

import pytest

from tfwright.diagnosis import reader, watch
from tfwright.diagnosis.catalogue import Clue, everything
from tfwright.diagnosis.watch import Watch

CLUES = [*(entry.clue for entry in everything()), *map(Clue, reader._COMPLAINTS)]
LETTERS = [
    b"\n",
    b": ",
    b"] ",
    b"ERROR",
    b"error",
    b"fatal",
    b"Killed",
    b"GET returned ",
    b"503",
    b" ",
    b"a",
    b"\xff",
    b"\0",
]


def plainly(data: bytes) -> set[int]:
    """Return which clues stand in some bytes, each looked for by itself."""
    return {number for number, clue in enumerate(CLUES) if clue.regex.search(data)}


@pytest.fixture
def sieve() -> watch.Sieve:
    pytest.importorskip("hyperscan", reason="Hyperscan is not made for this machine")
    made = watch._sieve(tuple(clue.regex.pattern for clue in CLUES))
    assert made
    return made


def test_the_sieve_lets_through_every_sample_of_the_catalogue(sieve: watch.Sieve) -> None:
    samples = [f"\n{entry.sample}\n".encode() for entry in everything()]
    assert [plainly(sample) - sieve(sample) for sample in samples] == [set()] * len(samples)


def test_the_sieve_lets_through_whatever_a_pattern_finds(sieve: watch.Sieve) -> None:
    chance = random.Random(7)
    samples = [entry.sample.encode() for entry in everything()]
    for _ in range(500):
        data = b"".join(
            chance.choice([chance.choice(LETTERS), chance.choice(samples)[chance.randrange(30) :]])
            for _ in range(12)
        )
        assert plainly(data) <= sieve(data)


def test_what_no_pattern_needs_is_stopped(sieve: watch.Sieve) -> None:
    assert sieve(b"\n[1 / 2] Compiling a.cc; 1s local\n") == set()


def test_a_machine_without_hyperscan_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    watch._sieve.cache_clear()
    try:
        plain = Watch(CLUES)
    finally:
        watch._sieve.cache_clear()
    data = "\n".join(["", *(entry.sample for entry in everything()), ""]).encode()
    assert plain._sieve is None
    assert list(plain.hits(data)) == list(Watch(CLUES).hits(data))


def test_what_was_found_is_not_looked_for_again() -> None:
    watching = Watch(list(map(Clue, ("^ERROR: ", ": no such"))))
    watching.found({0})
    assert list(watching.hits(b"\nERROR: x\n")) == []
    assert list(watching.hits(b"\nERROR: no such\n")) == [(6, 1)]
