"""What doctor says of CUDA's libraries and GPUs, on small simulated hosts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.making import make_folder
from tests.upstream import commit

from tfwright.doctor.gpu import CudaRequirements, _clang_too_new
from tfwright.doctor.requirements import Requirements
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.host import nvidia
from tfwright.host.probes import Host
from tfwright.host.toolchain import Compiler
from tfwright.match import ranking
from tfwright.match.wish import Wish
from tfwright.toolkit import providing as toolkit
from tfwright.tools.git import mirror

Player = Callable[[dict[str, Any]], Host]
CUDA = Path("/usr/local/cuda")


def recipe(version: str = "8.6", **answers: object) -> Recipe:
    """Return a recipe for CUDA that wants TensorRT of a version."""
    read = recipes.read("demo-cuda")
    given = {**read.configure.answers, "TF_NEED_TENSORRT": True, **answers}
    configure = read.configure.changed(answers=given)
    host = read.host.changed(tensorrt=version)
    return read.changed(configure=configure, host=host)


def headers(major: int, minor: int) -> dict[str, str]:
    """Return the file in which TensorRT states its version."""
    numbers = {"MAJOR": major, "MINOR": minor, "PATCH": 1}
    lines = (f"#define NV_TENSORRT_{name} {number}\n" for name, number in numbers.items())
    return {f"{CUDA}/include/NvInferVersion.h": "".join(lines)}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, ["no TensorRT at /usr/local/cuda; wanted: TensorRT 8.6"]),
        (headers(8, 5), ["TensorRT 8.5.1; wanted: TensorRT 8.6"]),
        (headers(8, 6), []),
    ],
)
def test_the_tensorrt_that_a_recipe_wants_is_compared(
    files: dict[str, str], said: list[str], play: Player, tmp_path: Path
) -> None:
    settings = HostFile(build_out=tmp_path, cuda=CUDA, cudnn=CUDA)
    found = CudaRequirements(recipe(), settings, play({"files": files})).tensorrt()
    assert [*map(str, found)] == said


def test_what_a_recipe_without_cuda_answers_of_tensorrt_does_not_matter(
    play: Player, tmp_path: Path
) -> None:
    plain = recipe(TF_NEED_CUDA=False)
    found = Requirements(plain, HostFile(build_out=tmp_path), play({})).cuda()
    assert list(found) == []


def test_a_capability_that_nvcc_does_not_know_is_found_before_it_compiles(
    play: Player, tmp_path: Path
) -> None:
    old = recipe(TF_CUDA_COMPUTE_CAPABILITIES="3.0,8.6")
    (finding,) = CudaRequirements(old, HostFile(build_out=tmp_path), play({})).contradictions()
    assert finding.found == "CUDA 11.8, as the recipe states, does not compile sm_30, compute_30"


@pytest.mark.parametrize(
    ("release", "lacking"),
    [
        ("1.13", ""),
        ("1.14", "no cupti.h at /usr/local/cuda"),
        ("2.3", "no cupti.h and no cufft.h at /usr/local/cuda"),
        ("2.15", "no cupti.h and no cufft.h and no nvml.h at /usr/local/cuda"),
    ],
)
def test_headers_that_configure_of_a_release_looks_for_are_found_missing(
    release: str, lacking: str, play: Player, tmp_path: Path
) -> None:
    read = recipes.read("linux-r2.10-cuda11.8")
    of_release = read.changed(source=read.source.changed(release=Release.parse(release)))
    settings = HostFile(build_out=tmp_path, cuda=CUDA, cudnn=CUDA)
    names = ("cublas_api", "curand", "cusolver_common", "cusparse")
    files = dict.fromkeys((f"{CUDA}/targets/x86_64-linux/include/{name}.h" for name in names), "")
    # Without any CUDA, that is the finding.
    assert not [*CudaRequirements(of_release, settings, play({"files": files})).headers()]
    toolkit_alone = files | {f"{CUDA}/include/cuda.h": "#define CUDA_VERSION 11080"}
    found = CudaRequirements(of_release, settings, play({"files": toolkit_alone})).headers()
    assert [(one.found, one.blocks) for one in found] == [(lacking, "configure")] * bool(lacking)


@pytest.mark.medium
@pytest.mark.parametrize("fetched", [False, True])
def test_commands_agree_on_the_cuda_that_a_commit_chooses(
    play: Player,
    tmp_path: Path,
    fetched: bool,  # noqa: FBT001 whether a mirror of the host file or fetch has the tree
) -> None:
    read = recipes.read("linux-r2.20-cuda12.8-sm120")
    bazelrc = 'build:cuda --repo_env=HERMETIC_CUDA_VERSION="12.4.1"\n'
    tree = tmp_path / "tree"
    pinned = read.source.changed(commit=commit(tree, {".bazelrc": bazelrc}), patches=())
    answers = {**read.configure.answers, "HERMETIC_CUDA_VERSION": ""}
    silent = read.changed(
        source=pinned,
        configure=read.configure.changed(answers=answers),
        compile=read.compile.changed(flags=()),
    )
    settings = HostFile(build_out=tmp_path, mirrors={} if fetched else {pinned.url: str(tree)})
    if fetched:
        (tree / ".git").rename(
            make_folder(tmp_path / "git") / mirror.path_of(tmp_path, pinned.url).name
        )
    found = CudaRequirements(silent, settings, play({})).in_force
    assert found
    assert (found.version, found.by_default) == ("12.4.1", True)
    ranked = ranking.rank([silent], Wish(cuda="12.8"), play({}), settings, lambda _: "")
    assert "CUDA 12.4.1" in ranked[0].differs
    with fails(RecipeError, "here 12.4.1"):
        toolkit.check_wanted(silent, [], settings)


@pytest.mark.parametrize(("version", "refused"), [("13.0", False), ("15.0", True)])
def test_a_clang_that_cudas_header_refuses_is_found(
    version: str,
    refused: bool,  # noqa: FBT001 a case of the table above
) -> None:
    compiler = Compiler("clang", version, "/usr/bin/clang")
    ceiling = nvidia.Ceiling("", "15", "host_config.h")
    assert bool(list(_clang_too_new(compiler, ceiling))) is refused


def test_a_local_cuda_that_bazel_would_take_for_an_empty_one_is_found(
    play: Player, tmp_path: Path
) -> None:
    read = recipes.read("linux-r2.21-cuda12.8-sm120")
    answers = {**read.configure.answers, "LOCAL_CUDA_PATH": str(CUDA)}
    local = read.changed(configure=read.configure.changed(answers=answers))
    files = {f"{CUDA}/{name}": "" for name in ("include", "lib64", "bin", "nvvm")}
    settings = HostFile(build_out=tmp_path)
    (found,) = CudaRequirements(local, settings, play({"files": files})).local_folders()
    assert found.found == f"{CUDA} has no lib"
    files[f"{CUDA}/lib"] = ""
    assert list(CudaRequirements(local, settings, play({"files": files})).local_folders()) == []
