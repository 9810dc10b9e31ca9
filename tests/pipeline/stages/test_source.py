"""The source stage: the pinned commit, the assets, the patches, and nothing else."""

import os
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder, make_program
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import FetchTable, SourceTable, SubstituteTable
from tfwright.errors import RecipeError, SupplyError, TfwrightError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs, Tree
from tfwright.pipeline.stages import source

PATCH = "diff --git a/core/op.cc b/core/op.cc\n--- a/core/op.cc\n+++ b/core/op.cc\n@@ -1 +1 @@\n-int op;\n+int up;\n"
SECOND = PATCH.replace("int up;", "int at;").replace("int op;", "int up;")
MPI = "third_party/mpi/mpi.bzl"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Make a repository as the fetch stage leaves it."""
    path = tmp_path / "upstream"
    make_program(path / "configure", "#!/bin/sh\n")
    texts = {"core/op.cc": "int op;\n", MPI: "OPEN = False\n", "testdata/big": "big\n"}
    commit(path, texts)
    return path / ".git"


@pytest.fixture
def inputs(mirror: Path) -> Inputs:
    pinned = run_git("rev-parse", "HEAD", cwd=mirror)
    return Inputs(mirror=mirror, commit=pinned, epoch=1524847009, programs=None)


@pytest.fixture
def patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of patches and assets."""
    path = make_folder(tmp_path / "patches")
    (path / "0001-up.patch").write_text(PATCH, "utf-8")
    (path / "0002-at.patch").write_text(SECOND, "utf-8")
    (path / "nccl.h").write_text("#define NCCL_MAJOR 1\n", "utf-8")
    monkeypatch.setattr(recipes, "PATCHES", path)
    return path


@dataclass
class Bench:
    """A job whose recipe has patches and an asset, with what fetch made for it."""

    job: RecipeJob
    table: SourceTable
    inputs: Inputs

    def run(self, fetch: FetchTable = FetchTable.defaults(), **changes: object) -> Tree:  # noqa: B008
        """Make the tree, with some keys of the recipe changed."""
        return source.run(self.job, self.table.changed(**changes), fetch, self.inputs)

    def damage(self, tree: Tree) -> str | None:
        return source.damage(self.table, tree)


@pytest.fixture
def bench(job: RecipeJob, inputs: Inputs, patches: Path) -> Bench:
    assert patches
    wanted = {
        "patches": ("0001-up.patch", "0002-at.patch"),
        "assets": {"third_party/nccl/nccl.h": "nccl.h"},
        "exclude": ("testdata",),
    }
    return Bench(job, job.recipe.source.changed(commit=inputs.commit, **wanted), inputs)


def contents(tree: Tree) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of every file."""
    found = [path for path in tree.path.rglob("*") if path.is_file() and path.name != ".git"]
    return {
        str(path.relative_to(tree.path)): (path.stat().st_mode & 0o777, path.read_bytes())
        for path in found
    }


@pytest.mark.medium
def test_a_tree_holds_the_commit_the_assets_and_the_patches_in_order(bench: Bench) -> None:
    tree = bench.run()
    assert contents(tree) == {
        "configure": (0o755, b"#!/bin/sh\n"),
        "core/op.cc": (0o644, b"int at;\n"),
        MPI: (0o644, b"OPEN = False\n"),
        "third_party/nccl/nccl.h": (0o644, b"#define NCCL_MAJOR 1\n"),
    }
    assert (tree.commit, tree.epoch, tree.release) == (
        bench.inputs.commit,
        1524847009,
        bench.table.release,
    )


@pytest.mark.medium
def test_a_tree_is_the_same_however_often_it_is_made_and_under_any_umask(bench: Bench) -> None:
    first = bench.run()
    before = contents(first)
    (first.path / "core/op.cc").write_text("half", "utf-8")
    (first.path / "left over").touch()
    umask = os.umask(0o077)
    try:
        second = bench.run()
    finally:
        os.umask(umask)
    assert (second, contents(second)) == (first, before)


@pytest.mark.medium
def test_the_content_changes_with_a_patch(bench: Bench) -> None:
    one = bench.run()
    other = bench.run(patches=("0001-up.patch",))
    assert one.content != other.content


@pytest.mark.medium
def test_a_patch_of_a_substitute_is_applied_only_where_the_substitute_is_used(bench: Bench) -> None:
    zlib_archive = SubstituteTable(
        reason="The server is gone",
        sha256="1" * 64,
        urls=("https://example.org/zlib.tar.gz",),
        only_if_missing=True,
        patches=("0002-at.patch",),
    )
    fetch = FetchTable(substitutes={"zlib_archive": zlib_archive})
    tree = bench.run(fetch)
    assert contents(tree)["core/op.cc"] == (0o644, b"int up;\n")
    taken = bench.inputs.model_copy(update={"substitutes": {"zlib_archive": "0" * 64}})
    assert taken.used_source(bench.table, fetch) == bench.table


@pytest.mark.medium
def test_a_substitute_is_put_into_the_file_that_bazel_begins_with(bench: Bench) -> None:
    upstream = bench.inputs.mirror.parent
    digests = {"WORKSPACE": "1" * 64, "MODULE.bazel": "2" * 64}
    commit(
        upstream,
        {
            name: f'http_archive(name = "r", url = "https://a.example/r.zip", sha256 = "{digest}")\n'
            for name, digest in digests.items()
        },
    )
    head = run_git("rev-parse", "HEAD", cwd=upstream)
    fetched = {"commit": head, "starts": ("MODULE.bazel",), "substitutes": {"r": "2" * 64}}
    bench.inputs = bench.inputs.model_copy(update=fetched)
    other = SubstituteTable(
        reason="The server is gone",
        replaces="2" * 64,
        sha256="3" * 64,
        urls=("https://example.org/r.zip",),
    )
    tree = bench.run(FetchTable(substitutes={"r": other}), commit=head)
    assert "3" * 64 in (tree.path / "MODULE.bazel").read_text("utf-8")
    assert "1" * 64 in (tree.path / "WORKSPACE").read_text("utf-8")


@pytest.mark.medium
def test_a_change_of_one_patch_writes_only_the_files_that_differ(
    bench: Bench, patches: Path
) -> None:
    tree = bench.run().path
    kept = (tree / "configure").stat()
    bench.run(patches=("0001-up.patch",))
    assert (tree / "core/op.cc").read_text("utf-8") == "int up;\n"
    other = PATCH.replace("int up;", "int in;")
    (patches / "0001-up.patch").write_text(other, "utf-8")
    bench.run(patches=("0001-up.patch",))
    assert (tree / "core/op.cc").read_text("utf-8") == "int in;\n"
    assert (tree / "configure").stat().st_mtime_ns == kept.st_mtime_ns
    assert (tree / "configure").stat().st_ino == kept.st_ino


@pytest.mark.parametrize("harm", ["index.lock", "index", "HEAD", "objects/info/alternates"])
@pytest.mark.medium
def test_a_tree_whose_repository_was_damaged_is_made_from_nothing(bench: Bench, harm: str) -> None:
    first = bench.run()
    before = contents(first)
    (bench.job.places.own / "tree.git" / harm).write_bytes(b"damaged")
    (first.path / "core/op.cc").write_text("half", "utf-8")
    again = bench.run()
    assert (again, contents(again)) == (first, before)
    assert run_git("diff", "--name-only", cwd=first.path) == ""


@pytest.mark.medium
def test_another_commit_or_excluded_path_makes_the_tree_from_nothing(bench: Bench) -> None:
    bench.run()
    assert "testdata/big" in contents(bench.run(exclude=()))
    assert "testdata/big" not in contents(bench.run())


def test_a_patch_that_does_not_fit_leaves_no_half_patched_file(bench: Bench, patches: Path) -> None:
    (patches / "0002-at.patch").write_text(PATCH, "utf-8")
    with fails(RecipeError, "0002-at.patch", "hunk 1"):
        bench.run()
    assert not bench.job.places.tree.exists()


@pytest.mark.parametrize(
    ("exclude", "what"),
    [("core", r"The patch 0001-up\.patch"), ("third_party/nccl", r"The asset nccl\.h")],
)
def test_what_is_left_out_cannot_be_changed(bench: Bench, exclude: str, what: str) -> None:
    with pytest.raises(RecipeError, match=f"{what} changes .*, which source.exclude leaves out"):
        bench.run(exclude=(exclude,))


def test_an_asset_in_the_place_of_a_file_is_refused(bench: Bench) -> None:
    with fails(RecipeError, "core/op.cc"):
        bench.run(assets={"core/op.cc": "nccl.h"})


@pytest.mark.medium
def test_a_tree_that_somebody_changed_is_damaged_and_one_that_configure_edits_is_not(
    bench: Bench,
) -> None:
    tree = bench.run()
    (tree.path / MPI).write_text("OPEN = True\n", "utf-8")
    (tree.path / ".tf_configure.bazelrc").touch()
    assert bench.damage(tree) is None
    (tree.path / "core/op.cc").write_text("int other;\n", "utf-8")
    assert bench.damage(tree) == "core/op.cc changed in the tree"


@pytest.mark.medium
@pytest.mark.parametrize(
    "hiding",
    [
        ("add", "--all"),
        ("commit", "--quiet", "--all", "--message=mine"),
        ("update-index", "--assume-unchanged", "core/op.cc"),
        ("update-index", "--skip-worktree", "core/op.cc"),
    ],
)
def test_a_change_that_git_was_told_of_is_found_and_undone(
    bench: Bench, hiding: tuple[str, ...]
) -> None:
    tree = bench.run()
    before = contents(tree)
    (tree.path / "core/op.cc").write_text("int other;\n", "utf-8")
    run_git(*hiding, cwd=tree.path)
    assert bench.damage(tree) == "core/op.cc changed in the tree"
    assert bench.run() == tree
    assert contents(tree) == before
    assert bench.damage(tree) is None


@pytest.mark.medium
def test_attributes_that_somebody_wrote_into_a_tree_s_repository_are_not_obeyed(
    bench: Bench,
) -> None:
    tree = bench.run()
    before = contents(tree)
    for name in ("tree.git", "patched.git"):
        make_file(bench.job.places.own / name / "info/attributes", "* text eol=crlf\n")
    (tree.path / "core/op.cc").write_bytes(b"int at;\r\n")
    assert bench.damage(tree) == "tree.git/info/attributes changed"
    assert bench.run() == tree
    assert contents(tree) == before


@pytest.mark.medium
def test_settings_of_a_tree_s_repository_run_nothing_and_hide_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    tree = bench.run()
    hooks = tmp_path / "hooks"
    for name in ("post-checkout", "post-index-change", "fsmonitor"):
        make_program(hooks / name, f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(hooks / "fsmonitor"),
        "core.trustctime": "false",
        "core.checkStat": "minimal",
    }
    config = bench.job.places.own / "tree.git/config"
    for name, value in settings.items():
        run_git("config", f"--file={config}", name, value, cwd=tmp_path)
    operation = tree.path / "core/op.cc"
    state = operation.stat()
    operation.write_text("int up;\n", "utf-8")
    os.utime(operation, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert bench.damage(tree) == "core/op.cc changed in the tree"
    bench.run()
    assert operation.read_text("utf-8") == "int at;\n"
    assert not (tmp_path / "ran").exists()


def test_a_tree_that_lost_the_way_to_its_mirror_is_damaged_and_made_anew(
    bench: Bench, tmp_path: Path
) -> None:
    bench.table = bench.table.changed(patches=(), assets={})
    tree = bench.run()
    make_file(bench.job.places.own / "tree.git/objects/info/alternates", f"{tmp_path}\n")
    assert bench.damage(tree) == "tree.git is damaged"
    bench.run()
    assert bench.damage(tree) is None


def falsify(repository: Path, name: str, kind: str, content: bytes) -> None:
    """Put an object with other bytes under an id, as a loose file that git reads."""
    path = repository / "objects" / name[:2] / name[2:]
    path.unlink(missing_ok=True)
    make_file(path, zlib.compress(f"{kind} {len(content)}\0".encode() + content))


@pytest.mark.medium
@pytest.mark.parametrize("path", ["configure", "core/op.cc"])
def test_an_object_of_the_mirror_with_other_bytes_comes_into_no_tree(
    bench: Bench, path: str
) -> None:
    # One is checked out as it is, and a patch changes the other.
    name = run_git("rev-parse", f"HEAD:{path}", cwd=bench.inputs.mirror)
    falsify(bench.inputs.mirror, name, "blob", b"int op;\nint evil;\n")
    with fails(SupplyError, name, "vault --verify --repair"):
        bench.run()


@pytest.mark.medium
@pytest.mark.parametrize("what", ["HEAD:core", "HEAD^{tree}", "HEAD"])
def test_a_directory_or_commit_of_the_mirror_with_other_bytes_is_refused(
    bench: Bench, what: str
) -> None:
    mirror = bench.inputs.mirror
    name = run_git("rev-parse", what, cwd=mirror)
    commit(mirror.parent, {"core/other.cc": "int evil;\n"}, "two")
    kind = run_git("cat-file", "-t", name, cwd=mirror)
    stranger = subprocess.run(
        ["git", "cat-file", kind, run_git("rev-parse", what, cwd=mirror)],
        cwd=mirror,
        check=True,
        capture_output=True,
    ).stdout
    falsify(mirror, name, kind, stranger)
    # git compares the ids of some objects itself.
    with pytest.raises(TfwrightError, match=f"(object|mismatch) {name}") as caught:
        bench.run()
    assert "vault --verify --repair" in caught.value.remedy


@pytest.mark.medium
def test_an_object_of_a_tree_s_own_with_other_bytes_is_not_checked_out(bench: Bench) -> None:
    tree = bench.run()
    before = contents(tree)
    name = run_git("rev-parse", ":configure", cwd=tree.path)
    falsify(bench.job.places.own / "tree.git", name, "blob", b"#!/bin/evil\n")
    (tree.path / "configure").unlink()
    assert bench.run() == tree
    assert contents(tree) == before


def test_a_tree_that_is_gone_is_damaged(bench: Bench) -> None:
    tree = bench.run()
    (tree.path / ".git").unlink()
    assert bench.damage(tree) == "tree is gone"


def test_patches_and_assets_are_inputs_by_digest(bench: Bench, patches: Path) -> None:
    before = source.inputs(bench.table)
    assert set(before) == {"patches/0001-up.patch", "patches/0002-at.patch", "patches/nccl.h"}
    (patches / "nccl.h").write_text("", "utf-8")
    assert {
        name for name, digest in source.inputs(bench.table).items() if digest != before[name]
    } == {"patches/nccl.h"}


def test_the_plan_shows_the_commit_each_patch_and_the_assets(bench: Bench) -> None:
    steps = [str(step) for step in source.steps(bench.job, bench.table)]
    assert any(step.endswith(f"read-tree {bench.table.commit}") for step in steps)
    assert [step.rpartition("/")[2] for step in steps if " apply " in step] == [
        "0001-up.patch",
        "0002-at.patch",
    ]
    assert any("third_party/nccl/nccl.h" in step for step in steps)
