"""What `fetch`, `vault` and `lock` say to do about inputs, done to the letter."""

import hashlib
import re
import zipfile
from pathlib import Path

import pytest
from tests.making import Serve, make_folder
from tests.remedies.following import CommandLine, add, commands, write_recipe
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.tools import json_text

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("no_pauses")]

WORKSPACE = """\
load("@dep//:defs.bzl", "more")
http_archive(name = "dep", urls = ["http://127.0.0.1:9/dep.zip"], sha256 = "{sha256}")
more()
"""


def zipped(path: Path, text: str) -> str:
    """Write an archive with the file that WORKSPACE loads; return its checksum."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("defs.bzl"), text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """Return a folder with the archive, and with another one that could stand in for it."""
    folder = make_folder(tmp_path / "served")
    zipped(folder / "dep.zip", "def more(): pass\n")
    zipped(folder / "other.zip", "def more(): return\n")
    return folder


@pytest.fixture
def address(served: Path, serve: Serve) -> str:
    return serve(served)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def recipe(tmp_path: Path, served: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the only recipe of a checkout, named small; no server has its archive any more."""
    sha256 = digest(served / "dep.zip")
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": WORKSPACE.format(sha256=sha256)})
    path = tmp_path / "recipes/small.toml"
    monkeypatch.setattr(recipes, "RECIPES", path.parent)
    return write_recipe(path, tmp_path / "upstream", pinned)


def sources_left(shell: CommandLine, capsys: pytest.CaptureFixture[str], *options: str) -> int:
    """Return how many sources `vault --links` finds for the archive."""
    capsys.readouterr()
    shell.succeeds(f"invoke vault --links --recipe small --json {' '.join(options)}")
    (row,) = json_text.parse(capsys.readouterr().out)
    return int(row["left"])


@pytest.mark.parametrize("way", ["downloads", "sources", "substitute"])
def test_a_missing_archive_is_found_in_each_way_that_is_named(  # noqa: PLR0913, PLR0917
    shell: CommandLine,
    recipe: Path,
    served: Path,
    address: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    way: str,
) -> None:
    remedy = shell.remedy("invoke fetch --recipe small")
    assert sources_left(shell, capsys) == 0
    sha256 = digest(served / "dep.zip")
    if way == "downloads":
        assert f"[downloads] of {shell.host_file}" in remedy
        add(shell.host_file, f'[downloads]\n"http://127.0.0.1:9/" = "{address}"\n')
    elif way == "sources":
        assert "[[fetch.sources]]" in remedy
        (served / "dep.zip").rename(tmp_path / "dep.zip")
        run_git("init", "--quiet", cwd=served)
        blob = run_git("hash-object", "-w", tmp_path / "dep.zip", cwd=served)
        add(
            recipe,
            f'[[fetch.sources]]\nsha256 = "{sha256}"\ngit = "file://{served}"\nblob = "{blob}"\n',
        )
    else:
        assert "[fetch.substitutes]" in remedy
        add(
            recipe,
            f'[fetch.substitutes.dep]\nreason = "gone"\nreplaces = "{sha256}"\n'
            f'urls = ["{address}other.zip"]\n'
            f'sha256 = "{digest(served / "other.zip")}"\n',
        )
    (command,) = commands(remedy)
    shell.succeeds(command)
    assert sources_left(shell, capsys, "--deep") == 1


def test_a_substitute_of_another_archive_takes_the_lines_that_are_shown(
    shell: CommandLine, recipe: Path, served: Path, address: str
) -> None:
    before = recipe.read_text("utf-8")
    table = (
        f'reason = "gone"\nurls = ["{address}other.zip"]\n'
        f'sha256 = "{digest(served / "other.zip")}"\n'
    )
    add(recipe, f'[fetch.substitutes.dep]\nreplaces = "{"5" * 64}"\n{table}')
    shell.remedy("invoke fetch --recipe small")
    assert shell.fault
    shown = "\n".join(shell.fault.evidence.lines)
    recipe.write_text(f"{before}{shown}\n{table}", "utf-8")
    shell.succeeds("invoke fetch --recipe small")


def test_a_substitute_without_the_loaded_file_gets_one_that_has_it(
    shell: CommandLine, recipe: Path, served: Path, address: str
) -> None:
    with zipfile.ZipFile(served / "deep.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("dep-2/defs.bzl"), "def more(): pass")
    add(
        recipe,
        f'[fetch.substitutes.dep]\nreason = "gone"\nurls = ["{address}deep.zip"]\n'
        f'replaces = "{digest(served / "dep.zip")}"\n'
        f'sha256 = "{digest(served / "deep.zip")}"\n',
    )
    shell.remedy("invoke fetch --recipe small", "strip_prefix")
    add(recipe, 'strip_prefix = "dep-2"\n')
    shell.succeeds("invoke fetch --recipe small")


def dropping(shell: CommandLine, served: Path) -> None:
    """Let the archive be had."""
    add(shell.host_file, f'drop = "{served}"\n')


def test_a_changed_tree_fits_its_lock_after_the_command_that_is_named(
    shell: CommandLine, recipe: Path, served: Path, tmp_path: Path
) -> None:
    dropping(shell, served)
    shell.succeeds("invoke lock --recipe small")
    text = (tmp_path / "upstream/WORKSPACE").read_text("utf-8")
    moved = text.replace("127.0.0.1:9/", "127.0.0.1:10/")
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": moved}, "two")
    line = re.sub(r'commit = "\w+"', f'commit = "{pinned}"', recipe.read_text("utf-8"))
    recipe.write_text(line, "utf-8")
    (command,) = commands(shell.remedy("invoke fetch --recipe small"))
    shell.succeeds(command)
    shell.succeeds("invoke fetch --recipe small")


@pytest.mark.parametrize("damage", ["archive", "pack", "pin", "shallow", "packed-refs"])
@pytest.mark.usefixtures("recipe")
def test_what_is_damaged_is_removed_and_brought_by_the_commands_that_are_named(
    shell: CommandLine, served: Path, damage: str, tmp_path: Path
) -> None:
    dropping(shell, served)
    shell.succeeds("invoke lock --recipe small")
    (mirror,) = tmp_path.glob("build_out/git/*.git")
    (path,) = {
        "archive": tmp_path.glob("build_out/vault/repository_cache/**/file"),
        "pack": mirror.glob("objects/pack/*.pack"),
        "pin": mirror.glob("refs/pins/*"),
        "shallow": [mirror / "shallow"],
        "packed-refs": [mirror / "packed-refs"],
    }[damage]
    if path.exists():
        path.chmod(0o644)
    path.write_bytes(b"damaged")
    remedy = shell.remedy("invoke vault --verify")
    repair, fetch = commands(remedy)
    named = re.search(r": (--recipe small)\.$", remedy)
    assert named, remedy
    assert shell.remedy(repair).endswith(f": {named[1]}.")
    shell.succeeds(f"{fetch} {named[1]}")
    shell.succeeds("invoke vault --verify")
