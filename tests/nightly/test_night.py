"""Nights on a simulated clock: what is due, what is kept, and what users see."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.nightly import fake
from tests.nightly.fake import FakeBuilder, PlayedHost, host_with
from tests.nightly.wheels import write_wheel

from tfwright.errors import HostError
from tfwright.nightly import builds, night, notices, site
from tfwright.nightly import state as states
from tfwright.nightly.builds import Breakage, NightlyBuild
from tfwright.nightly.night import FreeSpace
from tfwright.nightly.notices import Channel, Notice
from tfwright.tools.process import file_lock

pytestmark = pytest.mark.medium

BROKEN = Breakage(
    stage="compile",
    line="error: no <member> named 'foo'",
    cause="gcc is too new",
    remedy="Use gcc 7.",
    log="compile.log",
    number=2,
)


def test_the_first_night_builds_and_the_second_does_nothing(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b")
    assert set(host.pass_night().verdicts.values()) == {"good"}
    assert set(host.pass_night().verdicts.values()) == {"unchanged"}
    assert sorted(host.fake.built) == ["a", "b"]
    assert host.latest()["a"]["state"] == "good-unchanged"
    # Only what changed is built again.
    assert host.pass_night(a="2").verdicts == {"a": "good", "b": "unchanged"}


def test_a_plan_says_why_and_changes_nothing(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    host.change(2)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    (due,) = night.plan(host)
    assert (due.why, due.changed) == ("changed", ("recipe",))
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_a_failure_touches_no_other_recipe_and_keeps_the_good_wheel(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", nights=1)
    host.fake.parts["b"] = {"recipe": "2", "the commit": "b" * 40}
    host.fake.broken["a"] = BROKEN
    assert host.pass_night(a="2").verdicts == {"a": "failed", "b": "good"}
    assert host.latest()["a"]["state"] == "newly failing"
    assert host.latest()["a"]["wheel"]["tested"] == "passed"
    assert len(host.listed("tf-a")) == 1
    assert len(host.listed("tf-b")) == 2


def test_failing_is_new_once_then_still_and_then_fixed(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    seen = []
    for broken in ({"a": BROKEN}, {"a": BROKEN}, {}, {}):
        host.fake.broken = broken
        host.pass_night(a="2")
        seen.append(host.latest()["a"]["state"])
    assert seen == ["newly failing", "still failing", "newly fixed", "good-unchanged"]


def test_a_wheel_that_fails_its_smoke_is_published_and_marked(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.fake.smoke_fails.add("a")
    assert host.pass_night().verdicts == {"a": "smoke failed"}
    assert len(host.listed("tf-a")) == 1
    pointers = host.site / "pointers/a"
    assert (pointers / "nightly.json").exists()
    assert not (pointers / "last-good.json").exists()
    assert not (pointers / "stable.json").exists()


def test_stable_waits_for_smoke_and_reproduction(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    stable = host.site / "pointers/a/stable.json"
    assert not stable.exists()
    assert host.pass_night().reproduced == "a"
    named = json.loads(stable.read_text())
    assert (stable.parent / named["url"] / named["wheel"]).resolve().is_file()


def test_each_night_another_recipe_is_reproduced(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", "c", nights=1)
    assert [host.pass_night().reproduced for _ in range(4)] == ["a", "b", "c", "a"]


def test_a_night_whose_time_is_used_up_reproduces_nothing(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", hours=1.5)
    host.fake.seconds = 3000
    # The first night builds a, the second one b, and the third one has time for both.
    assert [host.pass_night().reproduced for _ in range(3)] == ["", "", "a"]


def test_rot_is_seen_before_it_is_needed(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    host.fake.rotten.add("a")
    host.pass_night()
    assert "not reproduced on 2026-01-02: 1 file differs" in host.page()


def test_a_server_that_does_not_answer_blocks_one_recipe(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b")
    host.fake.unreachable.add("a")
    outcome = host.pass_night()
    assert outcome.verdicts == {"a": "blocked", "b": "good"}
    assert outcome.details == {"a": "the server does not answer"}


def test_what_blocks_a_recipe_now_is_shown_and_not_what_broke_it_before(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    host.fake.broken["a"] = BROKEN
    host.pass_night(a="2")
    host.fake.unreachable.add("a")
    host.pass_night()
    page = host.page()
    assert "the server does not answer" in page
    assert BROKEN.remedy not in page


def test_a_failing_recipe_out_of_budget_says_what_broke_and_opens_no_thread(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", "b", hours=2))
    builder = host.fake
    host.pass_night()
    builder.seconds, builder.broken["a"] = 7000, BROKEN
    host.pass_night(a="2")
    # Both do not fit into a night any more.
    builder.parts["b"] = {"recipe": "2"}
    assert host.pass_night().verdicts == {"a": "skipped", "b": "good"}
    assert host.latest()["a"]["detail"] == f"compile: {BROKEN.line}"
    assert heard.kinds == ["failing"]


def test_a_site_that_somebody_removed_is_built_again(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    kept = shutil.copytree(host.builds, tmp_path / "kept")
    shutil.rmtree(host.site)
    assert host.pass_night().verdicts == {"a": "good"}
    assert host.listed("tf-a")
    # What comes back belongs to its night again.
    shutil.copytree(kept, host.builds, dirs_exist_ok=True)
    assert host.pass_night().verdicts == {"a": "unchanged"}
    with states.open_state(tmp_path) as state:
        assert len(state.builds("a")) == 2


def test_a_wheel_that_the_index_refuses_is_not_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_another_version(*given: Any, **named: Any) -> Path:  # noqa: ANN401 as `write_wheel` takes
        wheel = write_wheel(*given, **named)
        return wheel.rename(wheel.with_name(wheel.name.replace("-1.0", "-2.0")))

    monkeypatch.setattr(fake, "write_wheel", of_another_version)
    host = host_with(tmp_path, "a")
    assert host.pass_night().verdicts == {"a": "failed"}
    assert "wheel" not in host.latest()["a"]
    assert not [*host.site.glob("pointers/*/*")]


def test_what_changes_each_night_shares_a_budget_that_is_too_small(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(6)]
    host = host_with(tmp_path, *names, hours=1.5)
    builder = host.fake
    builder.seconds = 1800
    for count in range(14):
        builder.parts = {name: {"recipe": str(count)} for name in names}
        host.pass_night()
    counts = Counter(builder.built)
    assert min(counts[name] for name in names) >= 5


def test_a_plan_names_what_cannot_be_built(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", "c", hours=1.0)
    host.fake.unreachable.add("a")
    host.fake.lacking["b"] = "no CUDA"
    found = night.plan(host)
    assert [item.target.name for item in found if item.due] == ["c"]
    blocked = {item.target.name: item.detail for item in found if item.why == "blocked"}
    assert blocked == {"a": "the server does not answer", "b": "no CUDA"}


def test_a_target_that_is_blocked_at_once_leaves_its_time_to_others(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", "c", "d", hours=2.0)
    host.fake.seconds = 3000
    host.fake.lacking |= {"a": "no CUDA", "b": "no Mac"}
    assert host.pass_night().verdicts == {"a": "blocked", "b": "blocked", "c": "good", "d": "good"}


@pytest.mark.parametrize(("hours", "seconds"), [(1.5, 3600), (2.0, 5000)])
def test_a_budget_that_is_used_up_leaves_the_rest_for_the_next_night(
    tmp_path: Path, hours: float, seconds: float
) -> None:
    host = host_with(tmp_path, "a", "b", "c", hours=hours)
    host.fake.seconds = seconds
    first = host.pass_night()
    assert first.verdicts == {"a": "good", "b": "skipped", "c": "skipped"}
    assert first.details["b"] == "a first build counts as 1.0 h"
    host.pass_night()
    assert set(host.pass_night().verdicts.values()) == {"good", "unchanged"}


def test_a_full_disk_blocks_builds_and_still_makes_the_page(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.fake.free = 10**9
    assert host.pass_night().verdicts == {"a": "blocked"}
    assert "only 1.0 GB are free" in host.page()


@pytest.mark.parametrize(
    ("fault", "verdict", "shown"),
    [
        (OSError(28, "No space left on device"), "blocked", "the disk of the build host is full"),
        (HostError("The worker left no result", remedy="Look."), "blocked", "Look."),
        (AttributeError("no such thing"), "failed", "a flaw in tfwright, fake.py"),
    ],
)
def test_what_ends_a_build_in_the_middle_reaches_no_other_and_leaves_nothing_half_written(
    fault: Exception, verdict: str, shown: str, tmp_path: Path
) -> None:
    host = host_with(tmp_path, "a", "b")
    host.fake.raises["a"] = fault
    assert host.pass_night().verdicts == {"a": verdict, "b": "good"}
    page = host.page()
    assert shown in page
    assert ("a flaw in tfwright" in page) == (verdict == "failed")
    # Its page went with its files.
    assert dead_links(host.site) == []
    assert list((tmp_path / builds.WORK).glob("*")) == []


def test_a_name_with_other_bytes_is_kept_out_and_says_what_to_bump(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    (wheel,) = (host.site / "packages").glob("*.whl")
    build = builds.read_all(host.builds, ())[0]
    # The same version from another toolchain: the fake names a wheel by its fingerprint.
    write_wheel(tmp_path / "work", "tf_a", build.version, body="other = 1\n")
    marked = site.with_refusal(host.site, build, tmp_path / "work")
    assert "other bytes" in marked.unpublished
    assert "local" in marked.unpublished
    assert wheel.name in marked.unpublished


def test_retention_hides_first_and_deletes_later(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", retention={"count": 2, "hidden_days": 3})
    host.pass_nights(4, changes=True)
    assert len(host.listed("tf-a")) == 2
    assert len(list((host.site / "packages").glob("*.whl"))) == 4
    page = host.page("recipes/a.html")
    assert "hidden since 2026-01-03, deleted on 2026-01-06" in page
    host.pass_nights(5)
    assert len(list((host.site / "packages").glob("*.whl"))) == 2
    assert len(list(host.builds.glob("*"))) == 2


@pytest.mark.parametrize(("limits", "failed"), [({"count": 1, "size": 1}, 0), ({"count": 2}, 2)])
def test_nights_that_fail_hide_no_wheel(
    tmp_path: Path, limits: dict[str, int], failed: int
) -> None:
    host = host_with(tmp_path, "a", retention={"hidden_days": 0, **limits})
    host.pass_nights(3, changes=True)
    wheels = host.listed("tf-a")
    assert len(wheels) == limits["count"]
    host.fake.broken["a"] = BROKEN
    for number in range(5):
        host.pass_night(a=f"x{number}")
    assert host.listed("tf-a") == wheels
    assert host.latest()["a"]["state"] == "still failing"
    # The failed builds have a count of their own.
    assert len(list(host.builds.iterdir())) == limits["count"] + failed


def test_retention_respects_a_keep_file(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", retention={"count": 1, "hidden_days": 0}, nights=1)
    (first,) = host.builds.glob("*")
    (first / builds.KEEP).touch()
    host.pass_nights(3, changes=True)
    assert first.exists()
    assert "kept by hand" in host.page("recipes/a.html")


class SmallDisk(FakeBuilder):
    """A builder whose disk has room for a number of builds."""

    room: int = 0
    """Builds that fit on the disk."""
    home: Path

    def make_room(self, wanted: int) -> FreeSpace:
        free = (self.room - len(list(self.home.glob("*")))) * wanted
        return FreeSpace(max(0, free), 10**15)


def on_a_small_disk(host: PlayedHost, room: int) -> PlayedHost:
    """Return the host on a disk with room for so many builds, of which each needs a part."""
    small: Any = SmallDisk(host.fake.clock)
    small.room, small.home = room, host.builds
    return replace(host, builder=small)


def dead_links(folder: Path) -> list[str]:
    """Return the links between the pages for people that lead nowhere."""
    found = []
    for page in (folder / "index.html", *folder.glob("recipes/*.html")):
        links = re.findall(r'href="([^"#:]+)"', page.read_text())
        found += [
            f"{page.name}: {link}" for link in links if not (page.parent / unquote(link)).exists()
        ]
    return found


def test_hidden_builds_make_room_before_their_day(tmp_path: Path) -> None:
    limits = {"count": 2, "hidden_days": 30, "free": 100}
    host = on_a_small_disk(host_with(tmp_path, "a", retention=limits), 5)
    kept = []
    for number in range(8):
        outcome = host.pass_night(a=number)
        assert outcome.verdicts == {"a": "good"}
        kept.append(len(list(host.builds.iterdir())))
        assert dead_links(host.site) == []
    assert kept == [1, 2, 3, 4, 5, 5, 5, 5]
    assert len(host.listed("tf-a")) == 2
    with states.open_state(tmp_path) as state:
        # The longest hidden ones went.
        numbers = [build.fingerprint["recipe"] for build in all_builds(state)]
    assert numbers == ["3", "4", "5", "6", "7"]


def all_builds(state: states.State) -> list[NightlyBuild]:
    found = [state.build(kept.id) for kept in state.builds()]
    return [build for build in found if build]


def test_no_build_that_the_index_lists_makes_room(tmp_path: Path) -> None:
    limits = {"count": 9, "hidden_days": 30, "free": 100}
    host = on_a_small_disk(host_with(tmp_path, "a", retention=limits), 3)
    host.pass_nights(3, changes=True)
    outcome = host.pass_night(a="4")
    assert outcome.verdicts == {"a": "blocked"}
    assert "in the host's directory" in outcome.details["a"]
    assert len(host.listed("tf-a")) == 3


def test_pages_link_no_build_that_was_deleted(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", retention={"count": 1, "hidden_days": 0})
    for number in range(3):
        host.pass_night(a=number)
        assert dead_links(host.site) == []
        assert_site_is_whole(host.site)
    assert len(list(host.builds.iterdir())) == 1


def test_a_deletion_that_was_cut_off_leaves_no_wheel(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", retention={"count": 1, "hidden_days": 0}, nights=1)
    (first,) = host.listed("tf-a")
    with without_sweep():
        host.pass_night(a="2")
    assert (host.site / "packages" / first).exists()
    host.pass_night()
    assert not list((host.site / "packages").glob(f"{first}*"))


@contextmanager
def without_sweep() -> Iterator[None]:
    """Let a night end as if it was killed before it removed what it had deleted."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tfwright.nightly.retention.sweep", lambda *_: [])
        yield


def cut_off(host: PlayedHost) -> None:
    """Begin a night that judges all of its targets and never ends."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tfwright.nightly.retention.hide", interrupted)
        with pytest.raises(KeyboardInterrupt):
            night.run(host)


def interrupted(*_: object) -> int:
    raise KeyboardInterrupt


def cut_off_after_a_failure(tmp_path: Path, *names: str) -> PlayedHost:
    """Return a host whose last night found recipe a broken, and never ended; a has changed since."""
    host = host_with(tmp_path, *names)
    host.fake.broken["a"] = BROKEN
    cut_off(host)
    host.change(2)
    return host


def test_a_recipe_that_was_corrected_after_a_cut_off_night_is_built(tmp_path: Path) -> None:
    host = cut_off_after_a_failure(tmp_path, "a", "b")
    host.fake.broken.clear()
    assert night.run(host).verdicts == {"a": "good", "b": "good"}
    assert sorted(host.fake.built) == ["a", "a", "b"]


def test_what_blocked_a_recipe_in_a_cut_off_night_is_looked_at_again(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b")
    host.fake.unreachable.add("a")
    cut_off(host)
    host.fake.unreachable.clear()
    # The server of the other recipe is away now, and its wheel is as good as before.
    host.fake.unreachable.add("b")
    assert night.run(host).verdicts == {"a": "good", "b": "good"}
    assert sorted(host.fake.built) == ["a", "b"]


@pytest.mark.parametrize(("free", "second"), [(10**15, "failed"), (0, "blocked")])
def test_a_failure_of_a_cut_off_night_stays_in_it_tried_again_or_not(
    tmp_path: Path, free: int, second: str
) -> None:
    host = cut_off_after_a_failure(tmp_path, "a", "b")
    host.fake.free = free
    # The resumed night keeps the second verdict.
    assert host.pass_night().verdicts == {"a": second, "b": "good"}
    host.fake.unreachable.add("a")
    assert host.pass_night().verdicts == {"a": "blocked", "b": "unchanged"}


def test_a_night_that_is_cut_off_twice_keeps_its_newest_verdict(tmp_path: Path) -> None:
    host = cut_off_after_a_failure(tmp_path, "a")
    host.fake.broken.clear()
    cut_off(host)
    assert host.pass_night().verdicts == {"a": "good"}


def test_a_host_that_lost_its_state_shows_its_last_builds_and_no_older_ones(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    host.fake.broken["a"] = BROKEN
    host.pass_night(a="2")
    (tmp_path / states.FILE).unlink()
    # It is found to have failed, and then tried again every night.
    verdicts = [host.pass_night().verdicts["a"] for _ in range(3)]
    assert verdicts == ["failed"] * 3
    assert host.fake.built == ["a"] * 5


def test_a_recipe_that_is_asked_for_is_built_although_a_cut_off_night_did(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b")
    cut_off(host)
    night.run(host, only="a", now=True)
    assert sorted(host.fake.built) == ["a", "a", "b"]


class Heard:
    """A channel that can be out of order."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.broken = False

    def send(self, notice: Notice) -> None:
        if self.broken:
            raise HostError("the line is dead", remedy="Wait.")
        self.notices.append(notice)

    @property
    def kinds(self) -> list[str]:
        return [notice.kind for notice in self.notices]


def with_channel(host: PlayedHost) -> tuple[PlayedHost, Heard]:
    heard = Heard()
    return replace(host, channels=(Channel("test", heard.send),)), heard


def test_one_notice_opens_a_failure_and_one_closes_it(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", notices={"stale_nights": 9}))
    host.pass_night()
    host.fake.broken["a"] = BROKEN
    for _ in range(3):
        host.pass_night(a="2")
    assert heard.kinds == ["failing"]
    host.fake.broken.clear()
    host.pass_night()
    assert heard.kinds == ["failing", "fixed"]
    assert heard.notices[0].thread == heard.notices[1].thread


def test_a_recipe_that_is_blocked_for_some_nights_stays_blocked_and_is_told(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", notices={"stale_nights": 2}))
    host.fake.unreachable.add("a")
    host.pass_nights(3)
    assert host.latest()["a"]["state"] == "blocked"
    assert "for 3 nights" in host.page()
    assert heard.kinds == ["blocked"]


def watched(host: PlayedHost) -> int:
    """Do what `invoke nightly --watch` does."""
    return night.watch(host.nightly, host.clock(), host.channels, host.note)


def test_many_notices_reach_people_as_one_and_programs_one_by_one(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(30)]
    host = host_with(tmp_path, *names, url="https://wheels.example/", hours=24.0)
    people: list[Notice] = []
    host, heard = with_channel(host)
    reader = Channel("mail", people.append, gathers=True)
    host = replace(host, channels=(*host.channels, reader))
    error = Breakage(stage="configure", line="error: gcc 14 " + "x" * 5000, remedy="Install gcc 8.")
    host.fake.broken = dict.fromkeys(names, error)
    night.run(host)
    assert len(heard.notices) == 30
    assert {len(notice.text) for notice in heard.notices} == {notices.LONGEST}
    (one,) = people
    assert one.subject == "r0: newly failing since 2026-01-01 (and 29 more)"
    assert one.url == "https://wheels.example/"
    assert one.text.endswith("and 5 more\n")
    assert len(one.text) <= notices.LONGEST + 100
    host.fake.broken.clear()
    host.fake.clock.next_night()
    night.run(host)
    assert heard.notices[-1].text.startswith("It was configure: error: gcc 14")


def test_nights_that_do_not_come_are_noticed_once(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", notices={"stale_nights": 3}))
    host.pass_night()
    for _ in range(5):
        watched(host)
        host.fake.clock.next_night()
    assert heard.kinds == ["stale"]
    assert heard.notices[0].text.startswith("No night has come to it since 2026-01-01. Run")
    host.pass_night()
    assert heard.kinds == ["stale", "fixed"]


def test_the_watch_names_a_channel_that_takes_no_notice(tmp_path: Path) -> None:
    said: list[str] = []

    def refuse(_: Notice) -> None:
        raise HostError("no server", remedy="Start it.")

    host = replace(host_with(tmp_path, "a"), channels=(Channel("mail", refuse),), note=said.append)
    host.pass_night()
    host.fake.clock.pass_seconds(9 * 86400)
    said.clear()
    assert watched(host) == 0
    assert said == ["mail: no server"]


def test_a_night_that_is_cut_off_is_noticed_until_one_ends(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", url="https://w.example/"))
    cut_off(host)
    with file_lock.locked(tmp_path / states.LOCK, "the night goes on"):
        assert watched(host) == 0
        assert "under way" in host.page()
    assert [watched(host) for _ in range(2)] == [1, 0]
    assert heard.kinds == ["cut off"]
    page = host.page()
    assert "The last night was cut off" in page
    assert "under way" not in page
    assert json.loads(host.page("health.json"))["status"] == "fail"
    assert "the build host: a night did not come to its end" in (
        host.page("feed.xml") if host.pass_night() else ""
    )
    assert heard.kinds == ["cut off", "fixed"]
    assert heard.notices[0].thread == heard.notices[1].thread


def test_a_channel_or_a_notice_that_fails_holds_up_no_other(tmp_path: Path) -> None:
    def picky(notice: Notice) -> None:
        if notice.target == "a":
            raise ValueError("a flaw that only this notice meets")
        heard.append(notice.target)

    heard: list[str] = []
    host, dead = with_channel(host_with(tmp_path, "a", "b"))
    alive = Heard()
    dead.broken = True
    channels = (*host.channels, Channel("picky", picky), Channel("alive", alive.send))
    said: list[str] = []
    several = replace(host, channels=channels, note=said.append)
    host.fake.broken |= {"a": BROKEN, "b": BROKEN}
    several.pass_night()
    # Once for each channel: its owner learns of a revoked address from nothing else.
    assert [line.partition(":")[0] for line in said[-2:]] == ["test", "picky"]
    assert (dead.kinds, heard, alive.kinds) == ([], ["b"], ["failing"] * 2)
    dead.broken = False
    # Not a second time to those that have it.
    assert watched(several) == 2
    assert (dead.kinds, heard, alive.kinds) == (["failing"] * 2, ["b"], ["failing"] * 2)


def test_a_recipe_that_is_listed_no_more_becomes_stale_on_its_page(tmp_path: Path) -> None:
    before = host_with(tmp_path, "a", "b", "never-built")
    before.fake.unreachable.add("never-built")
    before.pass_night()
    host = replace(before, nightly=host_with(tmp_path, "b").nightly)
    host.pass_nights(6)
    assert "stale since 2026-01-01" in host.page("badges/a.svg")
    page = host.page("recipes/a.html")
    assert "does not list this recipe any more" in page
    assert set(host.latest()) == {"b"}
    assert len(host.listed("tf-a")) == 1
    # Without a build, there is nothing left to show.
    assert not list(host.site.glob("*/never-built.*"))


def test_a_host_whose_first_night_never_comes_is_noticed(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", notices={"stale_nights": 3}))
    for _ in range(6):
        watched(host)
        host.fake.clock.next_night()
    assert heard.kinds == ["stale"]
    assert "No night has come to it since 2026-01-01" in heard.notices[0].text


def test_another_cause_opens_a_thread_of_its_own_and_a_success_closes_both(tmp_path: Path) -> None:
    host, heard = with_channel(host_with(tmp_path, "a", notices={"stale_nights": 9}))
    for line in ("error: one", "error: one", "ld: cannot find -lcudart"):
        host.fake.broken["a"] = BROKEN.model_copy(update={"line": line})
        host.pass_night()
    assert heard.kinds == ["failing", "failing"]
    host.fake.broken.clear()
    host.pass_night()
    assert heard.kinds == ["failing", "failing", "fixed", "fixed"]
    opened = {notice.thread for notice in heard.notices[:2]}
    assert {notice.thread for notice in heard.notices[2:]} == opened
    assert len(opened) == 2


def test_bytes_hide_the_oldest_and_nothing_that_a_pointer_names(tmp_path: Path) -> None:
    limits = {"size": 30_000, "hidden_days": 2}
    host = host_with(tmp_path, "a", "b", retention=limits, nights=1)
    # Reproduced, so that `stable` of both is their first build.
    host.pass_nights(2)
    host.pass_nights(4, changes=True)
    with states.open_state(tmp_path) as state:
        kept = state.builds("a")
        # The wheels alone would fit; with their pages and logs the builds do not.
        assert sum(build.size for build in state.builds()) < 30_000
        shown = [build.id for build in kept if not build.hidden]
    pointers = host.site / "pointers/a"
    named = {json.loads(path.read_text())["build"] for path in pointers.glob("*.json")}
    assert named == set(shown)
    assert len(named) == 2
    # Hidden two nights before it is deleted.
    assert len(kept) > len(shown)


def test_a_taken_name_is_tried_again_after_longer_and_longer_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_with(tmp_path, "a")

    def taken(_: Path, build: NightlyBuild, __: Path) -> NightlyBuild:
        return build.model_copy(update={"unpublished": "The index already has a.whl"})

    monkeypatch.setattr("tfwright.nightly.site.with_refusal", taken)
    attempts = []
    for number in range(20):
        before = len(host.fake.built)
        # The page has to go on showing the failure, whether or not there was an attempt.
        assert host.pass_night().verdicts == {"a": "failed"}
        attempts += [number] * (len(host.fake.built) - before)
    assert attempts == [0, 1, 3, 7, 15]
    monkeypatch.undo()
    host.fake.parts["a"] = {"recipe": "1", "the local version": "cpu.1"}
    assert host.pass_night().verdicts == {"a": "good"}


def assert_site_is_whole(folder: Path) -> None:
    """Follow everything that the site names; all of it has to be there and complete."""
    for page in folder.glob("simple/*/index.json"):
        for file in json.loads(page.read_text())["files"]:
            wheel = page.parent / file["url"].replace("%2B", "+")
            assert wheel.stat().st_size == file["size"]
            assert wheel.with_name(f"{wheel.name}.metadata").is_file()
    # A hidden one is no build: a start that is killed leaves the directory that it tried to move.
    for build in folder.glob("builds/[!.]*"):
        assert builds.read(build), f"{build} is incomplete"
    for pointer in folder.glob("pointers/*/*.json"):
        named = json.loads(pointer.read_text())
        assert (pointer.parent / named["url"] / named["wheel"]).is_file()
    for page in folder.rglob("*.html"):
        assert page.read_text().rstrip().endswith("</html>")
