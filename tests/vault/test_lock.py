"""The lock file: written the same each time, read with care, compared in sentences."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.errors import RecipeError
from tfwright.rules.model import Reference, Repository, Rules, Unreadable
from tfwright.vault import lock
from tfwright.vault.lock import (
    Cloned,
    Lock,
    LockedArchive,
    LockedBazel,
    LockedBinary,
    LockedFile,
    LockedRequirement,
    LockedSubstitute,
    Tensorflow,
)

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64
URL = "https://example.org/a.zip"


def rule(name: str, line: int, *urls: str, kind: str = "http_archive", **pins: str) -> Repository:
    """Return what a rule of WORKSPACE declares; without a name it is the code of a rule."""
    file = "WORKSPACE" if name else "third_party/clang.bzl"
    return Repository(name, kind, file, line, urls, **pins)  # type: ignore[arg-type]


RULES = Rules(
    repositories=(
        rule("zlib", 3, URL, sha256=TWO),
        rule("also_zlib", 9, "https://example.org/b.zip", URL, sha256=TWO),
        rule("", 18, "https://example.org/clang", kind="download", sha256=ONE),
        rule("horovod", 28, "https://example.org/h.git", kind="new_git_repository", commit="abc"),
        rule("docker", 29, "https://example.org/d.git", kind="git_repository", commit="d" * 40),
        rule("runner", 30, "https://example.org/r", kind="http_file"),
    ),
    unreadable=(Unreadable("third_party/x.bzl", 5, "is not made of constants"),),
    references=(Reference("closure", "defs.bzl", "WORKSPACE", 15, "closure_repositories"),),
)
BINARY = LockedBinary(url="https://example.org/bazel", sha256=THREE, size=150_000_000)
BARE = Lock(
    tensorflow=Tensorflow(commit="c" * 40, tree="a" * 40), bazel=LockedBazel(version="0.26.1")
)
KNOWN = BARE.changed(
    bazel=LockedBazel(version="0.26.1", binaries={"linux-x86_64": BINARY}),
    files=(
        LockedFile(path="r1.8/b.patch", sha256=TWO),
        LockedFile(path="r1.8/a.patch", sha256=ONE),
    ),
    substitutes=(
        LockedSubstitute(sha256=ONE, source="git:0123", reason="the server is gone", used=THREE),
    ),
)


def of(rules: Rules, known: Lock = KNOWN) -> Lock:
    """Return the lock of rules of which Bazel wants one."""
    return lock.with_downloads(known, rules, {TWO: 12}, {"zlib": ""})


@pytest.fixture
def made() -> Lock:
    """Return a lock with an entry of each kind."""
    requirements = (
        LockedRequirement(name="numpy", version="1.14.5", hashes=(ONE,)),
        LockedRequirement(name="six", version="1.10.0", hashes=(TWO, ONE)),
    )
    return of(RULES).changed(requirements=requirements)


def changed_from(sha256: str) -> tuple[Repository, ...]:
    """Return the repositories with another checksum in the place of one."""
    return tuple(
        replace(one, sha256=THREE) if one.sha256 == sha256 else one for one in RULES.repositories
    )


def fault(tmp_path: Path, made: Lock, old: str, new: str) -> RecipeError:
    """Put a fault into a written lock and return what reading it says."""
    text = lock.write(made)
    assert old in text
    path = make_file(tmp_path / "x.lock", text.replace(old, new, 1))
    with pytest.raises(RecipeError) as caught:
        lock.read(path)
    return caught.value


def test_an_archive_has_all_names_and_urls_that_rules_give_it(made: Lock) -> None:
    zlib = next(archive for archive in made.archives if archive.sha256 == TWO)
    assert zlib == LockedArchive(
        names=("also_zlib", "zlib"),
        urls=(URL, "https://example.org/b.zip"),
        sha256=TWO,
        size=12,
        needed=True,
    )


def test_an_archive_that_bazel_did_not_want_is_not_needed_and_one_it_was_not_asked_about_is_open(
    made: Lock,
) -> None:
    assert [archive.needed for archive in made.archives if archive.sha256 == ONE] == [False]
    unasked = lock.with_downloads(BARE, RULES, {})
    assert [archive.needed for archive in unasked.archives] == [None, None]


def test_of_several_archives_by_one_name_the_one_that_bazel_took_or_a_substitute_replaces_is_needed() -> (
    None
):
    several = Rules((rule("zlib", 1, URL, sha256=ONE), rule("zlib", 2, URL, sha256=TWO)), ())
    for wanted, needed in ((TWO, [False, True]), (THREE, [True, False])):
        found = lock.with_downloads(KNOWN, several, {}, {"zlib": wanted}).archives
        assert [archive.needed for archive in found] == needed


def test_what_bazel_loads_a_file_of_is_needed_whatever_its_analysis_names() -> None:
    repositories = (
        rule("zlib", 1, URL, sha256=ONE),
        rule("rules", 2, URL, sha256=TWO),
        rule("more", 3, URL, kind="git_repository", commit="d" * 40),
    )
    loads = tuple(Reference(name, "defs.bzl", "WORKSPACE", 4) for name in ("rules", "more"))
    made = lock.with_downloads(BARE, Rules(repositories, (), loads), {}, {"a": ""})
    assert {entry.names: entry.needed for entry in made.archives} == {
        ("zlib",): False,
        ("rules",): True,
    }
    assert [entry.needed for entry in made.clones] == [True]


def test_a_commit_that_a_rule_clones_is_locked_by_its_id(made: Lock) -> None:
    assert made.clones == (
        Cloned(
            names=("docker",), remote="https://example.org/d.git", commit="d" * 40, needed=False
        ),
    )
    moved = made.changed(clones=(made.clones[0].changed(commit="e" * 40),))
    assert lock.differences(made, moved) == [
        "commit dddddddddddd of https://example.org/d.git is in the lock, and not wanted any more",
        "commit eeeeeeeeeeee of https://example.org/d.git is wanted, and not in the lock",
    ]


def test_what_bazel_itself_declares_is_no_difference_where_no_bazel_runs(made: Lock) -> None:
    own = made.changed(
        archives=(
            *made.archives,
            LockedArchive(names=("rules_cc",), urls=(), sha256=THREE, needed=True, of_bazel=True),
        )
    )
    assert lock.differences(own, made) == [
        f"archive rules_cc ({THREE[:16]}…) is in the lock, and not wanted any more"
    ]
    foreign = made.changed(bazel=LockedBazel(version=made.bazel.version))
    assert lock.differences(own, foreign) == []


def test_what_no_digest_holds_is_listed_with_place_and_reason(made: Lock) -> None:
    assert {(entry.name, entry.file, entry.line) for entry in made.unlockable} == {
        ("horovod", "WORKSPACE", 28),
        ("runner", "WORKSPACE", 30),
        ("unreadable", "third_party/x.bzl", 5),
        ("closure_repositories", "WORKSPACE", 15),
    }
    assert {entry.name: entry.why for entry in made.unlockable}[
        "horovod"
    ] == "new_git_repository takes abc of https://example.org/h.git"


def test_a_written_lock_is_read_as_it_was(tmp_path: Path, made: Lock) -> None:
    path = make_file(tmp_path / "x.lock", lock.write(made))
    assert lock.read(path) == made
    assert lock.write(lock.read(path)) == path.read_text("utf-8")


def test_of_a_lock_that_was_cut_the_command_is_named_that_makes_it_anew(
    tmp_path: Path, made: Lock
) -> None:
    path = tmp_path / "my lock.lock"
    text = lock.write(made)
    path.write_text(text[: text.rindex('"')], "utf-8")
    with fails(RecipeError, "TOML") as caught:
        lock.read(path)
    again = f"'invoke lock --recipe \"{tmp_path}/my lock.toml\"'"
    assert f"delete it and run {again}" in caught.value.remedy


def test_the_order_in_which_inputs_were_found_does_not_show(made: Lock) -> None:
    turned = Rules(
        RULES.repositories[1::-1] + RULES.repositories[:1:-1], RULES.unreadable, RULES.references
    )
    again = of(turned)
    assert [archive.sha256 for archive in again.archives] == [
        archive.sha256 for archive in made.archives
    ]
    assert again.unlockable == made.unlockable


def test_one_changed_archive_changes_only_its_own_lines(made: Lock) -> None:
    changed = changed_from(ONE)
    now = of(Rules(changed, RULES.unreadable, RULES.references))
    after = lock.write(now.changed(requirements=made.requirements)).splitlines()
    before = lock.write(made).splitlines()
    assert len(before) == len(after)
    assert [(old, new) for old, new in zip(before, after, strict=True) if old != new] == [
        (f'sha256 = "{ONE}"', f'sha256 = "{THREE}"')
    ]


def test_every_item_of_a_list_has_a_line_of_its_own(made: Lock) -> None:
    assert f'    "{URL}",\n' in lock.write(made)
    assert tomllib.loads(lock.write(made))["format"] == 1


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (f'sha256 = "{TWO}"', 'sha256 = "../../etc/passwd"', "archives.0.sha256"),
        (f'sha256 = "{TWO}"', f'sha256 = "{TWO.upper()}A"', "archives.0.sha256"),
        ("size = 12", "size = 99999999999999", "archives.0.size"),
        ("size = 12", "size = -1", "archives.0.size"),
        ('"also_zlib"', '"../zlib"', "archives.0.names.0"),
        ('"also_zlib"', '"/zlib"', "archives.0.names.0"),
        ('"https://example.org/b.zip"', '"ext::sh -c id"', "archives.0.urls.1"),
        ('"https://example.org/b.zip"', '"https://example.org/b\\u0007"', "archives.0.urls.1"),
        ('"https://example.org/clang"', '"-o/etc/passwd"', "archives.1.urls.0"),
        ('"r1.8/a.patch"', '"/etc/passwd"', "files.0.path"),
        ('"r1.8/a.patch"', '"r1.8/../../x"', "files.0.path"),
        ('"the server is gone"', '"a\\nb"', "substitutes.0.reason"),
        ('version = "1.14.5"', 'version = "--index-url=x"', "requirements.0.version"),
        ('name = "numpy"', 'name = "-r x"', "requirements.0.name"),
        ("line = 28", "line = 0", "unlockable.1.line"),
        ("[bazel.binaries.linux-x86_64]", '[bazel.binaries."../x"]', "bazel.binaries"),
        ("size = 12", "size = 12\nexecute = true", "archives.0.execute"),
        ("format = 1", "format = 2", "format"),
    ],
)
def test_a_malicious_entry_is_refused(
    tmp_path: Path, made: Lock, old: str, new: str, key: str
) -> None:
    told = fault(tmp_path, made, old, new)
    assert f" {key}" in told.what
    assert told.exit_status == 2


def test_a_fault_is_told_with_the_line_of_its_own_entry(tmp_path: Path, made: Lock) -> None:
    digest = f'sha256 = "{ONE}"'
    told = fault(tmp_path, made, digest, 'sha256 = "1"')
    line = lock.write(made).split(digest)[0].count("\n") + 1
    assert told.what.startswith(f"{tmp_path / 'x.lock'}:{line}: archives.1.sha256: ")


def test_an_archive_that_is_there_twice_is_refused(tmp_path: Path, made: Lock) -> None:
    entry = f'names = []\nurls = []\nsha256 = "{ONE}"\n'
    told = fault(
        tmp_path,
        made,
        "[[archives]]\n",
        f"[[archives]]\n{entry}\n[[archives]]\n{entry}\n[[archives]]\n",
    )
    assert "archive without a name (1111111111111111…) is there" in told.what


def test_locks_that_agree_have_no_differences(made: Lock) -> None:
    assert lock.differences(made, made) == []


def test_what_is_not_known_yet_is_no_difference(made: Lock) -> None:
    now = lock.with_downloads(KNOWN.changed(bazel=BARE.bazel), RULES, {})
    assert lock.differences(made, now) == []


def test_each_difference_names_its_entry(made: Lock) -> None:
    changed = changed_from(TWO)
    binary = LockedBinary(url=URL, sha256=ONE, size=150_000_000)
    known = KNOWN.changed(
        tensorflow=Tensorflow(commit="c" * 40, tree="b" * 40),
        bazel=LockedBazel(version="0.24.1", binaries={"linux-x86_64": binary}),
        files=(LockedFile(path="r1.8/a.patch", sha256=THREE),),
    )
    now = lock.with_downloads(known, Rules(changed, (), RULES.references), {})
    told = lock.differences(made, now)
    assert told == [
        f"TensorFlow: tree is {'b' * 40}, the lock has {'a' * 40}",
        "Bazel: version is 0.24.1, the lock has 0.26.1",
        f"Bazel for linux-x86_64: sha256 is {ONE}, the lock has {THREE}",
        "archive also_zlib, zlib (2222222222222222…) is in the lock, and not wanted any more",
        "archive also_zlib, zlib (3333333333333333…) is wanted, and not in the lock",
        "file r1.8/b.patch is in the lock, and not wanted any more",
        f"file r1.8/a.patch: sha256 is {THREE}, the lock has {ONE}",
        (
            "unlockable unreadable (third_party/x.bzl:5: is not made of constants) is in the lock, "
            "and not wanted any more"
        ),
    ]
