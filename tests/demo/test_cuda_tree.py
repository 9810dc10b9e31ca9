"""The bundled tree with a CUDA kernel: its commit, its questions, and its wheel by a real nvcc."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.making import change_text, make_file
from tests.upstream import bundled_commit

from tfwright.configure.answers import UNKNOWN_PYTHON, complete
from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ROOT
from tfwright.tools.git import demo
from tfwright.wheel.inspect import inspection

RECIPE = recipes.read("demo-cuda")


def configure(folder: Path, typed: str) -> subprocess.CompletedProcess[str]:
    """Run the tree's own program with what a user would type."""
    program = demo.CUDA_TREE / "configure.py"
    return subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.medium
def test_the_recipe_pins_the_tree_as_it_is_bundled() -> None:
    assert RECIPE.source.commit == bundled_commit(demo.CUDA_URL)


def test_the_places_of_the_host_answer_the_questions_of_a_program_of_its_own() -> None:
    host = HostFile(cuda=Path("/opt/cuda"), compiler=Path("/opt/gcc-11"))
    answers = complete(RECIPE, host, UNKNOWN_PYTHON)
    assert answers["CUDA_TOOLKIT_PATH"] == "/opt/cuda"
    assert answers["GCC_HOST_COMPILER_PATH"] == "/opt/gcc-11"


def test_without_places_of_the_host_the_recipe_answers() -> None:
    answers = complete(RECIPE, HostFile(), UNKNOWN_PYTHON)
    assert answers["CUDA_TOOLKIT_PATH"] == "/usr/local/cuda"


def test_configure_writes_what_was_typed(tmp_path: Path) -> None:
    for file in ("bin/nvcc", "include/cuda_runtime.h", "lib64/libcudart_static.a", "gcc"):
        make_file(tmp_path / file, "")
    configure(tmp_path, f"y\n{tmp_path}\n7.5\n{tmp_path}/gcc\n")
    written = (tmp_path / ".bazelrc").read_text()
    assert f'build --action_env CUDA_TOOLKIT_PATH="{tmp_path}"\n' in written
    assert 'build --action_env TF_CUDA_COMPUTE_CAPABILITIES="7.5"\n' in written


def test_configure_names_the_file_that_a_toolkit_lacks(tmp_path: Path) -> None:
    done = configure(tmp_path, f"y\n{tmp_path}\n")
    assert done.returncode == 1
    assert f"Could not find {tmp_path}/bin/nvcc" in done.stderr


def built(folder: Path, architectures: str) -> subprocess.CompletedProcess[str]:
    """Build the recipe with other [verify] architectures; skip the test without a toolkit."""
    host = host_file.read().of(RECIPE)
    if not host.cuda or not host.compiler:
        pytest.skip("no nvcc: run 'invoke toolkit --recipe demo-cuda --licence-accepted' first")
    shutil.copy(recipes.RECIPES / "demo-cuda.toml", folder)
    stated = 'architectures = ["sm_70", "sm_86", "compute_86"]'
    change_text(folder / "demo-cuda.toml", stated, f"architectures = {architectures}")
    places = f'build_out = "{folder}/out"\ncuda = "{host.cuda}"\ncompiler = "{host.compiler}"\n'
    (folder / "host.toml").write_text(places, "utf-8")
    command = [sys.executable, "-m", "invoke", "build", "--recipe", f"{folder}/demo-cuda.toml"]
    environment = {**os.environ, "TFWRIGHT_HOST_FILE": str(folder / "host.toml")}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.real
@pytest.mark.slow
def test_the_wheel_holds_code_for_the_configured_gpus_and_no_other(tmp_path: Path) -> None:
    done = built(tmp_path, '["sm_70", "sm_86", "compute_86"]')
    assert done.returncode == 0, done.stderr
    summary = inspection.inspect(Path(done.stdout.strip()), None).summary
    assert summary is not None
    assert [*summary.gpu] == ["sm_70", "sm_86", "compute_86"]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("architectures", "complaint"),
    [('["sm_70", "sm_86", "sm_90", "compute_86"]', "sm_90"), ('["sm_86", "compute_86"]', "sm_70")],
    ids=["one is missing", "one is too many"],
)
def test_verify_refuses_other_architectures(
    tmp_path: Path, architectures: str, complaint: str
) -> None:
    done = built(tmp_path, architectures)
    assert done.returncode != 0
    assert complaint in done.stderr
