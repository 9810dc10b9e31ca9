"""What is said of git, its repositories and mirrors, done to the letter."""

import gzip
import re
import shlex
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.making import find_text, make_file, make_folder
from tests.remedies.following import CommandLine, commands, failing, write_recipe
from tests.tools.git import test_hostile as hostile
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import SourceTable
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.progress import SILENCE
from tfwright.rules.patched_tree import PatchedTree
from tfwright.tools.git import archive, clones, mirror, program
from tfwright.tools.git.archive import Pack
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.merging import Merge
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.remote import Remote
from tfwright.tools.git.work_tree import WorkTree

pytestmark = pytest.mark.medium

URL = "https://127.0.0.1:9/t.git"
"""A repository whose server is gone."""


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository of one commit."""
    folder = tmp_path / "upstream"
    commit(folder, {"WORKSPACE": "", "op.cc": "1\n2\n3\n"})
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "git")


def head(repository: Path) -> str:
    return run_git("rev-parse", "HEAD", cwd=repository)


def mirrored(remedy: str, url: str, place: Path, folder: Path) -> Origin:
    """Name a mirror as a remedy says; return who is asked then."""
    assert "in the host file: [mirrors]" in remedy
    path = make_file(folder / "host.toml", f'[mirrors]\n"{url}" = "{place}"\n')
    return Origin.of(load(path, HostFile).mirror_of(url) or url)


def brought(pin: Pin, store: Path, origin: Origin | None = None) -> Path:
    named = origin or Origin.of(pin.url)
    return mirror.fetch(pin, store, named, SILENCE, offline=False)


@pytest.mark.parametrize("before", [None, "echo git version 2.25.1"])
def test_the_git_that_is_named_is_installed(
    programs: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str | None,
) -> None:
    installed = shutil.which("git")
    monkeypatch.setattr("tfwright.tools.process.command.SYSTEM_PATH", (str(tmp_path / "bin"),))
    if before:
        programs(git=before)

    def make() -> None:
        with mirror.locked_repository(tmp_path / "m.git", "test"):
            pass

    fault = failing(make, HostError)
    least = re.fullmatch(r"Install git (\d+)\.(\d+) or newer\.", fault.remedy)
    assert least
    (tmp_path / "bin/git").unlink(missing_ok=True)
    (tmp_path / "bin/git").symlink_to(str(installed))
    has = find_text(r"(\d+)\.(\d+)", run_git("version", cwd=tmp_path))
    assert tuple(map(int, has.groups())) >= tuple(map(int, least.groups()))
    make()


# Who is asked


def test_a_server_that_is_gone_or_goes_on_for_ever_gets_a_mirror(
    upstream: Path, store: Path
) -> None:
    wanted = Clone(URL, head(upstream))
    fault = failing(
        lambda: clones.fetch(wanted, store, Origin.of(URL), offline=False), SupplyError, "network"
    )
    named = mirrored(fault.remedy, URL, upstream, store)
    assert clones.fetch(wanted, store, named, offline=False)
    # Without the network it is here now.
    assert clones.fetch(wanted, store, Origin.of(URL), offline=True)


def test_a_clone_that_is_not_here_is_fetched_once(upstream: Path, store: Path) -> None:
    wanted = Clone(f"file://{upstream}", head(upstream))
    bring = partial(clones.fetch, wanted, store, Origin.of(wanted.remote))
    fault = failing(lambda: bring(offline=True), SupplyError)
    # What builds completes the command with the recipe; it brings clones as this does.
    assert commands(fault.remedy) == ["invoke fetch"]
    bring(offline=False)
    assert bring(offline=True)


def test_a_commit_that_a_repository_lacks_comes_from_a_mirror_that_has_it(
    upstream: Path, store: Path, tmp_path: Path
) -> None:
    shutil.copytree(upstream, tmp_path / "behind")
    behind, pinned = f"file://{tmp_path}/behind", commit(upstream, {"a": "b"})
    wanted = Clone(behind, pinned)
    fault = failing(
        lambda: clones.fetch(wanted, store, Origin.of(behind), offline=False), SupplyError
    )
    named = mirrored(fault.remedy, behind, upstream, store)
    assert clones.fetch(wanted, store, named, offline=False)
    pin = Pin(behind, "main", pinned)
    fault = failing(lambda: brought(pin, store), SupplyError)
    named = mirrored(fault.remedy, behind, upstream, store)
    assert brought(pin, store, named)


@pytest.mark.parametrize("way", ["Correct [source]", "[mirrors]"])
def test_a_commit_off_the_branch_of_an_old_server_is_corrected_or_mirrored(
    upstream: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    pinned = commit(upstream, {"a": "b"})
    shutil.copytree(upstream, tmp_path / "whole")
    run_git("reset", "-q", "--hard", "HEAD~1", cwd=upstream)
    run_git("config", "uploadpack.allowAnySHA1InWant", "false", cwd=upstream)
    old = make_file(
        tmp_path / "gitconfig", f"{program.CONFIG.read_text()}[protocol]\n\tversion = 0\n"
    )
    # Servers of before 2018 give the tips of branches, and nothing else.
    monkeypatch.setattr(program, "CONFIG", old)
    pin = Pin(f"file://{upstream}", "main", pinned)
    fault = failing(lambda: brought(pin, store), SupplyError, "branch", way)
    if way == "[mirrors]":
        whole = tmp_path / "whole"
        assert brought(pin, store, mirrored(fault.remedy, pin.url, whole, store))
    else:
        assert brought(Pin(pin.url, "main", head(upstream)), store)


def test_names_that_a_server_does_not_say_are_asked_of_a_mirror(
    upstream: Path, store: Path
) -> None:
    def newest(origin: Origin) -> str:
        return Remote(store, origin.address).head("main")

    gone = f"file://{upstream}-gone"
    fault = failing(lambda: newest(Origin.of(gone)), SupplyError)
    assert newest(mirrored(fault.remedy, gone, upstream, store)) == head(upstream)


@pytest.mark.parametrize("way", ["a mirror", "excluded"])
def test_files_that_a_mirror_lacks_come_from_another_or_are_left_out(
    upstream: Path, store: Path, tmp_path: Path, way: str
) -> None:
    partial_clone = tmp_path / "partial.git"
    run_git("config", "uploadpack.allowFilter", "true", cwd=upstream)
    run_git(
        "clone",
        "-q",
        "--bare",
        "--filter=blob:none",
        f"file://{upstream}",
        partial_clone,
        cwd=tmp_path,
    )
    # It is what it has that counts, not what it could ask for.
    run_git("remote", "remove", "origin", cwd=partial_clone)
    pin = Pin(URL, "main", head(upstream))
    named = Origin.of(str(partial_clone))
    fault = failing(lambda: brought(pin, store, named), SupplyError)
    if way == "a mirror":
        named = mirrored(fault.remedy, URL, upstream, store)
    else:
        line = find_text(r"\[source\]: exclude = (\[.*\])", fault.remedy)
        leaving = tuple(re.findall(r'"([^"]*)"', line[1]))
        pin = Pin(URL, "main", pin.commit, leaving)
    assert brought(pin, store, named)


@pytest.mark.parametrize("name", ["HEAD^{tree}", "HEAD:op.cc"])
def test_what_is_no_commit_gives_way_to_one_of_the_branch(
    upstream: Path, store: Path, name: str
) -> None:
    wrong = run_git("rev-parse", name, cwd=upstream)
    run_git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=upstream)
    pin = Pin(f"file://{upstream}", "main", wrong)
    brought(Pin(pin.url, "main", head(upstream)), store)
    fault = failing(lambda: brought(pin, store), RecipeError)
    (command,) = re.findall(r"'(git [^']*)'", fault.remedy)
    said = run_git(*shlex.split(command)[1:], cwd=store)
    assert brought(Pin(pin.url, "main", said.split()[0]), store)


def test_a_commit_without_a_date_gives_way_to_another(
    shell: CommandLine, upstream: Path, tmp_path: Path
) -> None:
    content = run_git("cat-file", "commit", "HEAD", cwd=upstream)
    undated = make_file(tmp_path / "undated", re.sub(r"> \d+ ", "> 9999999999999 ", content))
    write = ("hash-object", "-w", "-t", "commit", "--literally", undated)
    wrong = run_git(*write, cwd=upstream)
    run_git("update-ref", "refs/heads/undated", wrong, cwd=upstream)
    path = tmp_path / "recipes/small.toml"
    write_recipe(path, upstream, wrong)
    command = f"invoke fetch --recipe {path}"
    assert shell.remedy(command).startswith("Pin another commit")
    write_recipe(path, upstream, head(upstream))
    shell.succeeds(command)


@pytest.fixture
def mine(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only recipe of a checkout, named small; it has files with rules."""
    pinned = commit(upstream, {"WORKSPACE": "x = 1\n" * 99})
    path = tmp_path / "recipes/small.toml"
    monkeypatch.setattr(recipes, "RECIPES", path.parent)
    return write_recipe(path, upstream, pinned)


def damage_blob(repository: Path, name: str) -> None:
    """Change a byte of an object in the only pack of a repository."""
    (pack,) = repository.glob("objects/pack/*.pack")
    listed = run_git("verify-pack", "-v", pack, cwd=repository)
    row = next(line for line in listed.splitlines() if line.startswith(name))
    _, _, _, size, offset = map(str, row.split()[:5])
    content = bytearray(pack.read_bytes())
    content[int(offset) + int(size) - 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(content)


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("damage", ["a file", "the settings"])
def test_a_damaged_mirror_is_removed_and_fetched_by_the_commands_that_are_named(
    shell: CommandLine, tmp_path: Path, upstream: Path, damage: str
) -> None:
    shell.succeeds("invoke fetch --recipe small")
    (kept,) = tmp_path.glob("build_out/git/*.git")
    if damage == "a file":
        name = run_git("rev-parse", "HEAD:WORKSPACE", cwd=upstream)
        damage_blob(kept, name)
    else:
        (kept / "shallow").write_bytes(b"damaged")
    shutil.rmtree(tmp_path / "build_out/small")
    remedy = shell.remedy("invoke fetch --recipe small")
    verify, *fetch = commands(remedy)
    if fetch:
        assert shell.status(verify) != 0
    else:
        # It is to be named before --repair is added.
        named = find_text(r"if it names (\S+), add (--repair)", remedy)
        shell.remedy(verify)
        assert shell.fault
        assert any(named[1] in line for line in shell.fault.evidence.lines)
        fetch = commands(shell.remedy(f"{verify} {named[2]}"))
    for command in fetch:
        shell.succeeds(command if "--recipe" in command else f"{command} --recipe small")
    shell.succeeds("invoke vault --verify")


# Archives


@pytest.fixture
def shallow(upstream: Path, tmp_path: Path) -> Path:
    """Return a mirror of the last of two commits."""
    commit(upstream, {"op.cc": "new\n"})
    run_git("config", "uploadpack.allowFilter", "true", cwd=upstream)
    place = tmp_path / "shallow.git"
    run_git("clone", "-q", "--bare", "--depth=1", f"file://{upstream}", place, cwd=tmp_path)
    return place


@pytest.mark.parametrize("kind", ["a commit", "a file"])
def test_the_whole_repository_is_fetched_into_a_mirror(
    shallow: Path, upstream: Path, tmp_path: Path, kind: str
) -> None:
    if kind == "a commit":
        ref = run_git("rev-parse", "HEAD~1", cwd=upstream)
        write: Callable[[Path, Path], object] = partial(
            archive.write_archive, Pack(URL, ref, "a/", form="tar")
        )
    else:
        blob = run_git("rev-parse", "HEAD~1:op.cc", cwd=upstream)
        write = partial(archive.write_blob, blob)
    target = tmp_path / "made"
    fault = failing(lambda: write(shallow, target), SupplyError)
    assert fault.remedy == "Fetch the whole repository into the mirror."
    run_git("fetch", "-q", "--unshallow", cwd=shallow)
    write(shallow, target)
    assert b"1\n2\n3\n" in target.read_bytes()


@pytest.mark.parametrize("way", ["a mirror", "excluded"])
def test_a_packed_commit_comes_from_a_mirror_that_has_its_files_or_leaves_them_out(
    upstream: Path, tmp_path: Path, way: str
) -> None:
    blob = run_git("rev-parse", "HEAD:op.cc", cwd=upstream)
    partial_mirror = tmp_path / "partial"
    shutil.copytree(upstream / ".git", partial_mirror)
    (partial_mirror / f"objects/{blob[:2]}/{blob[2:]}").unlink()
    wanted, target = Pack(URL, head(upstream), "a/"), tmp_path / "made"
    fault = failing(
        lambda: archive.write_archive(wanted, partial_mirror, target), SupplyError, "mirror"
    )
    if way == "a mirror":
        archive.write_archive(wanted, upstream / ".git", target)
    else:
        line = find_text(r"exclude = \[(.*)\]", fault.remedy)
        leaving = tuple(re.findall(r'"([^"]*)"', line[1]))
        wanted = Pack(URL, wanted.ref, "a/", leaving)
        archive.write_archive(wanted, partial_mirror, target)
    assert target.stat().st_size > 0


def test_a_compressor_is_installed(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(tmp_path / "bin")
    (folder / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setattr(archive, "SYSTEM_PATH", (str(folder),))
    pack = partial(
        archive.write_archive, Pack(URL, "HEAD", "a/"), upstream / ".git", tmp_path / "made"
    )
    fault = failing(pack, SupplyError)
    (program,) = re.findall(r"Install (\w+)\.", fault.remedy)
    (folder / program).symlink_to(str(shutil.which(program)))
    pack()
    assert gzip.decompress((tmp_path / "made").read_bytes())


serve = hostile.serve


def test_a_server_that_does_not_give_a_commit_gives_way_to_a_mirror(
    serve: hostile.Serve, upstream: Path, store: Path
) -> None:
    address, ref = serve(fetch=hostile.other_object), head(upstream)
    fault = failing(lambda: archive.repository_with(ref, Origin(address), store), SupplyError)
    named = mirrored(fault.remedy, address, upstream, store)
    assert archive.repository_with(ref, named, store) == upstream / ".git"


# Patches


DIFF = """\
diff --git a/{path} b/{path}
--- a/{path}
+++ b/{path}
@@ -1,3 +1,3 @@
 1
-2
+two
 3
"""
HEADER = "Why: w\nUpstream: none; x\nDrop when: later\n\n"


@pytest.fixture
def patched(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """Return what applies a patch to the commit of `upstream`."""
    monkeypatch.setattr(recipes, "PATCHES", tmp_path)

    def apply(text: str) -> str:
        (tmp_path / "1.patch").write_text(f"{HEADER}{text}", "utf-8")
        table = SourceTable(
            url=f"file://{upstream}",
            branch="main",
            commit=head(upstream),
            release="1.8",
            patches=("1.patch",),
        )
        scratch = tmp_path / "scratch"
        WorkTree(scratch).discard()
        return PatchedTree(scratch, table, upstream / ".git", table.commit).apply_all()

    return apply


@pytest.mark.parametrize("kind", ["two sections", "a link"])
def test_a_patch_that_git_reads_otherwise_is_made_by_git(
    upstream: Path, patched: Callable[[str], str], kind: str
) -> None:
    (upstream / "link").symlink_to("op.cc")
    commit(upstream)
    once = DIFF.format(path="op.cc")
    again = once.replace(" 1\n", "-1\n+one\n").replace("-2\n+two\n", " two\n")
    text = once + again
    if kind == "a link":
        text = """\
diff --git a/link b/link
--- a/link
+++ b/link
@@ -1 +1 @@
-op.cc
\\ No newline at end of file
+WORKSPACE
\\ No newline at end of file
"""
    remedy = failing(lambda: patched(text), RecipeError).remedy
    shown = find_text(r"'git (diff)' .* one section for each file", remedy)
    (upstream / "op.cc").write_text("one\ntwo\n3\n", "utf-8")
    if kind == "a link":
        (upstream / "link").unlink()
        (upstream / "link").symlink_to("WORKSPACE")
        made = run_git(shown[1], "HEAD", cwd=upstream)
        remedy = failing(lambda: patched(f"{made}\n"), RecipeError).remedy
        assert remedy.startswith("Leave it out of the patch")
        run_git("checkout", "-q", "--", "link", cwd=upstream)
    made = run_git(shown[1], "HEAD", cwd=upstream)
    assert patched(f"{made}\n")


@pytest.mark.parametrize("way", ["left out", "named itself"])
def test_a_file_behind_a_link_is_left_out_of_a_patch_or_named_itself(
    upstream: Path, tmp_path: Path, way: str
) -> None:
    base = head(upstream)
    (upstream / "op.cc").rename(upstream / "moved.cc")
    (upstream / "op.cc").symlink_to("moved.cc")
    tree, patch = tmp_path / "tree", tmp_path / "1.patch"
    WorkTree(tree).prepare(upstream / ".git", commit(upstream), ())
    WorkTree(tree).check_out(WorkTree(tree).content())
    patch.write_text(DIFF.format(path="op.cc"), "utf-8")

    def merge() -> list[str]:
        return Merge(tree, upstream / ".git", base, print).apply_patch(patch)

    failing(merge, RecipeError, "patch")
    text = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+1\n"
    if way == "named itself":
        text = DIFF.format(path="moved.cc")
    patch.write_text(text, "utf-8")
    assert merge() == []
