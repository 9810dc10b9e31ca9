"""What `invoke new` and `invoke port` say to do, done to the letter."""

import re
import shlex
from pathlib import Path

import pytest
from tests.making import find_text, make_file, make_folder
from tests.remedies.following import CommandLine, add, commands, failing, write_recipe
from tests.upstream import commit, run_git

from tfwright.errors import RecipeError
from tfwright.port import patches
from tfwright.recipes import writing

pytestmark = pytest.mark.medium

SETUP = "tensorflow/tools/pip_package/setup.py"


@pytest.fixture
def upstream(shell: CommandLine, tmp_path: Path) -> Path:
    """Return a repository that stands for TensorFlow's, with some branches and tags."""
    folder = tmp_path / "upstream"
    commit(folder, {"WORKSPACE": ""})
    for branch in ("r1.8", "r1.12", "r2.6", "r2.99"):
        run_git("branch", branch, cwd=folder)
    for tag in ("v2.4.4", "v1.12.0", "v1.12.0-rc0"):
        run_git("tag", tag, cwd=folder)
    add(shell.host_file, f'[mirrors]\n"{writing.URL}" = "{folder}"\n')
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where recipes are written; its path is two words of a shell."""
    return make_folder(tmp_path / "my recipes")


def clear(folder: Path, *kept: Path) -> None:
    """Remove what was written into a folder."""
    for written in set(folder.iterdir()).difference(kept):
        written.unlink()


@pytest.fixture
def begun(upstream: Path, folder: Path) -> str:
    """Return the command that writes a recipe."""
    assert upstream.is_dir()
    return f"invoke new --os Linux --folder {shlex.quote(str(folder))}"


def test_a_release_is_written_as_is_shown(shell: CommandLine, begun: str, folder: Path) -> None:
    remedy = shell.remedy(f"{begun} --release nightly")
    shown = re.findall(r"(?:--release |v)[\d.]+\d(?:-rc\d)?", remedy)
    assert len(shown) == 3
    for release in shown:
        option = f"--release {release.removeprefix('--release ')}"
        shell.succeeds(f"{begun} {option}")
        clear(folder)


@pytest.mark.parametrize("way", ["rename", "delete", "lint", "option"])
def test_a_recipe_that_exists_is_gone_on_with_or_makes_room(
    shell: CommandLine, begun: str, folder: Path, way: str
) -> None:
    command = f"{begun} --release 1.8"
    shell.succeeds(command)
    remedy = shell.remedy(command, "delete")
    (path,) = folder.glob("*.toml")
    if way == "lint":
        lint = find_text(r"'(invoke lint [^']+)'", remedy)
        shell.succeeds(lint[1])
        return
    if way != "option":
        path.rename(folder / "mine.toml") if way == "rename" else path.unlink()
        shell.succeeds(command)
        return
    # A copy has a name of its own.
    shown = find_text(
        r"--name [\w.-]+\w", shell.remedy(f"invoke new --like {shlex.quote(str(path))} --name '!'")
    )
    shell.succeeds(f"invoke new --like {shlex.quote(str(path))} {shown[0]}")


def test_the_next_commands_are_typed_as_they_are_shown(
    shell: CommandLine, begun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    shell.succeeds(f"{begun} --release 1.8 --python 3.6")
    shown = re.findall(r"invoke lint --recipe .*", capsys.readouterr().err)
    assert shown
    shell.succeeds(shown[0])


def test_a_cuda_is_named_that_is_known_and_fits(
    shell: CommandLine, begun: str, folder: Path
) -> None:
    command = f"{begun} --release 2.6 --python 3.8"
    remedy = shell.remedy(f"{command} --cuda 99.9")
    known = remedy.removeprefix("Name one of ").removesuffix(".").split(", ")
    assert len(known) > 9
    for cuda in known[::4]:
        shell.succeeds(f"{command} --cuda {cuda}")
        clear(folder)


def test_a_gpu_gets_a_cuda_that_fits(
    shell: CommandLine, begun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"{begun} --release 1.8 --gpu 3.0"
    remedy = shell.remedy(f"{command} --cuda 12.8", "CUDA", "--cuda")
    (match,) = commands(remedy)
    capsys.readouterr()
    assert shell.status(match) in {0, 3}
    pins = capsys.readouterr().out.partition("A new recipe would pin")[2]
    listed = find_text(r"CUDA +(\d+\.\d+)", pins)
    shell.succeeds(f"{command} --cuda {listed[1]}")


@pytest.mark.parametrize("way", ["without", "older"])
def test_a_mac_gets_an_older_cuda_or_none(shell: CommandLine, begun: str, way: str) -> None:
    command = f"{begun.replace('Linux', 'Darwin')} --release 2.6"
    remedy = shell.remedy(f"{command} --cuda 11.2", "--gpu", "--cuda")
    last = find_text(r"the last one was ([\d.]+\d)", remedy)
    more = f" --cuda {last[1]}" if way == "older" else ""
    shell.succeeds(f"{command}{more}")


def test_a_python_is_one_that_the_release_takes(shell: CommandLine, begun: str) -> None:
    command = f"{begun} --release 1.8"
    remedy = shell.remedy(f"{command} --python 3.12")
    versions = re.findall(r"\b[23]\.\d+", remedy.partition("(")[0])
    assert versions
    shell.succeeds(f"{command} --python {versions[-1]}")


def test_what_no_table_knows_is_given(shell: CommandLine, begun: str) -> None:
    command = f"{begun} --release 2.99"
    assert "add --python VERSION" in shell.remedy(command)
    command += " --python 3.12"
    assert "add --bazel VERSION" in shell.remedy(command)
    shown = find_text(r"--bazel [\d.]+\d", shell.remedy(f"{command} --bazel x"))
    shell.succeeds(f"{command} {shown[0]}")


@pytest.mark.parametrize("way", ["commit", "release"])
def test_a_commit_is_of_the_release(
    shell: CommandLine, begun: str, upstream: Path, way: str
) -> None:
    one = commit(upstream, {SETUP: "_VERSION = '1.12.0'\n"})
    other = commit(upstream, {SETUP: "_VERSION = '1.8.0'\n"})
    shell.remedy(f"{begun} --release 1.8@{one}", "release")
    named = f"1.8@{other}" if way == "commit" else f"1.12@{one}"
    shell.succeeds(f"{begun} --release {named}")


def test_a_commit_is_written_with_all_its_letters(
    shell: CommandLine, begun: str, upstream: Path
) -> None:
    whole = run_git("rev-parse", "HEAD", cwd=upstream)
    remedy = shell.remedy(f"{begun} --release 1.8@{whole[:9]}", "1.8@COMMIT")
    shell.succeeds(f"{begun} --release {remedy[6:16].replace('COMMIT', whole)}")


# Another release


@pytest.fixture
def recipe(upstream: Path, folder: Path) -> Path:
    path = folder / "small-r1.8.toml"
    pinned = run_git("rev-parse", "HEAD", cwd=upstream)
    return write_recipe(path, upstream, pinned, release="1.8")


@pytest.fixture
def ported(recipe: Path) -> str:
    """Return the command that ports the recipe."""
    return f"invoke port --recipe {shlex.quote(str(recipe))}"


def test_a_recipe_of_our_own_tree_is_copied(shell: CommandLine, folder: Path) -> None:
    copied = f"invoke new --like demo --name own --folder {shlex.quote(str(folder))}"
    shell.succeeds(copied)
    own = shlex.quote(str(folder / "own.toml"))
    remedy = shell.remedy(f"invoke port --recipe {own} --to 1.12")
    shell.succeeds(remedy.removeprefix("Copy the recipe instead: "))
    assert "A copy of own" in (folder / "mine.toml").read_text("utf-8")


def test_a_name_of_a_release_is_written_as_is_shown(
    shell: CommandLine, ported: str, recipe: Path, upstream: Path
) -> None:
    remedy = shell.remedy(f"{ported} --to 'a b'")
    shown = re.findall(r"--to [\w.@]*\w", remedy)
    assert len(shown) == 3
    whole = run_git("rev-parse", "HEAD", cwd=upstream)
    for option in shown:
        shell.succeeds(f"{ported} {option.replace('COMMIT', whole)}")
        clear(recipe.parent, recipe)


@pytest.mark.parametrize("way", ["rename", "delete"])
def test_a_ported_recipe_that_exists_is_renamed_or_deleted(
    shell: CommandLine, ported: str, recipe: Path, way: str
) -> None:
    shell.succeeds(f"{ported} --to r1.12")
    assert way in shell.remedy(f"{ported} --to r1.12").casefold()
    made = recipe.with_name("small-r1.12.toml")
    if way == "rename":
        made.rename(recipe.with_name("other.toml"))
    else:
        made.unlink()
    shell.succeeds(f"{ported} --to r1.12")


def test_a_version_that_the_repository_lacks_is_named_otherwise(
    shell: CommandLine, ported: str, recipe: Path
) -> None:
    remedy = shell.remedy(f"{ported} --to 1.12.7")
    names = remedy.removeprefix("Name one that it has: ").removesuffix(".")
    assert names.split(", ") == ["r1.12", "v1.12.0", "v1.12.0-rc0"]
    for name in names.split(", "):
        shell.succeeds(f"{ported} --to {name}")
        clear(recipe.parent, recipe)


@pytest.mark.parametrize("way", ["Delete it", "rename it"])
def test_a_patch_that_is_in_the_way_of_a_port_is_deleted_or_renamed(
    tmp_path: Path, way: str
) -> None:
    patch, target = tmp_path / "r1.8/a.patch", tmp_path / "r1.12/a.patch"
    for path in (patch, target):
        make_file(path, "Why: a text\n")

    def port() -> None:
        patches.copy(patch, target, "0" * 40)

    failing(port, RecipeError, way)
    if way == "Delete it":
        target.unlink()
    else:
        target.rename(target.with_name("b.patch"))
    port()
    assert target.is_file()
