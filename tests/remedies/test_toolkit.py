"""What `invoke toolkit` says to do, done to the letter."""

import hashlib
import re
from pathlib import Path

import pytest
from tests.making import find_text, make_file
from tests.remedies.following import CommandLine, add, write_recipe
from tests.toolkit.test_providing import CUDAS, CUDNN_WHEEL, CUDNNS
from tests.upstream import commit

pytestmark = pytest.mark.medium


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": ""})
    path = write_recipe(tmp_path / "small.toml", tmp_path / "upstream", pinned)
    add(path, 'cuda = "10.1"\ncudnn = "7.6"', after='python = "any"')
    add(path, "[configure.answers]\nTF_NEED_CUDA = true\n")
    return path


@pytest.fixture
def cudnn(tmp_path: Path) -> Path:
    """Return an archive of cuDNN 7.6, as NVIDIA packs it."""
    return make_file(tmp_path / "cudnn.tgz", CUDNNS["7, Linux"])


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("way", ["option", "recipe"])
def test_an_archive_is_installed_with_the_options_that_are_asked_for(
    shell: CommandLine, recipe: Path, cudnn: Path, way: str
) -> None:
    command = f"invoke toolkit --recipe {recipe} --cudnn {cudnn}"
    remedy = shell.remedy(command)
    option = re.search(r"--cudnn-sha256 \w+", remedy)
    line = re.search(r'(\[host\.sha256\]) (cudnn = "\w+")', remedy)
    assert option
    assert line
    if way == "option":
        command += f" {option[0]}"
    else:
        add(recipe, f"{line[1]}\n{line[2]}\n")
    remedy = shell.remedy(command, "--licence-accepted")
    shell.succeeds(f"{command} --licence-accepted")


def test_a_part_without_a_version_gets_one(shell: CommandLine, recipe: Path, cudnn: Path) -> None:
    text = recipe.read_text("utf-8").replace('cudnn = "7.6"\n', "")
    recipe.write_text(text, "utf-8")
    command = (
        f"invoke toolkit --recipe {recipe} --cudnn {cudnn} --licence-accepted "
        f"--cudnn-sha256 {sha256(cudnn.read_bytes())}"
    )
    remedy = shell.remedy(command)
    line = re.search(r'\[host\] (cudnn = )"VERSION"', remedy)
    assert line, remedy
    recipe.write_text(text.replace('cuda = "10.1"\n', f'cuda = "10.1"\n{line[1]}"7.6"\n'), "utf-8")
    shell.succeeds(command)


def test_another_file_is_given_where_it_holds_something_else(
    shell: CommandLine, recipe: Path, cudnn: Path, tmp_path: Path
) -> None:
    right = cudnn.read_bytes()
    cudnn.write_bytes(CUDAS["macOS"])

    def command() -> str:
        digest = sha256(cudnn.read_bytes())
        return (
            f"invoke toolkit --recipe {recipe} --cudnn {cudnn} --licence-accepted "
            f"--cudnn-sha256 {digest}"
        )

    remedy = shell.remedy(command())
    named = find_text(r"'(invoke [^']*)' says which", remedy)
    shell.succeeds(named[1])
    assert "Download it" in shell.remedy(command().replace(str(cudnn), f"{tmp_path}/none"))
    cudnn.write_bytes(right)
    shell.succeeds(command())


@pytest.mark.parametrize("already", [True, False])
def test_a_pinned_package_is_put_into_the_drop_folder(
    shell: CommandLine, recipe: Path, tmp_path: Path, *, already: bool
) -> None:
    content, drop = CUDNNS["wheel"], tmp_path / "drop"
    drop.mkdir()
    add(recipe, f'[toolkit.cudnn]\nwheels = {{ "{CUDNN_WHEEL}" = "{sha256(content)}" }}\n')
    if already:
        add(shell.host_file, f'drop = "{drop}"\n')
    command = f"invoke toolkit --recipe {recipe} --offline"
    remedy = shell.remedy(command)
    line = re.search(r'(drop = )"/path/to/folder"', remedy)
    if already:
        assert f"into {drop};" in remedy
    else:
        assert line
        add(shell.host_file, f'{line[1]}"{drop}"\n')
    (drop / "any name").write_bytes(content)
    shell.succeeds(command)


def test_other_packages_are_taken_after_the_command_that_is_named(
    shell: CommandLine, recipe: Path, tmp_path: Path
) -> None:
    content = CUDNNS["wheel"]
    (tmp_path / "file").write_bytes(content)
    add(shell.host_file, f'drop = "{tmp_path}"\n')
    wheels = f'wheels = {{ "{CUDNN_WHEEL}" = "{sha256(content)}" }}\n'
    add(recipe, f"[toolkit.cudnn]\n{wheels.replace('manylinux1', 'manylinux2')}")
    shell.succeeds(f"invoke lock --recipe {recipe}")
    text = recipe.read_text("utf-8").replace("manylinux2", "manylinux1")
    recipe.write_text(text, "utf-8")
    command = f"invoke toolkit --recipe {recipe} --offline"
    named = find_text(r"run '(invoke [^']*)'", shell.remedy(command))
    shell.succeeds(named[1])
    shell.succeeds(command)
