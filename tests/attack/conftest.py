"""Attacks run only when they are asked for: `invoke test --attack`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attack.campaign import SECONDS, SEED, WEIGHTS, Attack, table

_DONE: list[Attack] = []


def weight(item: pytest.Item) -> int:
    """Return how many shares of the time a test has, by the part of the campaign it is in."""
    return WEIGHTS.get(item.path.stem.removeprefix("test_"), 1)


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> Iterator[Attack]:
    """Return an attack with its share of the time; fail if any of its cases ended wrong."""
    name = request.node.name.removeprefix("test_").replace("_", " ")
    together = sum(weight(item) for item in request.session.items)
    made = Attack(name, SECONDS * weight(request.node) / together)
    yield made
    _DONE.append(made)
    if made.wrong:
        pytest.fail("\n".join(made.wrong[:20]), pytrace=False)


@pytest.fixture(autouse=True)
def no_collection() -> None:
    """Collect garbage as always: an attack lasts for minutes, and would fill the memory."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table that docs/lab-notes/attacks.md holds."""
    if _DONE:
        terminalreporter.section(f"attacks, seed {SEED}")
        for line in table(_DONE):
            terminalreporter.write_line(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all of this folder, and nothing else."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.attack)
