"""The bundled tree built by real Bazels, without a network, and run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.making import make_folder

from tfwright import tools
from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.tools import files
from tfwright.tools.process.command import clean_environment
from tfwright.wheel.inspect import library

DEMO = Path(tools.__file__).parents[1] / "demo" / "tree"
LIBRARIES = ("tensorflow/_demo_ops.so", "tensorflow/contrib/nccl/python/ops/_nccl_ops.so")
TARGETS = (
    "//tensorflow/tools/pip_package:build_pip_package",
    "//tensorflow/contrib/nccl:python/ops/_nccl_ops.so",
)
ANSWERS = {
    name: value if isinstance(value, str) else str(int(value))
    for name, value in recipes.read("demo").configure.answers.items()
}

pytestmark = pytest.mark.slow


def bazel(version: str) -> Path:
    """Return the host file's Bazel; skip the test if it names none."""
    binary = host_file.read().bazel(version)
    if binary is None:
        pytest.skip(f"the host file names no Bazel {version}")
    return binary


def built(tree: Path, version: str, *flags: str) -> Path:
    """Configure and build the patched tree; return where its outputs are."""
    binary = bazel(version)
    shutil.copytree(DEMO, tree)
    recipe = recipes.read("demo")
    for place, asset in recipe.source.assets.items():
        shutil.copy(recipes.PATCHES / asset, tree / place)
    for patch in recipe.source.patches:
        subprocess.run(["patch", "-p1", "-i", recipes.PATCHES / patch], cwd=tree, check=True)
    programs = make_folder(tree.parent / f"{tree.name}.bin")
    (programs / "bazel").symlink_to(binary)
    python = {"PYTHON_BIN_PATH": sys.executable, "USE_DEFAULT_PYTHON_LIB_PATH": "1"}
    env = clean_environment(tree.parent, (programs,), extra={**ANSWERS, **python})
    subprocess.run([tree / "configure"], cwd=tree, env=env, check=True, stdin=subprocess.DEVNULL)
    start = ["bazel", "--bazelrc=tools/bazel.rc", f"--output_base={tree.parent / tree.name}.base"]
    try:
        subprocess.run(
            [*start, "build", "--config=opt", *flags, *TARGETS], cwd=tree, env=env, check=True
        )
    finally:
        subprocess.run([*start, "shutdown"], cwd=tree, env=env, check=True)
    return tree / "bazel-bin"


def digests(outputs: Path) -> list[str]:
    return [files.sha256(outputs / name) for name in LIBRARIES]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build once with the Bazel that the recipe pins."""
    return built(tmp_path_factory.mktemp("demo") / "one", "0.26.1")


def test_the_bytes_depend_on_neither_bazel_nor_directory_nor_umask(
    outputs: Path, tmp_path: Path
) -> None:
    before = os.umask(0o077)
    try:
        others = built(tmp_path / "a" / "longer" / "way" / "two", "0.24.1")
    finally:
        os.umask(before)
    assert digests(outputs) == digests(others)


def test_no_path_of_the_machine_that_built_is_in_the_libraries(outputs: Path) -> None:
    for name in LIBRARIES:
        assert str(outputs.parent.parent).encode() not in (outputs / name).read_bytes()


def test_the_patched_operations_compute_what_they_should(outputs: Path, tmp_path: Path) -> None:
    package = tmp_path / "tensorflow_demo"
    shutil.copytree(
        outputs
        / "tensorflow/tools/pip_package/build_pip_package.runfiles/org_tensorflow/tensorflow",
        package,
    )
    program = """
import tensorflow_demo as tf
base = tf.constant([[1, 1], [1, 0]])
assert tf.matrix_power(base, 0).tolist() == [[1, 0], [0, 1]]
assert tf.matrix_power(base, 10).tolist() == [[89, 55], [55, 34]]
import tensorflow_demo.contrib.nccl
assert tf.ops() == ["MatMul", "MatrixPower"]
assert tf.__version__ == "1.12.0"
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert 'VERSION = "1.12.0"' in (DEMO / "tensorflow/tools/pip_package/setup.py").read_text(
        "utf-8"
    )


def test_with_cuda_the_nccl_library_has_its_operation(tmp_path: Path) -> None:
    outputs = built(tmp_path / "one", "0.26.1", "--config=cuda")
    assert library.stub_reason(outputs / LIBRARIES[1]) != library.NO_OPERATION
