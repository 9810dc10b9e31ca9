"""The pages of vault, lock and bundle."""

import os
from pathlib import Path

import pytest
from tests.making import Read, make_file, make_folder

from tfwright.terminal.answer import json_value
from tfwright.vault import page
from tfwright.vault.bundle import Absent, BundleMember, Manifest
from tfwright.vault.links import Link, LinkRow
from tfwright.vault.lock import (
    Lock,
    LockedArchive,
    LockedBazel,
    LockedSubstitute,
    Tensorflow,
    Unlockable,
)
from tfwright.vault.usage import Inventory, Needs, VaultEntry

LOCK = Lock(
    tensorflow=Tensorflow(commit="1" * 40, tree="2" * 40), bazel=LockedBazel(version="0.26.1")
)
SERVED = Link("url", "https://one.example/a.zip", "serves")
GONE = Link("url", "https://two.example/a.zip", "gone", "HTTP 404")


def archive(digit: str, *, needed: bool | None = None) -> LockedArchive:
    return LockedArchive(
        names=(f"name_{digit}",),
        urls=("https://example.org/a.zip",),
        sha256=digit * 64,
        needed=needed,
    )


def entry(folder: Path, kind: str, name: str, size: int) -> VaultEntry:
    """Return an entry with one file, which was put there days ago."""
    place = make_folder(folder / name)
    file = make_file(place / "content", b"x" * size)
    for path in (file, place):
        os.utime(path, (1e9, 1e9))
    return VaultEntry(kind, name, place, frozenset({name}), size)


def test_a_lock_says_how_many_archives_the_target_needs(capsys: pytest.CaptureFixture[str]) -> None:
    archives = (archive("a", needed=True), archive("b", needed=False))
    lock = LOCK.changed(archives=archives)
    page.show_lock(Path("mine.lock"), lock)
    shown = capsys.readouterr()
    assert "2 archives, 1 of them needed by the target; 0 packages" in shown.err
    assert shown.out == "mine.lock\n"


def test_the_recipes_of_the_axes_are_named_to_be_locked_as_well(tmp_path: Path, err: Read) -> None:
    make_file(tmp_path / "mine.toml", '[axes]\npython = ["3.13"]\n')
    page.show_lock(tmp_path / "mine.lock", LOCK)
    assert f"invoke lock --recipe {tmp_path}/mine-py313.toml\n" in err()


def test_a_lock_that_bazel_was_not_asked_for_says_nothing_about_needs(err: Read) -> None:
    lock = LOCK.changed(archives=(archive("a"),))
    page.show_lock(Path("mine.lock"), lock)
    assert "needed" not in err()


def test_a_lock_warns_of_other_bytes_and_of_what_no_checksum_holds(err: Read) -> None:
    used = LockedSubstitute(
        sha256="a" * 64, source="a fork", reason="the server is gone", used="b" * 64
    )
    loose = Unlockable(name="wheel", file="WORKSPACE", line=7, why="no sha256")
    lock = LOCK.changed(substitutes=(used,), unlockable=(loose,))
    page.show_lock(Path("mine.lock"), lock)
    shown = err()
    assert "not the pinned bytes: a fork: the server is gone" in shown
    assert "1 declaration that no checksum holds: [[unlockable]]" in shown


def test_archives_without_a_source_come_before_those_that_have_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        LinkRow("served,again", "a" * 64, kept=False, links=(SERVED, GONE)),
        LinkRow("lost", "b" * 64, kept=True, links=(GONE,)),
        LinkRow("unnamed", "c" * 64, kept=False, links=()),
    ]
    page.show_links(rows)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()[1:]
    assert [line.split()[0] for line in lines[:3]] == ["lost", "unnamed", "served"]
    assert "two.example/a.zip: gone (HTTP 404)" in lines[0]
    assert "no source" in lines[1]
    assert "3 archives: 2 without a source, 1 with one source, 0 with more" in (shown.err)


def test_a_bundle_lists_what_it_lacks_with_the_checksums_to_compare(out: Read) -> None:
    manifest = Manifest(
        tfwright="0.1.0",
        recipe="mine",
        platform="linux-x86_64",
        python="3.11",
        bazel="0.26.1",
        members=(
            BundleMember(kind="archive", name="a" * 64, sha256="a" * 64, size=1024),
            BundleMember(kind="archive", name="b" * 64, sha256="b" * 64, size=1024),
        ),
        absent=(Absent(name="CUDA 9.2", files={"include/cuda.h": "c" * 64}),),
    )
    page.show_bundle(manifest)
    shown = out()
    assert "without CUDA 9.2" in shown
    assert f"{'c' * 64}  include/cuda.h" in shown
    assert "for linux-x86_64, tfwright 0.1.0 on Python 3.11" in shown
    assert f"manifest sha256 {manifest.sha256}" in shown
    assert "archive      2" in shown


def test_a_vault_says_who_shares_an_archive_and_what_nothing_needs(
    tmp_path: Path, out: Read
) -> None:
    shared = entry(tmp_path, "archive", "shared", 2000)
    unused = entry(tmp_path, "bazel", "unused", 1000)
    needs = tuple(
        Needs(recipe, frozenset({"shared"}), complete=True) for recipe in ("first", "second")
    )
    page.show_vault(Inventory((shared, unused), needs))
    shown = out()
    (first,) = (line for line in shown.splitlines() if line.startswith("first"))
    assert first.split() == ["first", "2.0", "kB", "2.0", "kB", "second"]
    assert ["total", "2", "3.0", "kB"] in map(str.split, shown.splitlines())
    assert "1.0 kB in 1 entry that no recipe and no lock needs" in shown
    assert "is unknown" not in shown
    first, second = json_value(page.vault_data(Inventory((shared, unused), needs)))
    assert first["recipes"] == ["first", "second"]
    assert (second["name"], second["size"], second["unused"]) == ("unused", 1000, True)


def test_a_recipe_whose_needs_are_unknown_keeps_the_archives(tmp_path: Path, out: Read) -> None:
    idle = entry(tmp_path, "archive", "idle", 1)
    unlocked = Needs("young", frozenset(), complete=False)
    page.show_vault(Inventory((idle,), (unlocked,)))
    shown = out()
    assert "1 archive kept: what young needs is unknown; 'invoke lock'" in shown
    assert "Everything in the vault is needed by a recipe or a lock." in shown


def test_a_sound_vault_says_how_much_was_compared(tmp_path: Path, out: Read) -> None:
    page.show_verified([entry(tmp_path, "archive", "one", 1000)])
    assert "ok: 1 file, 1.0 kB; each matches its checksum" in out()
