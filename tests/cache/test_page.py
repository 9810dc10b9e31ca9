"""What `invoke cache --why` prints: each difference once, however many actions it is in."""

from pathlib import Path

import pytest

from tfwright.cache.page import show_cache, show_why
from tfwright.cache.usage import (
    ActionChange,
    CacheComparison,
    CacheState,
    KeptToolchain,
    ToolchainChange,
)
from tfwright.terminal.answer import plain
from tfwright.tools.cache.usage import CachedBuild, CacheUse


def changed(name: str, what: str) -> ActionChange:
    return ActionChange("CppCompile", name, what, follows=False)


def compared(
    *changes: ActionChange,
    same: int = 0,
    missed: int = 0,
    toolchains: tuple[ToolchainChange, ...] | None = (),
) -> CacheComparison:
    return CacheComparison(changes, same, 0, 0, hits=0, missed=missed, toolchains=toolchains)


def test_a_difference_of_many_actions_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    variable = "variable MODE: unset became 1"
    changes = [changed(f"{name}.o", variable) for name in "abcdef"]
    changes.append(changed("g.o", "input g.cc: 1 became 2"))
    show_why(compared(*changes))
    out = capsys.readouterr().out
    assert out.count(variable) == 1
    assert "CppCompile a.o, and 5 other actions" in out
    assert "CppCompile g.o\n  input g.cc: 1 became 2" in out


def test_no_more_differences_are_listed_than_a_screen_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = [changed(f"{n}.o", f"input {n}.cc: 1 became 2") for n in range(25)]
    show_why(compared(*changes))
    out = capsys.readouterr().out
    assert out.count("became") == 20
    assert "and 5 more differences" in out


def test_another_toolchain_is_said_before_all_else_with_versions_and_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    compiler = ("gcc (Debian) 12.2.0", "gcc (Debian) 11.3.0", ("/usr/bin/gcc",))
    programs = tuple(f"/usr/lib/gcc/{name}" for name in ("cc1", "ld", "as", "nm"))
    changes = (
        ToolchainChange("cc", *compiler),
        ToolchainChange("gcc", *compiler),
        ToolchainChange("programs of gcc", "", "", programs),
    )
    show_why(compared(same=6, missed=6, toolchains=changes))
    out = capsys.readouterr().out
    assert out.startswith(
        "The second build took 0 of 6 actions from the cache.\nThe toolchains differ"
    )
    assert "  cc, gcc\n    gcc (Debian) 12.2.0 became gcc (Debian) 11.3.0\n" in out
    assert "    files: /usr/lib/gcc/cc1, /usr/lib/gcc/ld, /usr/lib/gcc/as and 1 more" in out


def test_a_compiler_that_was_rebuilt_has_its_version_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    change = ToolchainChange("gcc", "gcc 12.2.0", "gcc 12.2.0", ("/usr/bin/gcc",))
    show_why(compared(toolchains=(change,)))
    assert "gcc 12.2.0, with other content\n    file: /usr/bin/gcc" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("toolchains", "said"), [((), "not in the cache any more"), (None, "not known")]
)
def test_actions_that_ran_without_a_difference_are_explained(
    capsys: pytest.CaptureFixture[str], toolchains: tuple[ToolchainChange, ...] | None, said: str
) -> None:
    show_why(compared(same=6, missed=6, toolchains=toolchains))
    assert said in capsys.readouterr().out


BUILD = CachedBuild(
    recipe="demo",
    finished=1_795_305_600,
    use=CacheUse(toolchain="a" * 64, lookups=4, hits=1, faults={"the server: slow": 3}),
)


def state(*builds: CachedBuild) -> CacheState:
    kept = KeptToolchain("a" * 64, 7, {"cc": "1"})
    log = Path("/srv/cache/logs/1-demo.log")
    return CacheState(Path("/srv/cache"), 1 << 20, 1 << 30, "", (kept,), builds, (log,))


def test_a_cache_shows_its_builds_and_what_went_wrong_in_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_cache(state(BUILD, BUILD))
    shown = capsys.readouterr()
    assert shown.out.startswith("1.0 MiB of 1 GiB in /srv/cache\n")
    assert "25 %" in shown.out
    assert "6x the server: slow; the action was run" in shown.err
    assert "execution log: 1-demo" in shown.err


def test_a_cache_that_no_build_has_used_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_cache(state())
    assert "No build that used the cache has ended yet." in capsys.readouterr().out


def test_both_pages_of_the_cache_are_one_document_of_json_each() -> None:
    told = plain(state(BUILD))
    assert told["builds"][0]["use"]["faults"] == {"the server: slow": 3}
    assert told["toolchains"][0]["entries"] == 7
    assert plain(compared(changed("a.o", "input a.cc: 1 became 2")))["changes"][0]["name"] == "a.o"
