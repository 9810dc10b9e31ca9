"""What is said of a build before it begins, done to the letter."""

import re
import shlex
import shutil
import threading
from pathlib import Path

import pytest
from tests.making import change_text, find_text, make_folder
from tests.remedies.following import CommandLine, add, commands, enter, write_recipe
from tests.upstream import commit

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import ROOT
from tfwright.lint import recipes as linting
from tfwright.pipeline import engine
from tfwright.tools.process import file_lock
from tfwright.tools.process.command import Command

pytestmark = pytest.mark.medium


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Return a recipe of a small tree; its path is two words of a shell."""
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": "", "op.cc": "1\n2\n"})
    path = tmp_path / "my recipes/small.toml"
    return write_recipe(path, tmp_path / "upstream", pinned)


def test_a_build_waits_for_another_one(shell: CommandLine, named: str, tmp_path: Path) -> None:
    command = f"invoke build {named} --until source"
    lock = tmp_path / "build_out/small/lock"
    with file_lock.locked(lock, "another"):
        remedy = shell.remedy(command)
    option = find_text(r"--wait", remedy)
    released = threading.Event()

    def hold() -> None:
        with file_lock.locked(lock, "another"):
            holding.set()
            released.wait(0.3)

    holding = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait()
    shell.succeeds(f"{command} {option[0]}")
    holder.join()


@pytest.mark.parametrize(
    ("wrong", "shows", "right"),
    [
        ("--jobs=none", "from 1 on", "--jobs=1"),
        ("--jobs=0", "or leave it out", ""),
        ("--jobs=-1", "from 1 on", "--jobs=1"),
        ("--verified-by ' '", "--verified-by '[^']*'", "{shown}"),
        ("--verified-by 'Ada\nLovelace'", "--verified-by '[^']*'", "{shown}"),
    ],
)
def test_an_option_is_written_as_is_shown(
    shell: CommandLine, named: str, wrong: str, shows: str, right: str
) -> None:
    build = f"invoke build {named} --until source"
    shell.retype(f"{build} {wrong}", shows, f"{build} {right}")


def test_a_shell_is_opened_in_a_stage_that_runs_programs(
    shell: CommandLine, recipe: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    became = list[Command]()
    monkeypatch.setattr(engine, "replace_process", became.append)
    remedy = shell.remedy(f"invoke shell {named} --stage check")
    stages = re.findall(r"\b[a-z]+\b", remedy.removeprefix("Choose "))
    assert len(stages) > 3
    command = f"invoke shell {named} --stage {stages[0]}"
    answers = shell.remedy(command, "header")
    enter(recipe, answers.partition(":\n")[2])
    (build,) = commands(shell.remedy(command))
    shell.succeeds(build)
    shell.succeeds(command)
    assert became[0].cwd.is_dir()
    for stage in set(stages) - {"or"}:
        assert engine.stage_named(stage)


@pytest.mark.parametrize("way", ["patches/ of the recipe", "correct its name"])
def test_a_patch_that_is_missing_is_added_or_named_right(
    shell: CommandLine, recipe: Path, named: str, way: str
) -> None:
    source = ROOT / "patches/demo"
    patch = next(source.glob("*.patch"))
    line = f'patches = ["demo/{patch.name}x"]'
    add(recipe, line, after='release = "1.12"')
    remedy = shell.remedy(f"invoke plan {named}")
    assert way.rsplit(maxsplit=1)[-1] in remedy
    own = make_folder(recipe.parent / "patches/demo")
    if way == "correct its name":
        shutil.copy(patch, own)
        change_text(recipe, ".patchx", ".patch")
    else:
        shutil.copy(patch, own / f"{patch.name}x")
    assert recipes.read(str(recipe)).source.patches


def test_a_file_with_a_name_for_no_recipe_is_renamed(shell: CommandLine, recipe: Path) -> None:
    wrong = recipe.rename(recipe.with_name("vault.toml"))
    command = f"invoke plan --until source --recipe {shlex.quote(str(wrong))}"
    assert shell.remedy(command) == "Rename the file."
    wrong.rename(recipe)
    shell.succeeds(command.replace("vault.toml", "small.toml"))


@pytest.mark.parametrize("way", ["target", "program", "until"])
def test_a_target_that_makes_no_wheel_is_corrected(recipe: Path, way: str) -> None:
    add(recipe, '[compile]\ntarget = "//op:lib"\n')

    def refused() -> list[str]:
        found = linting.lint(str(recipe))
        return [item.remedy for item in found if item.rule == "wheel"]

    (remedy,) = refused()
    if way == "target":
        target = find_text(r"Write target = \"(\S+)\"", remedy)
        change_text(recipe, "//op:lib", target[1])
        assert refused() == []
    elif way == "program":
        assert "in package.program" in remedy
        add(recipe, '[package]\nprogram = "make_wheel"\n')
        assert refused() == []
    else:
        option = find_text(r"--until (\w+)", remedy)
        assert engine.stage_named(option[1])
