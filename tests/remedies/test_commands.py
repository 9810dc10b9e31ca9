"""Commands of messages: of the recipe that they are about, and typed as they are shown."""

import shlex
from pathlib import Path

import pytest
from invoke.parser import Parser
from tests.remedies.following import CommandLine

from tfwright import tasks
from tfwright.documents.recipe import ROOT
from tfwright.errors import SupplyError, invoke
from tfwright.options import resuming
from tfwright.pipeline import engine
from tfwright.pipeline.results import Inputs

pytestmark = pytest.mark.medium


def options(command: str) -> dict[str, object]:
    """Return what invoke reads in a command."""
    words = shlex.split(command)[1:]
    (context,) = Parser(tasks.collection().to_contexts()).parse_argv(words)
    return {name: argument.value for name, argument in context.args.items()}


def stage(shell: CommandLine) -> str:
    """Return the stage in which the last command failed."""
    assert shell.fault
    return shell.fault.stage


@pytest.fixture
def failing_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each build fail in its fetch stage, with the remedy of a tool that knows no recipe."""

    def build(*_: object, **__: object) -> Inputs:
        fault = SupplyError("no", remedy=f"Run '{invoke('fetch')}' once.")
        fault.stage = "fetch"
        raise fault

    monkeypatch.setattr(engine, "build", build)


@pytest.fixture
def spaced(tmp_path: Path) -> Path:
    """Return a recipe whose path is two words of a shell."""
    path = tmp_path / "my recipes/demo.toml"
    path.parent.mkdir()
    text = (ROOT / "recipes/demo.toml").read_text("utf-8")
    path.write_text(text, "utf-8")
    (path.parent / "patches").symlink_to(ROOT / "patches")
    return path


@pytest.mark.usefixtures("failing_fetch")
@pytest.mark.parametrize(
    "command",
    [
        "build --until source --offline --jobs 3 --no-cache --verified-by 'Ada L'",
        "build",
        "bundle --output 'my bundle' --add one --add 'the two' --with-toolkit",
    ],
)
def test_a_command_is_resumed_with_what_it_was_given(
    shell: CommandLine, spaced: Path, tmp_path: Path, command: str
) -> None:
    for name in ("one", "the two"):
        (tmp_path / name).write_text("x", "utf-8")
        command = command.replace(name, str(tmp_path / name))
    typed = f"invoke {command} --recipe '{spaced}'"
    shell.remedy(typed)
    assert options(shell.resume) == options(typed)


@pytest.mark.usefixtures("failing_fetch")
def test_a_build_is_not_resumed_from_nothing(shell: CommandLine, spaced: Path) -> None:
    again = f"invoke build --recipe '{spaced}'"
    shell.remedy(f"{again} --fresh --again source")
    assert options(shell.resume) == options(again)


@pytest.mark.parametrize(
    "command",
    [
        "bundle --unpack 'a b' --into 'c d'",
        "nightly --recipe mine --now --wait",
        "bisect mine --good 1 --bad 2",
    ],
)
def test_what_goes_on_is_what_was_begun(command: str) -> None:
    given = {
        name: value
        for name, value in options(f"invoke {command}").items()
        if name in {"unpack", "into", "recipe", "now", "wait", "good", "bad"}
    }
    shown = resuming(command.partition(" ")[0], **given)  # type: ignore[arg-type]
    assert options(shown) == options(f"invoke {command}")


@pytest.mark.usefixtures("failing_fetch")
@pytest.mark.parametrize("command", ["lock", "bundle --output x"])
def test_the_commands_of_a_remedy_are_about_the_same_recipe(
    shell: CommandLine, spaced: Path, command: str
) -> None:
    remedy = shell.remedy(f"invoke {command} --recipe '{spaced}'")
    shown = remedy.removeprefix("Run '").removesuffix("' once.")
    assert options(shown)["recipe"] == str(spaced)


def test_no_recipe_is_named_where_the_command_is_about_none(shell: CommandLine) -> None:
    remedy = shell.remedy("invoke bundle --unpack /absent")
    assert "--recipe" not in remedy


@pytest.mark.usefixtures("failing_fetch")
def test_a_bundle_is_written_to_the_file_that_is_named(shell: CommandLine, tmp_path: Path) -> None:
    remedy = shell.remedy(f"invoke bundle --output {tmp_path}")
    option = remedy.removeprefix("Name the file to write: ").removesuffix(".")
    # Nothing was fetched before; now that comes, and fails here.
    assert stage(shell) == ""
    shell.remedy(f"invoke bundle {option}")
    assert stage(shell) == "fetch"


@pytest.mark.usefixtures("failing_fetch")
def test_what_is_added_to_a_bundle_is_a_file_of_its_own_name(
    shell: CommandLine, tmp_path: Path
) -> None:
    for name in ("one/cuda.run", "two/cuda.run"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x", "utf-8")
    begun = f"invoke bundle --output {tmp_path}/b"
    assert "Name a file" in shell.remedy(f"{begun} --add {tmp_path}/one")
    one, two = f"--add {tmp_path}/one/cuda.run", f"--add {tmp_path}/two/cuda.run"
    assert shell.remedy(f"{begun} {one} {two}").startswith("Rename all but one")
    (tmp_path / "two/cuda.run").rename(tmp_path / "two/other.run")
    shell.remedy(f"{begun} {one} --add {tmp_path}/two/other.run")
    assert stage(shell) == "fetch"
