"""Who builds what: the longest first, nothing twice, and nothing lost with a worker."""

import heapq
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tfwright.workers import schedule
from tfwright.workers.schedule import ATTEMPTS, Trouble, WorkSchedule


def test_the_longest_recipe_starts_first_and_an_unknown_one_before_it() -> None:
    planned = schedule.planned(["short", "long", "new"], ["one"], {"short": 1, "long": 100})
    assert planned.waiting == ("new", "long", "short")


def test_each_idle_worker_gets_one_recipe() -> None:
    current, begun = schedule.planned(["a", "b", "c"], ["one", "two"], {}).started()
    assert [(each.recipe, each.worker) for each in begun] == [("a", "one"), ("b", "two")]
    assert current.started()[1] == ()


def test_a_failed_build_leaves_its_worker_at_work() -> None:
    current, _ = schedule.planned(["a", "b"], ["one"], {}).started()
    current, begun = current.ended("a", 5, Trouble("no compiler")).started()
    assert current.assignments["a"].state == "failed"
    assert begun[0].worker == "one"


def test_the_recipe_of_a_lost_worker_goes_to_another_one() -> None:
    current, _ = schedule.planned(["a"], ["one", "two"], {}).started()
    current, begun = current.lost("a", 5, Trouble("no answer")).started()
    assert (begun[0].recipe, begun[0].worker) == ("a", "two")
    assert "one" not in current.idle


def test_a_recipe_waits_for_no_worker_that_is_gone_or_refused_it() -> None:
    current = schedule.planned(["a"], ["one", "two"], {})
    current, _ = current.started()
    current, _ = current.refused("a", 1, Trouble("no CUDA")).started()
    last = current.lost("a", 1, Trouble("no answer", "Log in", "a.log"))
    given = last.assignments["a"]
    assert (given.state, given.detail) == ("lost", "no answer")
    assert (given.remedy, given.log) == ("Log in", "a.log")


def test_what_never_started_says_that_no_worker_was_left() -> None:
    current, _ = schedule.planned(["a", "b"], ["one"], {}).started()
    done = current.lost("a", 1, Trouble("gone")).closed()
    assert done.assignments["a"].detail == "gone"
    assert "no worker was left" in done.assignments["b"].detail
    assert done.assignments["b"].remedy


def test_a_recipe_that_loses_every_worker_fails() -> None:
    current = schedule.planned(["a"], [f"w{number}" for number in range(9)], {})
    for _ in range(ATTEMPTS):
        current, _ = current.started()
        current = current.lost("a", 1, Trouble("gone"))
    assert current.assignments["a"].state == "failed"
    assert current.over


def test_without_workers_the_rest_is_named_as_lost() -> None:
    current, _ = schedule.planned(["a", "b"], ["one"], {}).started()
    current = current.lost("a", 1, Trouble("gone"))
    assert current.over
    assert {each.state for each in current.closed().assignments.values()} == {"lost"}


def simulated(
    recipes: Mapping[str, float], workers: int, losses: int
) -> tuple[WorkSchedule, float]:
    """Play builds of known length; `losses` workers die in the middle. Return when all is over."""
    chance = random.Random(1)
    doomed = {f"w{number}" for number in chance.sample(range(workers), losses)}
    names = [f"w{number}" for number in range(workers)]
    current, now = schedule.planned(list(recipes), names, recipes), 0.0
    events: list[Any] = []
    while not current.over:
        current, begun = current.started()
        for given in begun:
            length = recipes[given.recipe]
            ends = now + (length / 2 if given.worker in doomed else length)
            heapq.heappush(events, (ends, given.recipe, given.worker))
        now, recipe, worker = heapq.heappop(events)
        if worker in doomed:
            current = current.lost(recipe, 0, Trouble("died"))
        else:
            current = current.ended(recipe, recipes[recipe])
    return current.closed(), now


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
