"""Who builds what: the longest first, nothing twice, and nothing lost with a worker."""

import heapq
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.workers.schedule import ATTEMPTS, WorkSchedule

LOST = RemoteBuild(1, ssh.LOST, "no answer", remedy="Log in", log="a.log")
REFUSED = RemoteBuild(1, 3, "no CUDA")


def begun(schedule: WorkSchedule) -> list[tuple[str, str]]:
    """Start what can be started; return recipes and workers."""
    return [(each.recipe, each.worker) for each in schedule.start()]


def test_the_longest_recipe_starts_first_and_an_unknown_one_before_it() -> None:
    schedule = WorkSchedule(["short", "long", "new"], ["one"], {"short": 1, "long": 100})
    assert list(schedule.assignments) == ["new", "long", "short"]


def test_each_idle_worker_gets_one_recipe() -> None:
    schedule = WorkSchedule(["a", "b", "c"], ["one", "two"], {})
    assert begun(schedule) == [("a", "one"), ("b", "two")]
    assert begun(schedule) == []


def test_a_failed_build_leaves_its_worker_at_work() -> None:
    schedule = WorkSchedule(["a", "b"], ["one"], {})
    schedule.start()
    assert schedule.finish("a", RemoteBuild(5, 2, "no compiler")).state == "failed"
    assert begun(schedule) == [("b", "one")]


def test_the_recipe_of_a_lost_worker_goes_to_another_one() -> None:
    schedule = WorkSchedule(["a", "b"], ["one", "two"], {})
    schedule.start()
    assert schedule.finish("a", LOST).state == "waiting"
    # The lost one takes nothing any more.
    assert begun(schedule) == []
    schedule.finish("b", RemoteBuild(1))
    assert begun(schedule) == [("a", "two")]


def test_a_recipe_waits_for_no_worker_that_is_gone_or_refused_it() -> None:
    schedule = WorkSchedule(["a"], ["one", "two"], {})
    schedule.start()
    schedule.finish("a", REFUSED)
    assert begun(schedule) == [("a", "two")]
    given = schedule.finish("a", LOST)
    assert (given.state, given.detail) == ("lost", "no answer")
    assert (given.remedy, given.log, given.status) == ("Log in", "a.log", 0)


def test_what_never_started_says_that_no_worker_was_left() -> None:
    schedule = WorkSchedule(["a", "b"], ["one"], {})
    schedule.start()
    schedule.finish("a", LOST)
    assert begun(schedule) == []
    schedule.close()
    assert {each.state for each in schedule.assignments.values()} == {"lost"}
    assert schedule.assignments["a"].detail == "no answer"
    assert "no worker was left" in schedule.assignments["b"].detail
    assert schedule.assignments["b"].remedy


def test_a_recipe_that_loses_every_worker_fails() -> None:
    schedule = WorkSchedule(["a"], [f"w{number}" for number in range(9)], {})
    for _ in range(ATTEMPTS):
        assert begun(schedule)
        schedule.finish("a", LOST)
    assert schedule.assignments["a"].state == "failed"
    assert begun(schedule) == []
    assert not schedule.running


def simulated(
    recipes: Mapping[str, float], workers: int, losses: int
) -> tuple[WorkSchedule, float]:
    """Play builds of known length; `losses` workers die in the middle. Return when all is over."""
    chance = random.Random(1)
    doomed = {f"w{number}" for number in chance.sample(range(workers), losses)}
    names = [f"w{number}" for number in range(workers)]
    schedule, now = WorkSchedule(list(recipes), names, recipes), 0.0
    events: list[Any] = []
    while True:
        for given in schedule.start():
            length = recipes[given.recipe]
            ends = now + (length / 2 if given.worker in doomed else length)
            heapq.heappush(events, (ends, given.recipe, given.worker))
        if not events:
            schedule.close()
            return schedule, now
        now, recipe, worker = heapq.heappop(events)
        schedule.finish(recipe, LOST if worker in doomed else RemoteBuild(recipes[recipe]))


@pytest.mark.medium
@pytest.mark.parametrize("losses", [0, 20])
def test_a_thousand_recipes_on_a_hundred_workers_end_near_the_optimum(losses: int) -> None:
    chance = random.Random(2)
    recipes = {f"r{number}": chance.lognormvariate(7, 1) for number in range(1000)}
    begun = time.process_time()
    done, took = simulated(recipes, 100, losses)
    assert {each.state for each in done.assignments.values()} == {"built"}
    best = max(sum(recipes.values()) / (100 - losses), *recipes.values())
    # A lost build starts again, at worst the longest one, and at the very end.
    again = max(recipes.values()) if losses else 0.0
    assert took < 1.15 * best + again
    assert time.process_time() - begun < 5
