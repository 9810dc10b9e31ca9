"""The pages: what they say, what they weigh, and that nothing hostile gets through."""

import gzip
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.nightly.fake import PlayedHost, a_build, host_with

from tfwright.errors import HostError
from tfwright.nightly import night, site
from tfwright.nightly import pages as words
from tfwright.nightly import state as states
from tfwright.nightly.builds import Breakage
from tfwright.nightly.pages import build as pages
from tfwright.nightly.pages import log
from tfwright.nightly.pages import site as site_pages
from tfwright.tools.render import TEMPLATES

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b]0;title\x07\u202e"
VOID = {"meta", "link", "br", "img", "path", "rect", "input"}
SCRIPT = (TEMPLATES / "nightly_script.js").read_text()


class Checked(HTMLParser):
    """Reads a page as a browser does: no script, no handler, every element closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        # A browser runs this script alone, by its checksum in the policy.
        text = text.replace(f"<script>{SCRIPT}</script>", "")
        assert "<script" not in text
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.states: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"iframe", "object", "img"}
        for name, value in attrs:
            assert not name.startswith(("on", "style"))
            if name in {"href", "src", "action"}:
                assert not str(value).startswith(("javascript:", "data:", "//"))
                self.links.append(str(value))
            if name == "data-state":
                self.states.append(str(value))
            if name == "id":
                self.ids.append(str(value))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def failing_host(tmp_path: Path, line: str) -> PlayedHost:
    host = host_with(tmp_path, "a", url="https://wheels.example/")
    builder = host.changed_after_a_night()
    builder.broken["a"] = Breakage(
        stage="compile", line=line, cause=line, remedy=line, log="compile.log", number=2
    )
    night.run(host)
    return host


@pytest.mark.medium
def test_hostile_log_lines_reach_no_page_as_markup_and_every_link_leads_somewhere(
    tmp_path: Path,
) -> None:
    host = failing_host(tmp_path, HOSTILE)
    found = list(host.site.rglob("*.html"))
    assert len(found) >= 4
    for page in found:
        text = page.read_text()
        checked = Checked(text)
        assert "\x1b" not in text
        if page.is_relative_to(host.site / "simple"):
            continue
        for link in checked.links:
            if not link.startswith(("https://", "#")):
                place = page.parent / link.partition("#")[0].replace("%2B", "+")
                assert place.exists(), f"{page.name} links {link}"


def test_the_pages_say_what_broke_and_what_helps(tmp_path: Path) -> None:
    host = failing_host(tmp_path, "error: no member named foo")
    text = host.page()
    assert "0 of 1 recipes have a current wheel: 1 newly failing." in text
    assert "error: no member named foo" in text
    assert "What helps:" in text
    newest = max(host.builds.glob("*/index.html"), key=lambda path: path.stat().st_mtime)
    assert f"builds/{newest.parent.name}" in text
    # The line is marked in the log.
    text = newest.read_text()
    checked = Checked(text)
    assert "L2" in checked.ids
    assert "#L2" in checked.links
    assert 'class="error mark"' in text


def test_the_first_page_offers_the_wheel_that_passed_and_says_what_failed_since(
    tmp_path: Path,
) -> None:
    host = host_with(tmp_path, "a", url="https://wheels.example/")
    builder = host.changed_after_a_night()
    builder.smoke_fails.add("a")
    night.run(host)
    with states.open_state(tmp_path) as state:
        good, failed = state.builds()
    text = host.page()
    Checked(text)
    assert f"tf-a=={good.version}</code>" in text
    assert f"tf-a=={failed.version}</code>" not in text
    assert "smoke: imports" in text
    assert f"builds/{failed.id}/" in text
    own = (host.builds / failed.id / "index.html").read_text()
    assert "broken" in Checked(own).ids
    assert "<pre>&lt;tried&gt;</pre>" in own
    # The markup in the subject is shown as text.
    assert "1 commit, newest “A commit &lt;b&gt;with&lt;/b&gt; markup”" in text
    assert "the commit, " not in text


@pytest.mark.parametrize("smoke", [False, True])
def test_a_target_without_a_good_build_is_compared_with_none(
    tmp_path: Path, *, smoke: bool
) -> None:
    host = host_with(tmp_path, "a", url="https://wheels.example/")
    if smoke:
        host.fake.smoke_fails.add("a")
    else:
        host.fake.raises["a"] = HostError("no gcc", remedy="Install it.")
    night.run(host)
    text = host.page()
    assert "Changed since" not in text
    said = "none yet" if smoke else "none; it was never built"
    assert f"Last good build:</span> {said}<" in text
    # The only wheel is offered, although it failed its tests.
    assert ("pip install" in text) == smoke
    assert ('<span class="bad">smoke failed</span>' in text) == smoke


@pytest.mark.parametrize(
    "fault", [LookupError("a flaw"), HostError("no gcc", remedy="Install it.")]
)
def test_a_build_that_ended_before_its_stages_is_compared_with_the_last_good_one(
    tmp_path: Path, fault: Exception
) -> None:
    host = host_with(tmp_path, "a")
    builder = host.changed_after_a_night("a" * 40)
    builder.raises["a"] = fault
    night.run(host)
    assert "Changed since the last good build:</span> recipe<" in host.page()


def test_a_yanked_wheel_is_not_offered_and_the_page_says_why(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", url="https://wheels.example/")
    host.changed_after_a_night()
    night.run(host)
    with states.open_state(tmp_path) as state:
        older, newer = state.builds()
        for wheel, reason in ((newer.wheel, "<wrong> numbers"), (older.wheel, "")):
            site.yank(tmp_path, wheel, reason)
            site.publish(host.nightly, state, host.clock())
            pages_said = host.page()
            Checked(pages_said)
            reason_shown = "withdrawn:</span> &lt;wrong&gt; numbers"
            assert reason_shown in pages_said
            assert f"a=={newer.version}</code>" not in pages_said
            offered = f"a=={older.version}</code>" in pages_said
            assert offered == (wheel == newer.wheel)
            if offered:
                pointer = json.loads(host.page("pointers/a/last-good.json"))
                assert pointer["version"] == older.version
    assert "0 of 1 recipes have a current wheel: 1 withdrawn." in pages_said
    assert "no wheel is offered" in pages_said
    assert "withdrawn: &lt;wrong&gt; numbers" in host.page("recipes/a.html")
    assert not list(host.site.glob("pointers/*/*.json"))


def test_a_page_without_a_wheel_links_no_index(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.fake.unreachable.add("a")
    night.run(host)
    own = host.page("recipes/a.html")
    assert "../r/a/" not in Checked(own).links
    assert "1 night: 1 blocked" in own


@pytest.mark.parametrize("count", [0, 1, 9])
@pytest.mark.medium
def test_pages_are_made_for_any_number_of_recipes(tmp_path: Path, count: int) -> None:
    host = host_with(tmp_path, *[f"recipe{number}" for number in range(count)])
    night.run(host)
    checked = Checked(host.page())
    assert checked.states == ["good"] * count


@pytest.mark.slow
def test_two_hundred_recipes_after_four_hundred_nights_stay_light(tmp_path: Path) -> None:
    names = [f"linux-r2.{number}-cuda12.8-sm120" for number in range(200)]
    host = host_with(tmp_path, *names, hours=168.0, url="https://wheels.example/")
    night.run(host)
    with states.open_state(tmp_path) as state:
        for _ in range(400):
            state.judge(state.begin_night(host.clock()), "unchanged", *names)
        site_pages.write(host.nightly, state, host.clock(), {})
    assert (host.site / "index.html").stat().st_size < 1_000_000


def test_the_feed_is_sound_xml_whatever_a_build_said(tmp_path: Path) -> None:
    host = failing_host(tmp_path, "bad \x00\x08\ufffe &<>")
    feed = ET.fromstring((host.site / "feed.xml").read_bytes())  # noqa: S314 our own file
    titles = {
        str(entry.text).partition(" 1.0+g")[0]
        for entry in feed.iter("{http://www.w3.org/2005/Atom}title")
    }
    assert titles == {"Nightly wheels", "a: newly failing since 2026-01-02", "a: new wheel"}


def test_a_badge_says_since_when(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    night.run(host)
    text = host.page("badges/a.svg")
    ET.fromstring(text)  # noqa: S314 our own file
    assert "good since 0 days" in text


def test_markdown_quotes_what_a_build_said(tmp_path: Path) -> None:
    host = failing_host(tmp_path, "``` @everyone <details> [x](http://evil)")
    build = max(host.builds.glob("*/report.md"), key=lambda path: path.stat().st_mtime)
    text = build.read_text()
    assert "````" in text
    outside = re.sub(r"^(`{4,})$.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "@everyone" not in outside
    assert "[x](http" not in outside


def test_a_private_key_in_a_log_is_hidden_line_by_line(tmp_path: Path) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcd\nefgh==\n-----END RSA PRIVATE KEY-----"
    (tmp_path / "x.log").write_text(f"before\n{key}\nafter\n", "utf-8")
    shown = [line.text for line in log.read(tmp_path, "x.log").lines]
    assert shown[0] == "before"
    assert shown[-1] == "after"
    assert not [text for text in shown if "MIIE" in text or "efgh" in text]


@pytest.mark.parametrize("cut", [0, 6])
def test_a_packed_log_is_shown_and_linked_as_it_lies_there(tmp_path: Path, cut: int) -> None:
    text = "INFO: building\nerror: <broken>\n" + "INFO: more\n" * 5
    packed = gzip.compress(text.encode())
    (tmp_path / "compile.log.gz").write_bytes(packed[: len(packed) - cut])
    broken = Breakage(stage="compile", line="x", log="compile.log", number=2)
    build = a_build(result="failed", broken=broken, logs=("compile.log.gz",))
    shown = pages.shown_logs(build, tmp_path)[0]
    assert (shown.name, shown.lines[0].text) == ("compile.log.gz", "INFO: building")
    assert "error: &lt;broken&gt;" in pages.page(build, tmp_path, None, tmp_path)
    assert "error: <broken>" in pages.markdown(build, tmp_path)


@pytest.mark.medium
def test_a_long_log_is_shown_around_its_broken_line(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(
        "".join(f"line {number} {'x' * 60}\n" for number in range(20000))
    )
    shown = log.read(tmp_path, "x.log", around=10000)
    numbers = [line.number for line in shown.lines]
    assert 10000 in numbers
    assert shown.left_out > 10000
    assert log.read(tmp_path, "x.log").lines[-1].number == 20000


def profile(path: Path, seconds: dict[str, float]) -> Path:
    events = [
        {"cat": "action processing", "name": name, "ts": 1e6 * number, "dur": 1e6 * time}
        for number, (name, time) in enumerate(seconds.items())
    ]
    lines = ",\n".join(json.dumps(event) for event in events)
    with gzip.open(path, "wt") as stream:
        stream.write(f'{{"traceEvents":[\n{lines}\n]}}')
    return path


def test_a_page_draws_the_sweep(tmp_path: Path) -> None:
    curves = {"CPU": [(64.0, 5.0), (128.0, 20.0)], "GPU": [(64.0, 50.0), (128.0, 900.0)]}
    text = pages.page(a_build(result="built", sweep=curves), tmp_path, None, tmp_path)
    Checked(text)
    assert '<g class="gpu"><path d="M60.0 ' in text


def test_a_hostile_profile_cannot_break_the_page(tmp_path: Path) -> None:
    profile(tmp_path / "p.gz", {HOSTILE: 3.0, "y": 1e12})
    build = a_build(result="built", profile="p.gz")
    Checked(pages.page(build, tmp_path, None, tmp_path))


def test_the_actions_that_changed_most_since_the_last_good_build_are_listed(tmp_path: Path) -> None:
    before = {"Compiling a.cc": 10.0, "Linking": 5.0}
    now = {"Compiling a.cc": 90.0, "Compiling b.cc": 2.0}
    profile(tmp_path / "p.gz", now)
    (tmp_path / "good").mkdir()
    profile(tmp_path / "good/p.gz", before)
    build = a_build(result="built", profile="p.gz")
    good = a_build(id="good", result="built", profile="p.gz")
    shown = re.findall(
        r"name-cell\">(.*?)</th>.*?>([^<]*)</td>.*?>([^<]*)</td>",
        pages.page(build, tmp_path, good, tmp_path),
    )
    assert shown[:3] == [
        ("Compiling a.cc", "+1 min 20 s", ""),
        ("Linking", "\N{MINUS SIGN}5.0 s", "gone or cached"),
        ("Compiling b.cc", "+2.0 s", "new"),
    ]
    alone = pages.page(build, tmp_path, None, tmp_path)
    assert "gone or cached" not in alone


def test_of_a_build_that_broke_without_a_log_of_its_own_the_last_ones_are_shown(
    tmp_path: Path,
) -> None:
    names = ("check.log", "fetch.log", "compile.log")
    for name in names:
        (tmp_path / name).write_text(f"{name} says\n", "utf-8")
    broken = Breakage(stage="compile", line="the disk is full")
    build = a_build(result="failed", broken=broken, logs=names)
    shown = [one.name for one in pages.shown_logs(build, tmp_path)]
    assert shown == [*names[-pages.MOST_LOGS :]]
    assert "the disk is full" in pages.markdown(build, tmp_path)


@pytest.mark.parametrize(
    ("before", "now", "written"),
    [(100, 103.1, "+3.1 %"), (100, 90, "\N{MINUS SIGN}10.0 %"), (100, 100.05, ""), (0, 5, "")],
)
def test_a_change_is_written_if_there_is_one(before: float, now: float, written: str) -> None:
    assert words.change(before, now) == written
