"""git in an environment of its own, and the trees that are checked out of its repositories."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder, make_program
from tests.upstream import commit, run_git

from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.tools import disk
from tfwright.tools.git import program
from tfwright.tools.git import repository as repositories
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.git.work_tree import WorkTree, repository_of


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Make a small repository with a program, a link and test data."""
    path = make_folder(tmp_path / "upstream/core").parent
    make_program(path / "configure", "#!/bin/sh\n")
    (path / "core/link").symlink_to("op.cc")
    texts = {"core/op.cc": "int op;\n", "core/testdata/big.bin": "big\n", ".gitignore": "*.rc\n"}
    commit(path, texts)
    return path


def prepared(upstream: Path, tree: Path, exclude: tuple[str, ...] = ()) -> WorkTree:
    made = WorkTree(tree)
    made.prepare(upstream / ".git", run_git("rev-parse", "HEAD", cwd=upstream), exclude)
    return made


def make_tree(upstream: Path, tree: Path, exclude: tuple[str, ...] = ()) -> Path:
    prepared(upstream, tree, exclude)
    WorkTree(tree).check_out(WorkTree(tree).content())
    return tree


def files_of(tree: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of everything in a tree but git's own file."""
    found = [path for path in tree.rglob("*") if path.name != ".git"]
    return {
        str(path.relative_to(tree)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in found
    }


@pytest.fixture
def tree(upstream: Path, tmp_path: Path) -> Path:
    return make_tree(upstream, tmp_path / "tree")


def test_none_of_the_callers_git_variables_or_configuration_reach_git(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_file(
        tmp_path / "config", "[core]\n\tautocrlf = true\n[user]\n\tname = somebody\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "somebody")
    told = GitRepository(upstream / ".git").run("config", "--list")
    assert "somebody" not in told
    assert "core.autocrlf=false" in told


def test_only_a_network_command_is_told_how_to_get_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    local = GitRepository(tmp_path).command("status").env
    assert ("https_proxy" in local, local["GIT_ALLOW_PROTOCOL"]) == (False, "")
    networked = GitRepository(tmp_path).command("fetch", env=program.network_variables()).env
    assert networked["https_proxy"] == "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "env"), [("file://{}", None), ("ext::touch made", program.network_variables())]
)
def test_what_is_no_network_command_reaches_no_file_and_no_transport_runs_a_command(
    upstream: Path, tmp_path: Path, url: str, env: dict[str, str] | None
) -> None:
    with fails(ToolError, f"transport '{url[: url.index(':')]}' not allowed"):
        program.run(GitRepository(tmp_path).command("ls-remote", url.format(upstream), env=env))


def test_what_git_complains_about_is_the_error(tmp_path: Path) -> None:
    with fails(ToolError, "fatal: not a git repository") as caught:
        GitRepository(tmp_path).run("rev-parse", "HEAD")
    assert caught.value.evidence.status == 128
    # The message quotes the line, which is not shown a second time below it.
    assert caught.value.evidence.lines == ()


def test_a_git_that_found_no_room_is_the_hosts_fault_though_it_does_not_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "NO_ROOM", 2**80)
    with fails(HostError):
        GitRepository(tmp_path).run("rev-parse", "HEAD")


def test_a_tree_has_the_files_modes_and_links_of_the_commit(tree: Path) -> None:
    assert (tree / "configure").stat().st_mode & 0o777 == 0o755
    assert (tree / "core/op.cc").stat().st_mode & 0o777 == 0o644
    assert (tree / "core/link").readlink() == Path("op.cc")
    assert WorkTree(tree).changed_files() == []


def test_a_trees_git_is_a_file_so_that_tensorflow_takes_it_for_an_export(tree: Path) -> None:
    assert (tree / ".git").is_file()
    assert run_git("status", "--porcelain", cwd=tree) == ""


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_tree_is_the_same_whatever_the_umask(
    upstream: Path, tree: Path, tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        other = make_tree(upstream, tmp_path / "other")
    finally:
        os.umask(before)
    assert files_of(other) == files_of(tree)
    assert other.stat().st_mode == tree.stat().st_mode


def test_a_tree_made_again_has_nothing_of_the_one_before(upstream: Path, tree: Path) -> None:
    before = files_of(tree)
    (tree / "core/op.cc").write_text("other", "utf-8")
    (tree / "junk").touch()
    (repository_of(tree) / "index.lock").touch()
    assert files_of(make_tree(upstream, tree)) == before


def test_paths_that_are_left_out_are_not_checked_out_and_count_as_unchanged(
    upstream: Path, tmp_path: Path
) -> None:
    tree = make_tree(upstream, tmp_path / "tree", exclude=("core/testdata", "core/o?.cc"))
    assert not (tree / "core/testdata").exists()
    assert (tree / "core/op.cc").exists()
    assert WorkTree(tree).changed_files() == []


def test_a_content_whose_left_out_file_is_nowhere_can_be_checked_out(
    upstream: Path, tmp_path: Path
) -> None:
    name = run_git("rev-parse", "HEAD:core/testdata/big.bin", cwd=upstream)
    (upstream / ".git/objects" / name[:2] / name[2:]).unlink()
    tree = make_tree(upstream, tmp_path / "tree", exclude=("core/testdata/big.bin",))
    WorkTree(tree).restore()
    assert (tree / "core/op.cc").read_text("utf-8") == "int op;\n"


def test_hooks_and_filters_of_a_repository_never_run(upstream: Path, tmp_path: Path) -> None:
    commit(upstream, {".gitattributes": "*.cc filter=evil\n"})
    run_git("config", "filter.evil.smudge", f"touch {tmp_path}/made", cwd=upstream)
    hook = upstream / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    make_program(hook, f"#!/bin/sh\ntouch {tmp_path}/made\n")
    make_tree(upstream, tmp_path / "tree")
    assert not (tmp_path / "made").exists()


def test_a_changed_a_missing_and_a_made_executable_file_are_seen_and_a_touched_one_is_not(
    tree: Path,
) -> None:
    os.utime(tree / ".gitignore")
    assert WorkTree(tree).changed_files() == []
    (tree / "core/op.cc").write_text("int up;\n", "utf-8")
    (tree / "core/link").unlink()
    (tree / ".gitignore").chmod(0o755)
    assert WorkTree(tree).changed_files() == [".gitignore", "core/link", "core/op.cc"]


def test_restoring_brings_the_patched_state_back_and_keeps_bazels_links_only(
    tree: Path, tmp_path: Path
) -> None:
    before = files_of(tree)
    outside = make_folder(tmp_path / "outside")
    (outside / "kept").touch()
    (tree / "bazel-out").symlink_to(outside)
    (tree / "core/include").symlink_to(outside)
    (tree / ".tf_configure.bazelrc").touch()
    (tree / "core/ignored.rc").touch()
    (tree / "configure").unlink()
    (tree / "core/op.cc").write_text("sed was here", "utf-8")
    WorkTree(tree).restore()
    (tree / "bazel-out").unlink()
    assert files_of(tree) == before
    assert (outside / "kept").exists()


def test_restoring_a_tree_whose_repository_is_gone_touches_no_other_repository(
    upstream: Path,
) -> None:
    (upstream / "sub").mkdir()
    (upstream / "untracked").touch()
    with fails(ToolError, "not a git repository"):
        WorkTree(upstream / "sub").restore()
    assert (upstream / "untracked").exists()


def test_a_file_is_added_under_a_new_path_though_git_ignores_it(
    upstream: Path, tmp_path: Path
) -> None:
    source, tree = tmp_path / "asset", tmp_path / "tree"
    source.write_bytes(b"line\r\n")
    prepared(upstream, tree).add("third_party/nccl/nccl.rc", source)
    WorkTree(tree).check_out(WorkTree(tree).content())
    assert (tree / "third_party/nccl/nccl.rc").read_bytes() == b"line\r\n"
    assert (tree / "third_party/nccl/nccl.rc").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "path",
    [
        "core/op.cc",
        "core",
        "core/link/nccl.h",
        "configure/nccl.h",
        ".git/config",
        "core/.GIT/x",
        "../out",
        "/out",
    ],
)
def test_a_file_is_not_added_over_another_or_through_a_link_or_into_git(
    upstream: Path, tmp_path: Path, path: str
) -> None:
    source, tree = tmp_path / "asset", tmp_path / "tree"
    source.touch()
    made = prepared(upstream, tree)
    with fails(RecipeError):
        made.add(path, source)


def test_trees_that_repeat_each_other_are_not_listed_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "LARGEST_LISTING", 1_000_000)
    repository = GitRepository(tmp_path / "bomb.git").make()
    name = repository.run("hash-object", "-w", os.devnull).strip()
    kind, mode = "blob", "100644"
    # Ten billion files in eleven objects.
    for _ in range(10):
        files = [f"{mode} {kind} {name}\t{number}" for number in range(10)]
        made = repository.collect("mktree", lines=files)
        name, kind, mode = made.decode().strip(), "tree", "040000"
    with fails(SupplyError, "1,000,000"):
        repository.entries(name)


@pytest.mark.parametrize("date", ["9" * 5000, "9" * 20, "-5", "abc"])
def test_a_commit_without_a_date_that_a_calendar_knows_is_refused(
    tmp_path: Path, date: str
) -> None:
    repository = GitRepository(tmp_path / "r.git").make()
    text = make_file(
        tmp_path / "commit",
        f"tree {repository.collect('mktree').decode().strip()}\n"
        f"author A <a> 1 +0000\ncommitter A <a> {date} +0000\n\nMessage\n",
    )
    made = repository.run("hash-object", "-t", "commit", "-w", "--literally", str(text)).strip()
    with fails(RecipeError):
        repository.epoch(made)


def test_entries_are_the_files_of_a_commit(upstream: Path) -> None:
    entries = GitRepository(upstream / ".git").entries("HEAD")
    assert {entry.path: entry.mode for entry in entries} == {
        ".gitignore": 0o100644,
        "configure": 0o100755,
        "core/link": 0o120000,
        "core/op.cc": 0o100644,
        "core/testdata/big.bin": 0o100644,
    }


def test_a_tree_has_the_bytes_of_the_commit_whatever_its_attributes_ask_for(tmp_path: Path) -> None:
    work, tree = tmp_path / "work", tmp_path / "tree"
    texts = {
        ".gitattributes": "* text eol=crlf ident filter=lfs\n"
        "*.u working-tree-encoding=UTF-16\n*.n working-tree-encoding=nonsense\n",
        "a.bat": "one\ntwo\n",
        "b.txt": "$Id$\n",
        "c.u": "three\n",
        "d.n": "four\n",
    }
    work.mkdir()
    run_git("init", "--quiet", cwd=work)
    for name, text in texts.items():
        (work / name).write_text(text, "utf-8")
        blob = run_git("hash-object", "-w", "--no-filters", name, cwd=work)
        run_git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", cwd=work)
    content = run_git("write-tree", cwd=work)
    pinned = run_git("commit-tree", content, "-m", "one", cwd=work)
    WorkTree(tree).prepare(work / ".git", pinned, ())
    WorkTree(tree).check_out(content)
    found = {name: (tree / name).read_bytes().decode() for name in texts}
    assert found == texts


def test_a_folder_has_no_text_and_neither_has_what_is_not_there(upstream: Path) -> None:
    names = ["HEAD:core", "HEAD:configure", "HEAD:absent", "HEAD:a\nb"]
    assert GitRepository(upstream / ".git").blobs(names) == {"HEAD:configure": "#!/bin/sh\n"}


def test_an_older_git_that_gives_up_at_one_file_is_asked_for_each(
    upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = GitRepository._objects

    def of_before_2_44(self: GitRepository, asked: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        if "HEAD:absent" in asked:
            raise ToolError("fatal: could not fetch", remedy="-")
        return whole(self, asked)

    monkeypatch.setattr(GitRepository, "_objects", of_before_2_44)
    found = GitRepository(upstream / ".git").blobs(["HEAD:configure", "HEAD:absent"])
    assert found == {"HEAD:configure": "#!/bin/sh\n"}


def test_a_damaged_object_does_not_count_as_a_repositorys_own(upstream: Path) -> None:
    repository = GitRepository(upstream / ".git")
    before = sorted(repository.loose_objects())
    damaged, swapped, other = (name for name, _ in before[:3])
    folder = upstream / ".git/objects"
    (folder / damaged[:2] / damaged[2:]).chmod(0o644)
    (folder / damaged[:2] / damaged[2:]).write_bytes(b"no object")
    (folder / swapped[:2] / swapped[2:]).chmod(0o644)
    (folder / swapped[:2] / swapped[2:]).write_bytes((folder / other[:2] / other[2:]).read_bytes())
    assert sorted(repository.loose_objects()) == [(damaged, False), (swapped, False), *before[2:]]


def test_a_disk_that_changes_what_is_checked_out_is_refused(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkTree, "changed_files", lambda _: ["core/OP.cc"])
    with fails(ToolError, "core/OP.cc", "lower"):
        make_tree(upstream, tmp_path / "other")


def test_a_difference_has_new_files_and_no_change_of_the_index(tree: Path) -> None:
    (tree / "core/op.cc").write_text("int other;\n", "utf-8")
    (tree / "core/new.cc").write_text("int fresh;\n", "utf-8")
    (tree / "core/left.cc").write_text("int left;\n", "utf-8")
    (tree / "configure").unlink()
    said = WorkTree(tree).difference(3, ("core/left.cc",))
    assert "+int other;" in said
    assert "+int fresh;" in said
    assert "deleted file" in said
    assert "left" not in said
