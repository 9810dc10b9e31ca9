"""What `invoke new` and `invoke port` say to do, done to the letter."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.making import find_text, make_folder
from tests.remedies.following import CommandLine, add, commands, write_recipe
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.recipes import writing

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("quick_pip")]

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


@pytest.fixture
def begun(upstream: Path, folder: Path) -> str:
    """Return the command that writes a recipe."""
    assert upstream.is_dir()
    return f"invoke new --os Linux --folder {shlex.quote(str(folder))}"


@pytest.fixture
def recipe(upstream: Path, folder: Path) -> Path:
    """Write a recipe to port."""
    path = folder / "small-r1.8.toml"
    pinned = run_git("rev-parse", "HEAD", cwd=upstream)
    return write_recipe(path, upstream, pinned, release="1.8")


@pytest.fixture
def ported(recipe: Path) -> str:
    """Return the command that ports the recipe."""
    return f"invoke port --recipe {shlex.quote(str(recipe))}"


RETYPED = [
    ("{new}", "--release nightly", r"(?:--release |v)([\d.]+\d(?:-rc\d)?)", "--release {shown}"),
    ("{new} --release 2.6 --python 3.8", "--cuda 99.9", r"have CUDA (\d+\.\d+)", "--cuda {shown}"),
    ("{mac} --release 1.8", "--cuda 11.2", r"the last one was ([\d.]+\d)", "--cuda {shown}"),
    ("{mac} --release 2.6", "--cuda 11.2", "leave out --gpu and --cuda", ""),
    ("{new} --release 1.8", "--python 3.12", r"takes Python ([23]\.\d+)", "--python {shown}"),
    ("{new}", "--release 1.8@{short}", r"1\.8@COMMIT", "--release {shown}"),
    ("{port}", "--to 'a b'", r"--to [\w.@]*\w", "{shown}"),
    ("{port}", "--to 1.12.7", r"\b[rv]1\.12[\w.-]*\b", "--to {shown}"),
]


@pytest.mark.parametrize(
    ("command", "wrong", "shows", "right"), RETYPED, ids=[" ".join(row[:2]) for row in RETYPED]
)
def test_an_option_is_written_as_is_shown(  # noqa: PLR0913, PLR0917 what is typed, and where
    shell: CommandLine,
    begun: str,
    ported: str,
    recipe: Path,
    command: str,
    wrong: str,
    shows: str,
    right: str,
) -> None:
    whole = recipes.read(str(recipe)).source.commit
    places = {"new": begun, "mac": begun.replace("Linux", "Darwin"), "port": ported}

    def clear() -> None:
        for written in set(recipe.parent.iterdir()) - {recipe}:
            written.unlink()

    fails, then = f"{command} {wrong}", f"{command} {right}"
    shell.retype(fails, shows, then, clear, commit=whole, short=whole[:9], **places)


@pytest.mark.parametrize("way", ["rename", "folder", "lint", "option"])
def test_a_recipe_that_exists_is_gone_on_with_or_makes_room(
    shell: CommandLine, begun: str, folder: Path, way: str
) -> None:
    command = f"{begun} --release 1.8"
    shell.succeeds(command)
    (path,) = folder.glob("*.toml")
    add(path, "# Mine.\n")
    remedy = shell.remedy(command, "rename")
    assert "# Mine." in path.read_text("utf-8")
    if way == "lint":
        lint = find_text(r"'(invoke lint [^']+)'", remedy)
        shell.succeeds(lint[1])
        return
    if way == "rename":
        path.rename(folder / "mine.toml")
        shell.succeeds(command)
        return
    if way == "folder":
        assert "--folder DIRECTORY" in remedy
        shell.succeeds(command.replace(str(folder), str(folder.parent)))
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


def test_a_gpu_gets_a_cuda_that_fits(
    shell: CommandLine, begun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"{begun} --release 1.8 --gpu 3.0"
    remedy = shell.remedy(f"{command} --cuda 12.8", "CUDA", "--cuda")
    (match,) = commands(remedy)
    capsys.readouterr()
    assert shell.status(match) in {0, 3}
    pins = capsys.readouterr().out.partition("A new recipe would pin")[2]
    listed = find_text(r"host\.cuda +(\d+\.\d+)", pins)
    shell.succeeds(f"{command} --cuda {listed[1]}")


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


# Another release


def test_a_recipe_of_our_own_tree_is_copied(shell: CommandLine, folder: Path) -> None:
    copied = f"invoke new --like demo --name own --folder {shlex.quote(str(folder))}"
    shell.succeeds(copied)
    own = shlex.quote(str(folder / "own.toml"))
    remedy = shell.remedy(f"invoke port --recipe {own} --to 1.12")
    typed = remedy.removeprefix("Copy the recipe instead: ")
    shell.succeeds(typed.replace("--name NAME", "--name mine"))
    assert "A copy of own" in (folder / "mine.toml").read_text("utf-8")


def test_a_ported_recipe_that_exists_is_moved(
    shell: CommandLine, ported: str, recipe: Path
) -> None:
    shell.succeeds(f"{ported} --to r1.12")
    shown = find_text(r"mv .*", shell.remedy(f"{ported} --to r1.12"))
    subprocess.run(shlex.split(shown[0]), check=True)
    assert recipe.with_name("small-r1.12.toml.old").is_file()
    shell.succeeds(f"{ported} --to r1.12")
