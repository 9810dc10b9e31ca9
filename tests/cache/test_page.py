"""What `invoke cache` prints."""

from pathlib import Path

import pytest
from tests.making import Read

from tfwright.cache.command import show_cache
from tfwright.documents.host_file import HostFile
from tfwright.terminal.answer import json_value
from tfwright.tools.cache import usage
from tfwright.tools.cache.store import CacheStore
from tfwright.tools.cache.usage import CachedBuild, CacheState, CacheUse, KeptToolchain

BUILD = CachedBuild(
    recipe="demo",
    finished=1_795_305_600,
    use=CacheUse(toolchain="a" * 64, lookups=4, hits=1, faults={"the server: slow": 3}),
)


def state(*builds: CachedBuild) -> CacheState:
    kept = KeptToolchain("a" * 64, 7, {"cc": "1"})
    return CacheState(Path("/srv/cache"), 1 << 20, 1 << 30, "", (kept,), builds)


def test_a_cache_shows_its_builds_and_what_went_wrong_in_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_cache(state(BUILD, BUILD))
    shown = capsys.readouterr()
    assert shown.out.startswith("1.0 MiB of 1 GiB in /srv/cache\n")
    assert "25 %" in shown.out
    assert "6x the server: slow; the action was run" in shown.err


def test_a_cache_whose_first_build_still_runs_shows_what_it_holds(out: Read) -> None:
    show_cache(state())
    shown = out()
    assert "aaaaaaaaaaaa" in shown
    assert "No build that used the cache has ended yet." in shown


def test_the_page_of_the_cache_is_one_document_of_json() -> None:
    told = json_value(state(BUILD))
    assert told["builds"][0]["use"]["faults"] == {"the server: slow": 3}
    assert told["toolchains"][0]["entries"] == 7


def test_looking_at_a_host_without_a_cache_makes_none(tmp_path: Path) -> None:
    settings = HostFile(build_out=tmp_path)
    assert usage.cache_state(settings).held == 0
    assert not settings.cache_directory.exists()
    CacheStore(settings.cache_directory, 1 << 30).keep_entry("a" * 64, "b" * 64, b"entry")
    seen = usage.cache_state(settings)
    assert (seen.held, seen.toolchains) == (5, (KeptToolchain("a" * 64, 1, {}),))
