from typing import Any

import pytest

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import cuda, hermetic
from tfwright.rules import listings
from tfwright.rules.listings import Environment
from tfwright.rules.model import Rules

WHEEL = "//tensorflow/tools/pip_package:wheel"
NVCC = ("--config=cuda_nvcc", "--config=cuda_wheel")
CLANG = ("--config=cuda_clang", "--config=cuda_wheel")
INCLUDED, OVERRIDDEN = (
    f"--@local_config_cuda//cuda:{name}"
    for name in ("include_cuda_libs", "override_include_cuda_libs")
)
CUDA: dict[str, Any] = {"HERMETIC_CUDA_VERSION": "12.8.1"}
GPU: dict[str, Any] = {"HERMETIC_CUDA_COMPUTE_CAPABILITIES": "sm_89"}
SM_89 = "--repo_env=HERMETIC_CUDA_COMPUTE_CAPABILITIES=sm_89"


def recipe(
    *flags: str,
    architectures: tuple[str, ...] = (),
    cudnn: str | None = None,
    branch: str = "r2.20",
    **answers: str | bool,
) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "small",
            "summary": "A recipe for tests",
            "source": {"url": "https://example.org/a.git", "branch": branch, "commit": "0" * 40},
            "host": {"system": "Linux", "python": "3.12", "cuda": "12.8", "cudnn": cudnn},
            "bazel": {"version": "7.4.1"},
            "configure": {"answers": {"TF_NEED_CUDA": True, **answers}},
            "compile": {"target": WHEEL, "flags": flags or NVCC},
            "verify": {"architectures": architectures},
        }
    )


def said(of: Recipe) -> str:
    found = hermetic.contradictions(of, hermetic.downloads(of, HostFile()))
    return "\n".join(f"{one.what}; {one.remedy}" for one in found)


def test_an_empty_version_is_the_default_of_the_tree_which_does_not_compile_for_blackwell() -> None:
    text = said(recipe(HERMETIC_CUDA_VERSION="", HERMETIC_CUDA_COMPUTE_CAPABILITIES="sm_120"))
    assert "CUDA 12.5.1" in text
    assert "does not compile sm_120" in text
    assert "[host] names 12.8" in text


def test_a_flag_wins_over_an_answer() -> None:
    version = "--repo_env=HERMETIC_CUDA_VERSION=12.8.1"
    gpus = "--repo_env=HERMETIC_CUDA_COMPUTE_CAPABILITIES=12.0"
    both = recipe(*NVCC, version, gpus, HERMETIC_CUDA_VERSION="12.5.1")
    found = cuda.in_force(both, hermetic.downloads(both, HostFile()))
    assert found
    assert found.version == "12.8.1"
    assert found.architectures == ("sm_120", "compute_120")
    assert said(recipe(*NVCC, version, gpus)) == ""


def test_the_configuration_for_clang_overrides_the_answered_gpus() -> None:
    text = said(recipe(*CLANG, **CUDA, **GPU))
    assert "overrides" in text
    assert SM_89 in text
    assert said(recipe(*NVCC, **CUDA, **GPU)) == ""


def test_an_empty_cudnn_is_the_default_of_the_tree_and_not_the_one_of_host() -> None:
    text = said(recipe(cudnn="9.12", HERMETIC_CUDNN_VERSION="", **CUDA, **GPU))
    assert "Bazel takes cuDNN 9.3.0, the tree's default; [host] names 9.12" in text
    assert "lists cuDNN to 9.8.0" in text
    assert said(recipe(cudnn="9.8", HERMETIC_CUDNN_VERSION="9.8.0", **CUDA, **GPU)) == ""


def test_a_version_that_the_tree_lists_no_archives_of_is_found() -> None:
    text = said(recipe(HERMETIC_CUDA_VERSION="12.8.3", **GPU))
    assert 'lists no CUDA 12.8.3; Answer HERMETIC_CUDA_VERSION = "12.8.1"' in text
    # What lies on the host is of any version.
    local = GPU | {"LOCAL_CUDA_PATH": "/opt/cuda", "LOCAL_CUDNN_PATH": "/opt/cudnn"}
    assert said(recipe(cudnn="9.12", HERMETIC_CUDA_VERSION="12.8.3", **local)) == ""
    text = said(recipe(HERMETIC_CUDA_VERSION="", **local))
    assert "the full version of what is at LOCAL_CUDA_PATH" in text


def test_an_nvshmem_without_an_archive_for_cuda_13_is_found() -> None:
    read = recipes.read("linux-r2.21-cuda13.0")
    assert said(read) == ""
    flags = tuple(flag for flag in read.compile.flags if "NVSHMEM" not in flag)
    without = read.changed(compile=read.compile.changed(flags=flags))
    assert "NVSHMEM 3.2.5 has no archive for CUDA 13.0.2" in said(without)
    assert "HERMETIC_NVSHMEM_VERSION=3.3.20" in said(without)


def test_a_flag_for_another_compiler_of_kernels_than_the_answered_one_contradicts_it() -> None:
    by_clang, by_nvcc = ({**CUDA, **GPU, "TF_CUDA_CLANG": clang} for clang in (True, False))
    assert "makes nvcc compile" in said(recipe(*NVCC, SM_89, **by_clang))
    assert said(recipe(*NVCC[1:], SM_89, **by_clang)) == ""
    text = said(recipe("--config=release_gpu_linux", *CLANG, SM_89, **by_nvcc))
    assert "--config=cuda_clang makes clang compile" in text
    assert "--config=release_gpu_linux makes clang compile" in text
    assert said(recipe(*CLANG, SM_89, **by_clang)) == ""
    # Before 2.15 upstream's releases were compiled by nvcc.
    flags = ("--config=release_gpu_linux", "--config=cuda_clang")
    old = recipe(*flags, branch="r2.10", TF_CUDA_CLANG=False)
    assert said(old).count("makes clang compile") == 1


def test_the_configuration_for_clang_has_gpus_and_tensorrt_of_its_own_from_2_15_on() -> None:
    gpus, without = "--repo_env=TF_CUDA_COMPUTE_CAPABILITIES=5.0,9.0", "TF_NEED_TENSORRT=0"
    answers: dict[str, Any] = {"TF_CUDA_CLANG": True, "TF_CUDA_COMPUTE_CAPABILITIES": "5.0,9.0"}
    text = said(recipe("--config=opt", branch="r2.15", **answers))
    assert "overrides the answered GPUs by sm_50, sm_60, sm_70, sm_75, sm_80, compute_80" in text
    assert f'"{gpus}"' in text
    assert f'"--repo_env={without}"' in text
    assert said(recipe(gpus, f"--repo_env={without}", branch="r2.15", **answers)) == ""
    assert said(recipe(gpus, branch="r2.15", **answers, TF_NEED_TENSORRT=True)) == ""
    assert said(recipe("--config=opt", branch="r2.14", **answers)) == ""
    answers["TF_CUDA_CLANG"] = False
    assert said(recipe("--config=opt", branch="r2.15", **answers)) == ""


@pytest.mark.parametrize(("clang", "refused"), [("18", True), ("20", False), ("99", False)])
def test_a_clang_that_does_not_know_the_gpu_is_refused(clang: str, *, refused: bool) -> None:
    gpus, path = SM_89.replace("89", "120"), f"/usr/lib/llvm-{clang}/bin/clang"
    text = said(recipe(*CLANG, gpus, CLANG_CUDA_COMPILER_PATH=path, **CUDA))
    assert (f"clang {clang} compiles" in text) is refused
    assert ("clang 20 or later" in text) is refused


@pytest.mark.parametrize(
    ("local", "refused"), [((), "clang 18, which Bazel downloads"), (("--config=clang_local",), "")]
)
def test_the_clang_that_bazel_downloads_compiles_whatever_path_is_answered(
    local: tuple[str, ...], refused: str
) -> None:
    # Upstream's own configuration for releases, which expands to cuda_clang.
    flags = ("--config=release_gpu_linux", "--config=cuda_wheel", *local)
    gpus = "--repo_env=HERMETIC_CUDA_COMPUTE_CAPABILITIES=12.0"
    answers = CUDA | {"CLANG_CUDA_COMPILER_PATH": "/usr/lib/llvm-20/bin/clang"}
    assert said(recipe(*flags, gpus, branch="r2.21", **answers)).startswith(refused)
    answers["HERMETIC_CUDA_COMPUTE_CAPABILITIES"] = "12.0"
    assert "overrides the answered GPUs" in said(recipe(*flags, branch="r2.21", **answers))


def test_a_wheel_with_cuda_libraries_and_a_floor_that_is_not_compiled_are_found() -> None:
    text = said(recipe("--config=cuda_nvcc", architectures=("sm_89", "sm_90"), **CUDA, **GPU))
    assert "--config=cuda_wheel" in text
    assert "sm_90, which is not compiled" in text


@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        (("--config=cuda_nvcc", "--config=cuda_wheel", "--config=cuda_version"), ""),
        (("--config=cuda_wheel", "--config=cuda_nvcc"), "Write --config=cuda_wheel behind"),
        (("--config=cuda_wheel", "--config=release_gpu_linux"), "Write --config=cuda_wheel behind"),
        (("--config=cuda_wheels",), "Add"),
        ((f"{INCLUDED}=false",), "Add"),
        ((f"{OVERRIDDEN}=false",), "Add"),
        ((OVERRIDDEN,), ""),
        ((f"{OVERRIDDEN}=1", "--config=cuda"), ""),
    ],
)
def test_cuda_wheel_counts_behind_what_includes_cuda_and_the_override_in_each_spelling(
    flags: tuple[str, ...], refused: str
) -> None:
    text = said(recipe(*flags, **CUDA, **GPU))
    assert refused in text
    assert bool(text) is bool(refused)


def test_what_follows_from_a_wrong_answer_about_gpus_is_no_finding_of_its_own() -> None:
    empty = dict.fromkeys(GPU, "")
    assert said(recipe(*NVCC, architectures=("sm_89",), **CUDA, **empty)) == ""
    text = said(recipe(*CLANG, architectures=("sm_89",), **CUDA, **GPU))
    assert "overrides the answered GPUs" in text
    assert "which is not compiled" not in text


def test_a_recipe_without_cuda_or_of_an_older_release_downloads_none(recipe: Recipe) -> None:
    assert cuda.in_force(recipe, None) is None
    assert list(hermetic.contradictions(recipe, None)) == []


def chosen(of: Recipe) -> Environment:
    return hermetic.environment(of.source, of.host, of.configure, of.compile)


def test_flags_then_answers_then_the_tree_choose_what_is_downloaded() -> None:
    flag = "--repo_env=HERMETIC_CUDA_VERSION=12.8.1"
    stated = recipe(*NVCC, flag, HERMETIC_CUDA_VERSION="12.6.0", HERMETIC_CUDNN_VERSION="9.8.0")
    variables = chosen(stated).variables
    assert variables["HERMETIC_CUDA_VERSION"] == "12.8.1"
    assert variables["HERMETIC_CUDNN_VERSION"] == "9.8.0"
    assert variables["HERMETIC_NVSHMEM_VERSION"] == "3.2.5"
    assert variables["HERMETIC_PYTHON_VERSION"] == "3.12"


BAZELRC = """\
common:cuda12_version --repo_env=HERMETIC_CUDA_VERSION="12.5.1"
common:cuda12_version --repo_env=HERMETIC_CUDNN_VERSION="9.10.0"
common:cuda13_version --repo_env=HERMETIC_CUDA_VERSION="13.0.0"
common:cuda_version --config=cuda12_version
common:cuda --repo_env TF_NEED_CUDA=1
common:cuda --config=cuda_version
common:cuda_nvcc --config=cuda
"""


@pytest.mark.parametrize(
    ("flags", "answer", "version"),
    [
        ((), "", "12.5.1"),
        ((), "12.8.1", "12.8.1"),
        (("--config=cuda13_version",), "12.8.1", "13.0.0"),
        (("--config=cuda13_version", "--repo_env=HERMETIC_CUDA_VERSION=12.9.1"), "", "12.9.1"),
    ],
)
def test_what_the_recipe_leaves_open_the_configurations_of_the_commit_choose(
    flags: tuple[str, ...], answer: str, version: str
) -> None:
    variables = (
        chosen(recipe(*NVCC, *flags, HERMETIC_CUDA_VERSION=answer)).of_tree(BAZELRC).variables
    )
    assert variables["HERMETIC_CUDA_VERSION"] == version
    assert variables["HERMETIC_CUDNN_VERSION"] == "9.10.0"
    assert variables["HERMETIC_NVSHMEM_VERSION"] == "3.2.5"
    assert variables["HERMETIC_PYTHON_VERSION"] == "3.12"
    assert "TF_NEED_CUDA" not in variables


def test_a_cuda_of_this_host_is_not_downloaded() -> None:
    environment = chosen(recipe(LOCAL_CUDA_PATH="/usr/local/cuda", LOCAL_CUDNN_PATH=""))
    assert environment.local == {"HERMETIC_CUDA_VERSION"}


def test_another_interpreter_takes_the_place_of_those_that_the_tree_lists() -> None:
    url = "https://example.org/python.tar.gz"
    flags = [f"--repo_env=HERMETIC_PYTHON_{name}" for name in (f"URL={url}", f"SHA256={'1' * 64}")]
    environment = chosen(recipe(*flags))
    (python,) = listings.with_chosen_files(Rules((), ()), environment, lambda _: None).repositories
    assert (python.urls, python.sha256) == ((url,), "1" * 64)
    assert "HERMETIC_PYTHON_VERSION" in environment.local


def test_the_rules_for_gpus_of_other_makers_are_idle_until_the_recipe_is_for_one() -> None:
    assert chosen(recipe()).idle == ("/rocm_configure.bzl", "/sycl_configure.bzl")
    assert chosen(recipe("--config=sycl_hermetic", TF_NEED_ROCM=True)).idle == ()
