"""What `invoke patch` says to do, done to the letter."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.making import change_text, make_file
from tests.remedies.following import CommandLine, add, commands, write_recipe
from tests.upstream import commit, run_git

pytestmark = pytest.mark.medium

HEADER = "--why w --upstream none --drop-when later"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Return a recipe of a tree with a text and a picture; its path is two words of a shell."""
    make_file(tmp_path / "upstream/picture", bytes(99))
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": "", "op.cc": "1\n2\n"})
    path = tmp_path / "my recipes/small.toml"
    return write_recipe(path, tmp_path / "upstream", pinned)


@pytest.fixture
def begun(named: str) -> str:
    """Return the command that writes a patch, with the name that it needs."""
    return f"invoke patch why {named}"


@pytest.fixture
def tree(shell: CommandLine, recipe: Path, begun: str, tmp_path: Path) -> Path:
    """Let the tree be made by the command, which finds no edits in it yet."""
    made = tmp_path / "build_out/small/tree"
    shell.remedy(f"{begun} {HEADER}", "Edit the files")
    assert str(made) in str(shell.fault)
    assert recipe.is_file()
    return made


def edit(tree: Path) -> None:
    (tree / "op.cc").write_text("1\nedited\n", "utf-8")


def test_a_patch_gets_a_name_and_a_header(
    shell: CommandLine, begun: str, named: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(tree)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    remedy = shell.remedy(begun)
    options = re.findall(r"--[\w-]+", remedy)
    given = " ".join(f"{option} 'A sentence.'" for option in options)
    (shown,) = commands(shell.remedy(f"invoke patch '!' {named} {given}"))
    shell.succeeds(f"{shown} {given}")


@pytest.mark.parametrize("way", ["release >= 1.9", "upstream", "a sentence"])
def test_a_condition_is_written_as_is_shown(
    shell: CommandLine, begun: str, tree: Path, way: str
) -> None:
    edit(tree)
    command = f"{begun} --why w --upstream none --drop-when"
    remedy = shell.remedy(f"{command} 'release > =1'")
    (option,) = re.findall(r"--[\w-]+", remedy)
    assert option == "--drop-when"
    assert way in remedy
    written = {"upstream": f"upstream {'a' * 40}"}.get(way, way)
    shell.succeeds(f"{command} '{written}'")


@pytest.mark.parametrize("kind", ["new", "changed", "deleted", "both"])
def test_a_picture_is_left_out_of_a_patch(
    shell: CommandLine, begun: str, tree: Path, tmp_path: Path, kind: str
) -> None:
    edit(tree)
    if kind in {"changed", "both"}:
        (tree / "picture").write_bytes(bytes(98))
    if kind == "deleted":
        (tree / "picture").unlink()
    if kind in {"new", "both"}:
        (tree / "a picture").write_bytes(bytes(9))
    remedy = shell.remedy(f"{begun} {HEADER}")
    for command in re.findall(r"'(git [^']*)'", remedy):
        subprocess.run(shlex.split(command), check=True)
    if "Move a new one out of the tree" in remedy:
        assert "[source.assets]" in remedy
        (tree / "a picture").rename(tmp_path / "moved")
    shell.succeeds(f"{begun} {HEADER}")


@pytest.mark.parametrize("kind", ["renamed", "a link", "a picture"])
def test_a_patch_from_elsewhere_is_made_as_is_said(
    shell: CommandLine, recipe: Path, named: str, tmp_path: Path, kind: str
) -> None:
    work = tmp_path / "upstream"
    if kind == "renamed":
        (work / "op.cc").rename(work / "renamed.cc")
    elif kind == "a link":
        (work / "link").symlink_to("op.cc")
    else:
        (work / "new").write_bytes(bytes(9))
    run_git("add", "--all", cwd=work)
    patch = recipe.parent / "patches/main/0001-why.patch"
    patch.parent.mkdir(parents=True)

    def make(*command: str) -> None:
        diff = run_git(*command, "HEAD", cwd=work)
        head = "Why: w\nUpstream: none\nDrop when: later\n\n"
        patch.write_text(f"{head}{diff}\n", "utf-8")

    make("diff")
    add(recipe, 'patches = ["main/0001-why.patch"]', after='release = "1.12"')
    remedy = shell.remedy(f"invoke build {named} --until source")
    if again := re.search(r"'git (diff [^']*)'", remedy):
        make(*again[1].split())
    else:
        assert remedy.startswith("Leave it out of the patch")
        for name in ("link", "new"):
            run_git("rm", "-qf", "--ignore-unmatch", name, cwd=work)
        (work / "op.cc").write_text("1\nedited\n", "utf-8")
        make("diff")
    shell.succeeds(f"invoke build {named} --until source")


# A patch that is redone


@pytest.fixture
def redone(shell: CommandLine, named: str, tree: Path, tmp_path: Path) -> Path:
    """Write two patches, of which the first is being redone; return the tree for that."""
    for name, text in (("one", "edited"), ("two", "edited again")):
        (tree / "op.cc").write_text(f"1\n{text}\n", "utf-8")
        shell.succeeds(f"invoke patch {name} {named} {HEADER}")
        shell.succeeds(f"invoke build {named} --until source")
    shell.succeeds(f"invoke patch {named} --refresh 1")
    return tmp_path / "build_out/small/patch"


def test_a_patch_is_named_by_a_number_that_exists(
    shell: CommandLine, named: str, redone: Path
) -> None:
    remedy = shell.remedy(f"invoke patch {named} --refresh 7")
    numbers = re.findall(r"/0*(\d+)-", remedy)
    assert numbers == ["1", "2"]
    for number in numbers:
        shutil.rmtree(redone)
        shell.succeeds(f"invoke patch {named} --refresh {number}")


@pytest.mark.parametrize("way", ["write", "delete"])
def test_edits_that_are_not_written_are_written_or_deleted(
    shell: CommandLine, named: str, redone: Path, way: str
) -> None:
    # Nothing was edited yet, so that the tree may be for another patch.
    for number in (2, 1):
        shell.succeeds(f"invoke patch {named} --refresh {number}")
    (redone / "op.cc").write_text("1\nother\n", "utf-8")
    remedy = shell.remedy(f"invoke patch {named} --refresh 2")
    (write,) = commands(remedy)
    if way == "write":
        shell.succeeds(write)
        # The second patch changed a line of the first.
        remedy = shell.remedy(f"invoke patch {named} --refresh 2 --write")
    else:
        assert "Or delete that directory" in remedy
        shutil.rmtree(redone)
    shell.succeeds(f"invoke patch {named} --refresh 2")


def test_the_tree_of_another_patch_is_written_first(
    shell: CommandLine, named: str, redone: Path
) -> None:
    (redone / "op.cc").write_text("1\nother\n", "utf-8")
    (write,) = commands(shell.remedy(f"invoke patch {named} --refresh 2 --write"))
    shell.succeeds(write)


def test_a_patch_gets_a_tree_to_be_redone_in(shell: CommandLine, named: str, redone: Path) -> None:
    shutil.rmtree(redone)
    remedy = shell.remedy(f"invoke patch {named} --refresh 1 --write")
    shell.succeeds(remedy.removeprefix("Make it: "))
    assert (redone / "op.cc").is_file()


def test_what_did_not_fit_is_done_by_hand(shell: CommandLine, named: str, redone: Path) -> None:
    (redone / "op.cc").write_text("1\nother\n", "utf-8")
    shell.succeeds(f"invoke patch {named} --refresh 1 --write")
    shell.succeeds(f"invoke patch {named} --refresh 2")
    shell.remedy(f"invoke patch {named} --refresh 2 --write", "change")
    assert shell.fault
    assert shell.fault.evidence.lines == ["op.cc"]
    (redone / "op.cc").write_text("1\nedited again\n", "utf-8")
    shell.succeeds(f"invoke patch {named} --refresh 2 --write")
    shell.succeeds(f"invoke build {named} --until source")


def test_the_patch_before_is_redone_first(
    shell: CommandLine, named: str, redone: Path, recipe: Path
) -> None:
    patch = recipe.parent / "patches/main/0001-one.patch"
    change_text(patch, "-2\n", "-two\n")
    shutil.rmtree(redone)
    remedy = shell.remedy(f"invoke patch {named} --refresh 2")
    shell.succeeds(remedy.removeprefix("Redo that one first: "))
    for rejected in redone.rglob("*.rej"):
        rejected.unlink()
    (redone / "op.cc").write_text("1\nedited\n", "utf-8")
    shell.succeeds(f"invoke patch {named} --refresh 1 --write")
    shell.succeeds(f"invoke patch {named} --refresh 2")


def test_a_condition_that_is_in_the_patch_is_corrected_there(
    shell: CommandLine, named: str, redone: Path, recipe: Path
) -> None:
    patch = recipe.parent / "patches/main/0001-one.patch"
    text = patch.read_text("utf-8")
    patch.write_text(text.replace("later", "release > =1"), "utf-8")
    (redone / "op.cc").write_text("1\nother\n", "utf-8")
    command = f"invoke patch {named} --refresh 1 --write"
    assert f"'Drop when' of {patch} as" in shell.remedy(command)
    patch.write_text(text.replace("later", "release >= 1.9"), "utf-8")
    shell.succeeds(command)
