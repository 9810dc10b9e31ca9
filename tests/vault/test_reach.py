"""What a tree leads to: its own rules, those of its archives, and substitutes.

What a lock leaves out is not among it.
"""

import difflib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.failing import fails
from tests.making import make_file, make_tar
from tests.upstream import commit

from tfwright.documents.recipe import SubstituteTable
from tfwright.errors import RecipeError
from tfwright.rules import repositories
from tfwright.rules.listings import BY_VERSION, PYTHON_URL, Environment
from tfwright.rules.model import Reference, Repository, Rules, Unreadable
from tfwright.rules.patched_tree import Readings
from tfwright.tools import files, unpacking
from tfwright.tools.git import clones
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin
from tfwright.vault import reach, substitutes
from tfwright.vault.lock import (
    Cloned,
    Lock,
    LockedArchive,
    LockedBazel,
    LockedSubstitute,
    Tensorflow,
    Unlockable,
)
from tfwright.vault.origins import DROP, Attempt, Missing, Supply, WantedArchive
from tfwright.vault.reach import Reached, Suppliers
from tfwright.vault.store import Store

ONE, TWO, INNER = "1" * 64, "2" * 64, "3" * 64


def archive(name: str, sha256: str, more: str = "") -> str:
    """Return a rule that downloads an archive."""
    url = f"https://{name}.example/x.tar.gz"
    return f'http_archive(name = "{name}", url = "{url}", sha256 = "{sha256}"{more})\n'


DEFINITIONS = f"def inner():\n  {archive('inner', INNER)}"
CALL = 'load("@outer//rules:defs.bzl", "inner")\ninner()\n'


def read(workspace: str, **third_party: str) -> Rules:
    """Read a tree with these files."""
    files = {f"third_party/{name}.bzl": text for name, text in third_party.items()}
    return repositories.read({"WORKSPACE": workspace, **files})


def tree(outer: str = ONE) -> Rules:
    """Read a tree that names two archives, of which one declares a third."""
    return read(archive("outer", outer, ', strip_prefix = "outer-1"') + archive("two", TWO) + CALL)


def tarred(path: Path, texts: Mapping[str, str] | None = None, folder: str = "outer-1") -> Path:
    """Pack texts into an archive, those that the tree above calls if none are given."""
    texts = texts or {"rules/defs.bzl": DEFINITIONS, "README": "-"}
    return make_tar(path, {f"{folder}/{name}": text for name, text in texts.items()})


def substitute(sha256: str) -> SubstituteTable:
    return SubstituteTable(reason="gone", sha256=sha256, urls=("https://example.org/other.tar.gz",))


def no_clone(wanted: Clone) -> Path:
    pytest.fail(f"{wanted} was asked for")


class Giver:
    """Gives the files of a folder, and keeps what it was asked for."""

    def __init__(self, store: Store, *given: Path) -> None:
        self.store, self.given = (store, {files.sha256(path): path for path in given})
        self.asked: list[list[str]] = []

    def __call__(self, wanted: Sequence[WantedArchive]) -> Supply:
        self.asked.append([file.name for file in wanted])
        for file in (file for file in wanted if file.sha256 in self.given):
            with self.store.admitting(file.sha256, "a test") as target:
                target.write_bytes(self.given[file.sha256].read_bytes())
        missing = [file for file in wanted if file.sha256 not in self.given]
        return Supply(
            {file.sha256: DROP for file in wanted if file not in missing},
            tuple(Missing(file, (Attempt("a", "gone"),)) for file in missing),
        )


def locked(**needed: bool) -> Lock:
    digests = {"outer": ONE, "two": TWO}
    archives = tuple(
        LockedArchive(names=(name,), urls=(), sha256=digests[name], size=7, needed=value)
        for name, value in needed.items()
    )
    return Lock(
        tensorflow=Tensorflow(commit="a" * 40, tree="b" * 40),
        bazel=LockedBazel(version="0.26.1"),
        archives=archives,
    )


def brought(
    found: Rules,
    giver: Giver,
    lock: Lock | None = None,
    clone: Callable[[Clone], Path] = no_clone,
    **more: Any,  # noqa: ANN401 fields of the class
) -> Reached:
    """Bring what rules lead to, of which only the files that are given are to be had."""
    return reach.obtain_all(found, lock, Suppliers(giver.store, giver, clone, **more))


def test_what_an_archive_declares_is_obtained_too_once_that_is_there(
    store: Store, tmp_path: Path
) -> None:
    outer = tarred(tmp_path / "outer.tar.gz")
    giver = Giver(store, outer)
    reached = brought(tree(files.sha256(outer)), giver)
    assert giver.asked == [["outer", "two"], ["inner"]]
    found = {repository.name for repository in reached.rules.repositories}
    assert found == {"outer", "two", "inner"}
    assert [missing.wanted.name for missing in reached.supply.missing] == ["two", "inner"]


def patched(label: str = "//third_party:outer.patch") -> str:
    """Return what makes a rule apply a patch."""
    return f', strip_prefix = "outer-1", patches = [Label("{label}")]'


def patch(before: str, after: str) -> str:
    """Return a patch of what the archive above declares."""
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(old, new, "a/rules/defs.bzl", "b/rules/defs.bzl"))


@pytest.mark.parametrize("label", ["//third_party:outer.patch", "@two//third_party:outer.patch"])
def test_an_archive_is_read_as_the_patches_of_its_rule_leave_it(
    store: Store, tmp_path: Path, label: str
) -> None:
    outer = tarred(tmp_path / "outer.tar.gz")
    tree = {"third_party/outer.patch": patch(DEFINITIONS, DEFINITIONS.replace(INNER, TWO))}
    two = tarred(tmp_path / "two.tar.gz", tree, "two-1")
    more = archive("two", files.sha256(two), ', strip_prefix = "two-1"')
    found = read(archive("outer", files.sha256(outer), patched(label)) + more + CALL)
    reached = brought(found, Giver(store, outer, two), text=lambda path: tree.get(path, ""))
    assert [one.sha256 for one in reached.rules.repositories if one.name == "inner"] == [TWO]


def test_a_substitute_that_the_patches_of_the_tree_do_not_fit_is_refused_with_the_hunk(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tarred(
        tmp_path / "other.tar.gz",
        {"rules/defs.bzl": DEFINITIONS, "a.h": "int one;\nint two;\nint six;\n"},
    )
    table = substitute(files.sha256(other))
    found = read(archive("outer", ONE, patched()) + CALL)

    def unfit(patch: str) -> list[str]:
        readings = Readings(tmp_path / "readings")
        giver, tables = Giver(store, other), {"outer": table}
        suppliers = Suppliers(store, giver, no_clone, tables, readings, text=lambda _: patch)
        reached = reach.obtain_all(found, None, suppliers)
        unfit = reach.unfit_hunks(reached, tables, suppliers)
        return [*substitutes.check_patches(unfit)]

    assert not unfit(patch(DEFINITIONS, DEFINITIONS.replace(INNER, TWO)))
    wrong = patch(DEFINITIONS.replace(INNER, ONE), DEFINITIONS.replace(INNER, TWO))
    gone = "--- a/away.h\n+++ b/away.h\n@@ -1 +1 @@\n-x\n+y\n"
    with fails(RecipeError, "outer", "source.patches") as caught:
        unfit(wrong + gone)
    one, two = caught.value.evidence.lines
    assert one.startswith("outer: third_party/outer.patch: hunk 1 of rules/defs.bzl belongs at")
    assert two.endswith("hunk 1 of away.h changes a file that does not exist")
    around = "--- a/a.h\n+++ b/a.h\n@@ -1,3 +1,3 @@\n int one;\n-int two;\n+int ten;\n int old;\n"
    (note,) = unfit(around)
    assert "fits at line 1 but for its context" in note
    # An archive such as LLVM's is not unpacked again for the same patches.
    monkeypatch.setattr(reach, "archive_texts", Mock(side_effect=AssertionError))
    assert unfit(around) == [note]


def test_a_folder_of_the_tree_stands_in_for_an_archive_that_others_declare(
    store: Store, tmp_path: Path
) -> None:
    loading = f'load("@inner//:inner.bzl", "x")\n{DEFINITIONS}'
    outer = tarred(tmp_path / "outer.tar.gz", {"rules/defs.bzl": loading})
    own = 'local_repository(name = "inner", path = "third_party")\n'
    for declared, missing in (("", ["inner"]), (own, [])):
        rule = archive("outer", files.sha256(outer), ', strip_prefix = "outer-1"')
        reached = brought(read(rule + declared + CALL, inner="x = 1\n"), Giver(store, outer))
        assert names(reached.needed_missing_archives(None)) == missing


def test_an_archive_of_which_several_rules_want_files_is_unpacked_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, contents = tarred(tmp_path / "outer.tar.gz"), Mock(wraps=unpacking.plain_files)
    monkeypatch.setattr(unpacking, "plain_files", contents)
    found = tree(files.sha256(outer))
    # The file is loaded, and a function of it is called.
    assert len(found.references) > 1
    brought(found, Giver(store, outer))
    contents.assert_called_once()


def test_an_archive_that_is_not_there_leaves_its_call_nested(store: Store) -> None:
    reached = brought(tree(), Giver(store))
    assert [nested.archive for nested in reached.rules.calls] == ["outer"]


def test_a_substitute_is_wanted_in_place_of_what_it_stands_for_and_read_by_its_own_directory(
    store: Store, tmp_path: Path
) -> None:
    other = tarred(tmp_path / "other.tar.gz", folder="other-2")
    table = substitute(files.sha256(other)).changed(strip_prefix="other-2")
    reached = brought(tree(), Giver(store, other), substitutes={"outer": table})
    assert table.sha256 in reached.supply.ways
    assert "inner" in {repository.name for repository in reached.rules.repositories}


def test_what_the_lock_knows_to_be_of_no_use_is_not_brought_unless_it_declares_more(
    store: Store,
) -> None:
    giver = Giver(store)
    brought(tree(), giver, locked(outer=False, two=False))
    assert giver.asked == [["outer"]]


@pytest.fixture
def definitions(tmp_path: Path) -> Clone:
    """Make a repository that declares an archive, and return its commit."""
    path = tmp_path / "definitions"
    head = commit(path, {"rules/defs.bzl": DEFINITIONS})
    return Clone(str(path), head)


def cloning(wanted: Clone) -> Rules:
    """Read a tree that clones what declares an archive."""
    return read(
        f'git_repository(name = "outer", remote = "{wanted.remote}", commit = "{wanted.commit}")\n'
        + CALL
    )


def locked_clone(wanted: Clone, *, needed: bool) -> Lock:
    cloned = Cloned(names=("of_lock",), remote=wanted.remote, commit=wanted.commit, needed=needed)
    return locked().changed(clones=(cloned,))


def test_what_a_cloned_repository_declares_is_obtained_too(
    store: Store, tmp_path: Path, definitions: Clone
) -> None:
    giver = Giver(store)

    def clone(wanted: Clone) -> Path:
        return clones.fetch(wanted, tmp_path / "git", Origin.of(wanted.remote), offline=False)

    reached = brought(cloning(definitions), giver, clone=clone)
    assert giver.asked == [[], ["inner"]]
    assert reached.clones == {definitions: clones.path_of(tmp_path / "git", definitions.remote)}
    assert list(reached.notes())[2:] == [
        f"The commits that rules clone are on this host: {definitions.remote}"
    ]


def test_a_commit_that_is_not_found_is_missed_where_workspace_loads_a_file_of_it(
    store: Store, tmp_path: Path, definitions: Clone
) -> None:
    def clone(wanted: Clone) -> Path:
        return clones.fetch(wanted, tmp_path / "git", Origin.of(wanted.remote), offline=True)

    reached = brought(cloning(definitions), Giver(store), clone=clone)
    assert "is not here" in next(reached.notes())
    needed = locked_clone(definitions, needed=True)
    assert list(reached.needed_missing_clones(needed)) == [definitions]
    # Also without a lock: WORKSPACE loads a file of it.
    assert list(reached.needed_missing_clones(None)) == [definitions]


def test_a_commit_that_the_lock_knows_to_be_of_no_use_is_not_cloned(definitions: Clone) -> None:
    idle = locked_clone(definitions, needed=False)
    assert reach.wanted_clones(cloning(definitions), None) == [definitions]
    assert reach.wanted_clones(cloning(definitions), idle) == []


def test_what_bazel_declares_is_brought_once_a_lock_knows_that_it_is_needed() -> None:
    own = repositories.read_bazel({"jdk.WORKSPACE": archive("outer", ONE)})
    assert reach.wanted_archives(own, {}, None) == []
    assert [archive.name for archive in reach.wanted_archives(own, {}, locked(outer=True))] == [
        "outer"
    ]


def names(missing: Sequence[Missing]) -> list[str]:
    return [each.wanted.name for each in missing]


def test_what_fetch_cannot_bring_is_named_with_the_reason() -> None:
    rules = read(
        'http_archive(name = "loose", url = "https://a.example/b.zip")\n'
        'http_archive(name = "broken", url = "no address")\n'
        f'http_archive(name = "own", url = "https://a.example/c.zip", sha256 = "{ONE}")\n'
    )
    other = Repository("own", "archive", "@a//deps.bzl", 1, ("https://a.example/d.zip",))
    code = Unreadable("@b//jars.bzl", 2, "download: is a part of a value", name="jars")
    unpinned, unread, few = reach.left_to_bazel(rules + Rules((other,), (code,)))
    assert few.endswith("jars (@b//jars.bzl:2)")
    loading = Rules((), (code,), references=(Reference("jars", "defs.bzl", "WORKSPACE", 1),))
    assert "@b//jars.bzl:2 download" in next(reach.left_to_bazel(loading))
    assert unpinned.startswith("No checksum is known")
    assert unpinned.endswith("loose (WORKSPACE:1)")
    assert "WORKSPACE:2 http_archive: 'no address' is not an" in unread
    python = Unreadable("python.bzl", 1, "python_repository: is not passed")
    assert "python_repository" in next(reach.left_to_bazel(Rules((), (python,))))
    for name, rule in (("python_x86_64", BY_VERSION), ("python", PYTHON_URL)):
        chosen = Repository(name, rule, "versions.bzl", 1, ("https://a",), ONE)
        assert not [*reach.left_to_bazel(Rules((chosen,), (python,)))]
    rocm = Rules((), (Unreadable("gpus/rocm_configure.bzl", 1, "is not passed"),))
    assert [*reach.left_to_bazel(rocm)]
    assert not [*reach.left_to_bazel(rocm, ("/rocm_configure.bzl",))]


def test_what_has_no_checksum_stops_a_build_only_if_it_is_known_to_be_needed() -> None:
    rules = read(
        'http_archive(name = "read", url = "https://a.example/r.zip")\n'
        'load("@read//:defs.bzl", "defs")\n'
        'http_archive(name = "idle", url = "https://a.example/i.zip")\n'
        'git_repository(name = "moving", remote = "https://a.example/m", tag = "v1")\n'
    )
    reached = reach.Reached(rules, Supply({}, ()), {})
    # WORKSPACE loads a file of it, so that Bazel needs it for whatever target.
    assert [entry.name for entry in reached.needed_unpinned(None)] == ["read"]
    needs = {"read": True, "idle": False, "moving": True}
    entries = tuple(
        Unlockable(name=each.name, file=each.file, line=each.line, why="-", needed=needs[each.name])
        for each in rules.repositories
    )
    found = reached.needed_unpinned(locked(two=True).changed(unlockable=entries))
    assert [entry.name for entry in found] == ["read", "moving"]
    fault = substitutes.unpinned_error("small", found)
    assert fault.what == "small needs downloads without a checksum: read, moving"
    assert "WORKSPACE:4: moving: git_repository takes v1" in fault.evidence.lines[-1]
    assert "'invoke pin --recipe small'" in fault.remedy
    assert fault.remedy.endswith(
        "Pin moving by a patch of the tree: a sha256, or the whole commit id."
    )


@pytest.mark.parametrize("lock", [None, locked(outer=False, two=False)], ids=["no lock", "lock"])
def test_an_archive_that_workspace_loads_a_file_of_must_be_there_whatever_the_lock_says(
    store: Store, lock: Lock | None
) -> None:
    reached = brought(tree(), Giver(store), lock)
    assert names(reached.needed_missing_archives(lock)) == ["outer"]


def test_of_an_archive_that_a_substitute_stands_in_for_the_substitute_must_be_there(
    store: Store,
) -> None:
    found = read(archive("outer", ONE) + archive("also_outer", ONE))
    reached = brought(found, Giver(store), substitutes={"outer": substitute(INNER)})
    used = LockedSubstitute(sha256=ONE, source="x", reason="gone", used=INNER)
    known = locked(outer=True).changed(substitutes=(used,))
    assert names(reached.needed_missing_archives(known)) == ["outer"]


def test_two_rules_with_one_digest_are_one_file_with_the_urls_of_both() -> None:
    assert reach.wanted_archives(read(archive("a", ONE) + archive("b", ONE)), {}, None) == [
        WantedArchive("a, b", ONE, ("https://a.example/x.tar.gz", "https://b.example/x.tar.gz"))
    ]


def test_zip_files_are_read_as_well_and_other_files_have_no_rules(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("a-1/defs.bzl", DEFINITIONS)
        packed.writestr("b-1/defs.bzl", "outside of the directory that is stripped")
    assert reach.archive_texts(tmp_path / "a.zip", "a-1") == {"defs.bzl": DEFINITIONS}
    damaged = (tmp_path / "a.zip").read_bytes().replace(b"outside", b"damaged")
    (tmp_path / "b.zip").write_bytes(damaged.replace(DEFINITIONS.encode()[:9], b"?" * 9))
    assert reach.archive_texts(tmp_path / "b.zip", "a-1") == {}
    (tmp_path / "plain").write_text("no archive", "utf-8")
    assert reach.archive_texts(tmp_path / "plain", "") == {}


def test_an_archive_that_unpacks_to_more_rules_than_any_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "MOST_RULES", 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(3):
            packed.writestr(f"a-1/{number}.bzl", "#" * 500)
    assert reach.archive_texts(tmp_path / "a.zip", "a-1") == {}


LOADS = {
    "an attribute of it is called": "outer.check()",
    "it is a value": 'http_archive(name = "x", url = outer, sha256 = "5")',
    "it is a rule": f'outer(name = "x", url = "https://a.example/x", sha256 = "{"5" * 64}")',
    "nothing uses it": "",
}


@pytest.mark.parametrize("use", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("inner", [False, True], ids=["WORKSPACE", "a file"])
def test_an_archive_that_a_file_is_loaded_from_must_be_there_however_that_is_used(
    store: Store, use: str, *, inner: bool
) -> None:
    loading = f'load("@outer//:defs.bzl", "outer")\n{use}\n'
    found = read(archive("outer", ONE) + loading)
    if inner:
        found = read(
            archive("outer", ONE) + 'load("//third_party:a.bzl", "a")\n',
            a='load(":b.bzl", "b")\n',
            b=f"{loading}def b():\n  pass\n",
        )
    for lock in (None, locked(outer=False)):
        giver = Giver(store)
        reached = brought(found, giver, lock)
        assert "outer" in giver.asked[0]
        assert names(reached.needed_missing_archives(lock)) == ["outer"]


LINKING = """\
def _inner_impl(ctx):
    workspace = Label("{label}")
    path = ctx.path(workspace).dirname
    ctx.symlink(path, "")

_inner = repository_rule(implementation = _inner_impl, local = True)

def outer():
    _inner(name = "inner")
"""


@pytest.mark.parametrize("way", ["archive", "clone"])
@pytest.mark.parametrize(
    "label", ["@outer//third_party:inner/WORKSPACE", "//third_party/inner:WORKSPACE"]
)
def test_a_repository_that_is_a_folder_of_an_archive_is_read_there(
    store: Store, tmp_path: Path, way: str, label: str
) -> None:
    texts = {
        "defs.bzl": LINKING.format(label=label),
        "third_party/inner/WORKSPACE": "",
        "third_party/inner/x/two.bzl": f"def two():\n  {archive('two', TWO)}",
    }
    packed = tarred(tmp_path / "outer.tar.gz", texts)
    cloned = Clone(str(tmp_path / "git"), commit(tmp_path / "git", texts))
    where = (
        f'url = "https://example.org/o.tar.gz", sha256 = "{files.sha256(packed)}"'
        if way == "archive"
        else f'remote = "{cloned.remote}", commit = "{cloned.commit}"'
    )
    found = read(
        f'http_archive(name = "outer", strip_prefix = "outer-1", {where})\n'
        'load("@outer//:defs.bzl", "outer")\nouter()\n'
        'load("@inner//x:two.bzl", "two")\ntwo()\n'
    )
    reached = brought(found, Giver(store, packed), clone=lambda _: tmp_path / "git" / ".git")
    assert names(reached.supply.missing) == ["two"]


@pytest.mark.parametrize("way", ["archive", "substitute", "clone"])
def test_an_archive_that_a_loaded_file_loads_must_be_there_however_deep(
    store: Store, tmp_path: Path, way: str
) -> None:
    texts = {
        # What it declares by a name of the tree's comes too late to be needed.
        "rules/defs.bzl": f'load(":more.bzl", "more")\ndef inner():\n  {archive("two", INNER)}',
        "rules/more.bzl": 'load("@two//:two.bzl", "TWO")\n',
    }
    outer = tarred(tmp_path / "outer.tar.gz", texts)
    cloned = Clone(str(tmp_path / "git"), commit(tmp_path / "git", texts))
    found, tables = tree(files.sha256(outer)), {}
    if way == "clone":
        found = cloning(cloned) + read(archive("two", TWO))
    elif way == "substitute":
        found, tables = tree(), {"outer": substitute(files.sha256(outer))}
    kept = tmp_path / "git" / ".git"
    known = locked(outer=False, two=False)
    for lock in (None, known):
        reached = brought(found, Giver(store, outer), lock, lambda _: kept, substitutes=tables)
        assert names(reached.needed_missing_archives(lock)) == ["two"]


@pytest.mark.parametrize(
    ("declared", "first"),
    [
        ('http_archive(name = "dep", url = "https://a.example/r.zip")\n', "Add the tables above"),
        (
            'git_repository(name = "dep", remote = "https://a.example/m", tag = "v1")\n',
            "Pin dep by a patch",
        ),
    ],
)
def test_what_pins_the_only_download_without_a_checksum_is_said_with_the_lock_to_write(
    declared: str, first: str
) -> None:
    fault = substitutes.unpinned_error("small", read(declared).repositories, locked=True)
    assert fault.what.startswith("small needs downloads without a checksum")
    said = fault.remedy
    assert said.startswith(first)
    assert ("by a patch" in said) != ("invoke pin" in said)
    assert said.endswith("afterwards: 'invoke lock --recipe small'.")


def test_a_list_of_files_that_was_brought_names_more_which_are_brought_as_well(
    store: Store, tmp_path: Path
) -> None:
    cublas = tarred(tmp_path / "cublas.tar.gz")
    entry = {"relative_path": "cublas.tar.gz", "sha256": files.sha256(cublas)}
    listing = make_file(
        tmp_path / "redistrib.json", json.dumps({"libcublas": {"linux-x86_64": entry}})
    )
    pin = f'["https://a.example/redistrib.json", "{files.sha256(listing)}"]'
    rules = read(
        'load("//third_party:cuda.bzl", "cuda")\ncuda()\n',
        cuda=f'CUDA_REDIST_JSON_DICT = {{"12.8.0": {pin}}}\n'
        'PARTS = {"libcublas": {"repo_name": "cuda_cublas"}}\ndef cuda():\n    pass\n',
    )
    giver = Giver(store, listing, cublas)
    environment = Environment({"HERMETIC_CUDA_VERSION": "12.8.0"})
    reached = brought(rules, giver, environment=environment)
    assert giver.asked == [["cuda_redist_json"], ["cuda_cublas"]]
    assert store.holds(files.sha256(cublas))
    assert reached.rules.unreadable == ()
