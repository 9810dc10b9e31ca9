"""Builds and fetches that are killed at random moments: the next one makes the same."""

from pathlib import Path

import pytest
from tests.attack.archives import ManyArchives
from tests.attack.campaign import MOST_CASES, Attack
from tests.attack.program import SIGNALS, Demo, seconds_of

MOST_KILLS = 6
"""Kills in a row before a build or fetch may come to its end."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


def test_builds_killed_at_random_moments(demo: Demo, attack: Attack) -> None:
    usual = seconds_of(demo)
    for number in attack.numbers(MOST_CASES):
        luck = attack.luck(number)
        demo.forget()
        sent = []
        for _ in range(luck.randint(1, MOST_KILLS)):
            name = luck.choice(list(SIGNALS))
            demo.killed(SIGNALS[name], luck.uniform(0.1, usual), "build")
            sent.append(name)
        wrong = demo.wrong(demo.run("build"))
        for name in sent:
            # All kills of a round share its verdict, which is counted once.
            attack.tried(name, f"round {number}: {wrong}" if wrong else "")
            wrong = ""


def test_fetches_killed_at_random_moments(tmp_path: Path, attack: Attack) -> None:
    with ManyArchives(tmp_path) as archives:
        usual = archives.seconds()
        for number in attack.numbers(MOST_CASES):
            luck = attack.luck(number)
            archives.lose(luck)
            sent = []
            for _ in range(luck.randint(1, MOST_KILLS)):
                name = luck.choice(list(SIGNALS))
                archives.program.killed(SIGNALS[name], luck.uniform(0.1, usual), *archives.fetch)
                sent.append(name)
            wrong = archives.wrong(archives.program.run(*archives.fetch))
            for name in sent:
                attack.tried(name, f"round {number}: {wrong}" if wrong else "")
                wrong = ""
