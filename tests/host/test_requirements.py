from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tfwright.host import cuda, requirements
from tfwright.host.findings import Finding
from tfwright.host.probes import Host, Installer
from tfwright.recipe import Recipe
from tfwright.settings import Settings

GOOD = Host("Linux", "x86_64", "2.36", "g++ (Debian) 12.2.0", git=True, npm=True, installer="apt-get", free=2**40)


def varied(recipe: Recipe, **tables: Mapping[str, object]) -> Recipe:
    """Return a recipe with some keys of some tables changed."""
    values = recipe.model_dump(mode="json")
    return Recipe.model_validate({**values, **{name: {**values[name], **keys} for name, keys in tables.items()}})


def with_cuda(recipe: Recipe, release: str = "1.8", **answers: str) -> Recipe:
    return varied(recipe, source={"release": release}, host={"cuda": "9.2", "cudnn": "7.2"}, configure={"answers": {"TF_NEED_CUDA": True, **answers}})


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def test_a_host_that_has_everything_gives_no_findings(recipe: Recipe) -> None:
    assert requirements.compare(recipe, Settings(), GOOD) == []


def test_a_recipe_for_another_system_is_blocked_from_configure_on_only(recipe: Recipe) -> None:
    finding = only(requirements.compare(varied(recipe, host={"system": "Darwin", "machine": "x86_64"}), Settings(), GOOD))
    assert finding.blocks == "configure"
    assert str(finding) == "this host is Linux-x86_64; wanted: Darwin-x86_64"


def test_another_machine_of_the_same_system_will_not_do(recipe: Recipe) -> None:
    finding = only(requirements.compare(varied(recipe, host={"machine": "x86_64"}), Settings(), replace(GOOD, machine="aarch64")))
    assert finding.found == "this host is Linux-aarch64"


def test_a_missing_python_says_how_to_get_and_how_to_name_one(recipe: Recipe) -> None:
    finding = only(requirements.compare(varied(recipe, host={"python": "3.2"}), Settings(), GOOD))
    assert finding.found == "no Python 3.2"
    assert "pyenv install 3.2" in finding.remedy
    assert "host file" in finding.remedy


def test_a_wrong_python_in_the_host_file_is_named(recipe: Recipe, tmp_path: Path) -> None:
    settings = Settings(pythons={"3.2": tmp_path / "python"})
    finding = only(requirements.compare(varied(recipe, host={"python": "3.2"}), settings, GOOD))
    assert finding.found == f"{tmp_path / 'python'} does not run"


@pytest.mark.parametrize(
    ("installer", "command"),
    [("apt-get", "sudo apt-get install g++"), ("dnf", "sudo dnf install gcc-c++"), ("xcode-select", "xcode-select --install"), ("", "Install g++.")],
)
def test_a_missing_compiler_names_the_command_of_this_system(recipe: Recipe, installer: Installer, command: str) -> None:
    finding = only(requirements.compare(recipe, Settings(), replace(GOOD, compiler="", installer=installer)))
    assert (finding.remedy, finding.blocks) == (command, "compile")


def test_a_missing_git_blocks_the_first_download(recipe: Recipe) -> None:
    finding = only(requirements.compare(recipe, Settings(), replace(GOOD, git=False)))
    assert (finding.remedy, finding.blocks) == ("sudo apt-get install git", "fetch")


def test_missing_cuda_and_cudnn_are_two_findings_at_the_recipes_places(recipe: Recipe, tmp_path: Path) -> None:
    wanted = with_cuda(recipe, CUDA_TOOLKIT_PATH=str(tmp_path / "cuda"), CUDNN_INSTALL_PATH=str(tmp_path / "cudnn"))
    found = [str(finding) for finding in requirements.compare(wanted, Settings(), GOOD)]
    assert found == [f"no CUDA at {tmp_path / 'cuda'}; wanted: CUDA 9.2", f"no cuDNN at {tmp_path / 'cudnn'}; wanted: cuDNN 7.2"]


def test_the_host_file_says_where_cuda_is(recipe: Recipe, tmp_path: Path) -> None:
    wanted = with_cuda(recipe, CUDA_TOOLKIT_PATH="/nowhere", CUDNN_INSTALL_PATH="/nowhere")
    assert requirements.compare(wanted, Settings(cuda=tmp_path, cudnn=tmp_path), GOOD) == []


def test_cudnn_is_looked_for_with_the_toolkit_by_default(recipe: Recipe, tmp_path: Path) -> None:
    assert cuda.cudnn(with_cuda(recipe), Settings(cuda=tmp_path)) == tmp_path


def test_the_first_of_the_later_releases_paths_is_the_toolkit(recipe: Recipe) -> None:
    assert cuda.toolkit(with_cuda(recipe, "1.14", TF_CUDA_PATHS="/usr/local/cuda-10.0,/usr"), Settings()) == Path("/usr/local/cuda-10.0")


def test_a_hermetic_release_needs_no_cuda_of_this_host(recipe: Recipe) -> None:
    assert requirements.compare(with_cuda(recipe, "2.20"), Settings(), GOOD) == []


def test_one_source_of_bazel_only_is_worth_a_note_but_blocks_nothing(recipe: Recipe) -> None:
    finding = only(requirements.compare(recipe, Settings(), replace(GOOD, npm=False)))
    assert finding.blocks == ""
    assert "[bazels]" in finding.remedy


def test_a_bazel_named_in_the_host_file_needs_no_second_source(recipe: Recipe, tmp_path: Path) -> None:
    assert requirements.compare(recipe, Settings(bazels={recipe.bazel.version: tmp_path}), replace(GOOD, npm=False)) == []


def test_little_room_is_a_note_that_names_the_place(recipe: Recipe, tmp_path: Path) -> None:
    finding = only(requirements.compare(recipe, Settings(build_out=tmp_path), replace(GOOD, free=3 * 2**30)))
    assert finding.found == f"3.0 GiB free at {tmp_path}"
    assert finding.blocks == ""


def test_a_bundled_tree_is_content_with_less_room(recipe: Recipe) -> None:
    bundled = varied(recipe, source={"url": "bundled:demo"})
    assert requirements.compare(bundled, Settings(), replace(GOOD, free=3 * 2**30)) == []
