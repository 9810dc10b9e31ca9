"""What fails for a new reason is bisected in the same night."""

import json
from dataclasses import replace
from pathlib import Path

from tests.nightly.fake import PlayedHost, host_with

from tfwright.errors import HostError
from tfwright.nightly import night
from tfwright.nightly import state as states
from tfwright.nightly.builds import Breakage, NightlyBuild
from tfwright.nightly.notices import Channel, Notice
from tfwright.nightly.state import Culprit


def failing_host(
    tmp_path: Path, answers: list[Culprit | None], sent: list[Notice] | None = None
) -> tuple[PlayedHost, list[str]]:
    """Return a host whose recipe a broke after a good night; each bisection gives an answer."""
    asked: list[str] = []

    def bisect(build: NightlyBuild, seconds: float) -> Culprit | None:
        assert seconds > 0
        asked.append(build.target)
        return answers.pop(0)

    host = host_with(tmp_path, "a", "b", url="https://wheels.example/")
    host.changed_after_a_night().broken["a"] = Breakage(stage="compile", line="error: broken")
    return replace(host, bisect=bisect, channels=(inbox(sent if sent is not None else []),)), asked


def inbox(sent: list[Notice]) -> Channel:
    return Channel("inbox", sent.append)


def test_a_new_failure_is_bisected_once_and_its_notice_and_feed_name_the_change(
    tmp_path: Path,
) -> None:
    sent: list[Notice] = []
    culprit = Culprit("", "Broken by commit c0ffee", "c0ffee")
    host, asked = failing_host(tmp_path, [culprit], sent)
    outcome = night.run(host)
    assert outcome.culprits == {"a": "Broken by commit c0ffee"}
    host.fake.clock.next_night()
    assert night.run(host).culprits == {}
    assert asked == ["a"]
    (notice,) = sent
    assert "Broken by commit c0ffee." in notice.text
    assert "/builds/" in notice.url
    assert "Broken by commit c0ffee" in host.page("feed.xml")
    entry = json.loads(host.page("latest.json"))["targets"][0]
    assert entry["culprit"] == {"said": "Broken by commit c0ffee", "commit": "c0ffee"}


def test_another_reason_is_bisected_again(tmp_path: Path) -> None:
    answers: list[Culprit | None] = [Culprit("", "Broken by one"), Culprit("", "Broken by two")]
    host, asked = failing_host(tmp_path, answers)
    night.run(host)
    host.fake.clock.next_night()
    host.fake.broken["a"] = Breakage(stage="package", line="error: another")
    assert night.run(host).culprits == {"a": "Broken by two"}
    assert asked == ["a", "a"]


def test_a_bisection_beyond_the_budget_goes_on_in_the_next_night_and_is_told_then(
    tmp_path: Path,
) -> None:
    sent: list[Notice] = []
    host, asked = failing_host(tmp_path, [None, Culprit("", "Broken by the lock file")], sent)
    host.pass_night()
    night.run(host)
    assert asked == ["a", "a"]
    first, second = sent
    assert "Broken by" not in first.text
    assert "Broken by the lock file." in second.text
    assert first.thread == second.thread


def test_a_night_whose_budget_is_spent_bisects_nothing(tmp_path: Path) -> None:
    host, asked = failing_host(tmp_path, [])
    night.run(replace(host, nightly=host.nightly.model_copy(update={"hours": 0.1})))
    assert asked == []


def test_a_bisection_that_cannot_be_made_costs_no_night(tmp_path: Path) -> None:
    host, _ = failing_host(tmp_path, [])

    def fail(*_: object) -> Culprit | None:
        raise HostError("The disk is full", remedy="Free some space.")

    assert night.run(replace(host, bisect=fail)).verdicts == {"a": "failed", "b": "unchanged"}
    with states.open_state(tmp_path) as state:
        assert state.culprits() == {}


def test_new_wheels_are_told_where_that_is_asked_for(tmp_path: Path) -> None:
    sent: list[Notice] = []
    host = host_with(tmp_path, "a", url="https://wheels.example/", notices={"wheels": True})
    host = replace(host, channels=(inbox(sent),))
    host.pass_nights(2)
    (notice,) = sent
    assert notice.subject.startswith("a: new wheel 1.0+g")
    assert "pip install --extra-index-url https://wheels.example/r/a/ tf-a==1.0+g" in notice.text
    assert notice.url.startswith("https://wheels.example/builds/")
    feed = host.page("feed.xml")
    assert feed.count("<entry>") == 1
    assert notice.url in feed
