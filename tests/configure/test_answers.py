"""The recipe's answers, completed with what the recipe and the host file say elsewhere."""

from pathlib import Path

import pytest

from tfwright.configure import answers
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe


def recipe(**given: object) -> Recipe:
    """Return TensorFlow's recipe for CUDA and a TensorRT, with some answers changed."""
    read = recipes.read("linux-nv1.15-cuda11.8")
    configure = read.configure.changed(answers={**read.configure.answers, **given})
    host = read.host.changed(tensorrt="8.6")
    return read.changed(configure=configure, host=host)


@pytest.fixture
def settings(tmp_path: Path) -> HostFile:
    return HostFile(build_out=tmp_path, compiler=Path("/opt/gcc/bin/gcc"))


def test_the_version_of_tensorrt_is_answered_as_the_recipe_pins_it(settings: HostFile) -> None:
    asked = recipe(TF_NEED_TENSORRT=True)
    given = answers.complete(asked, settings, {})
    assert given["TF_TENSORRT_VERSION"] == "8.6"
    plain = answers.complete(recipe(TF_NEED_TENSORRT=False), settings, {})
    assert "TF_TENSORRT_VERSION" not in plain


def test_the_hosts_compiler_is_answered_unless_clang_compiles_cuda(settings: HostFile) -> None:
    given = answers.complete(recipe(TF_CUDA_CLANG=False), settings, {})
    assert given["GCC_HOST_COMPILER_PATH"] == "/opt/gcc/bin/gcc"
    clang = recipe(TF_CUDA_CLANG=True)
    before = clang.configure.answers.get("GCC_HOST_COMPILER_PATH")
    found = answers.complete(clang, settings, {})
    assert found.get("GCC_HOST_COMPILER_PATH") == before


def test_without_cuda_only_the_python_is_added(settings: HostFile) -> None:
    plain = recipe(TF_NEED_CUDA=False)
    python = {"PYTHON_BIN_PATH": "/venv/bin/python"}
    given = answers.complete(plain, settings, python)
    assert given == {**plain.configure.answers, **python}
