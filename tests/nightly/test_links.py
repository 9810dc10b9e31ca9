"""Archives whose servers have gone: seen the same night, dated, told once."""

import json
from pathlib import Path

from tests.nightly.fake import PlayedHost, host_with

from tfwright.nightly import night
from tfwright.nightly import state as states
from tfwright.nightly.night import LostArchives
from tfwright.vault.links import ANSWERS, GONE, SILENT, Link, LinkRow


def told(host: PlayedHost) -> list[str]:
    """Return the subject of each notice that a night raised about archives."""
    with states.open_state(host.directory) as state:
        query = "select thread, body, max(number) from notice group by thread order by thread"
        last = {thread: json.loads(body) for thread, body, _ in state.database.execute(query)}
    return [
        f"{name} {'closed' if own['kind'] == 'fixed' else 'open'}" for name, own in last.items()
    ]


def archives(host: PlayedHost) -> dict[str, str]:
    latest = json.loads(host.page("latest.json"))
    found = latest["targets"][0]["archives"]
    assert isinstance(found, dict)
    return found


def row(*said: str, kept: bool) -> LinkRow:
    return LinkRow("eigen", "a" * 64, kept, tuple(Link("url", "x", state) for state in said))


def test_an_archive_is_lost_only_if_each_server_says_so() -> None:
    lost = LostArchives.of([row(GONE, GONE, kept=True)])
    assert (lost.gone, lost.silent) == ("No server has eigen (this host's vault still has it)", "")
    assert LostArchives.of([row(GONE, ANSWERS, kept=False)]) == LostArchives()
    assert LostArchives.of([row(GONE, SILENT, kept=False)]).gone == ""


def test_a_lost_archive_has_a_date_a_place_on_the_pages_and_one_notice(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", url="https://w.example/")
    builder = host.fake
    night.run(host)
    assert archives(host) == {"lost-since": None, "detail": ""}
    builder.archives["a"] = LostArchives("No server has eigen")
    builder.clock.next_night()
    first = builder.clock.now
    for _ in range(3):
        assert night.run(host).lost == {"a": "No server has eigen"}
        builder.clock.next_night()
    assert archives(host) == {"lost-since": first.isoformat(), "detail": "No server has eigen"}
    for page in ("index.html", "recipes/a.html"):
        assert f"Archives lost since {first:%Y-%m-%d}" in host.page(page)
    assert told(host) == ["a links open"]
    del builder.archives["a"]
    builder.clock.next_night()
    night.run(host)
    assert told(host) == ["a links closed"]


def test_a_server_that_does_not_answer_is_lost_from_the_second_night_on(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.fake.archives["a"] = LostArchives(silent="No server answers for eigen")
    assert night.run(host).lost == {}
    host.fake.clock.next_night()
    assert night.run(host).lost == {"a": "No server answers for eigen"}
