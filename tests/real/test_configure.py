"""The real ./configure of each TensorFlow that the mirrors hold, answered on a real pty.

Wanted from the environment: TFWRIGHT_TENSORFLOW_MIRRORS, a colon-separated list of bare
repositories; TFWRIGHT_PYTHONS, a directory of interpreters such as pyenv's versions/ (else the
host file, PATH and pyenv are asked); the host file's [bazels] for real Bazels, else a stand-in
that only says its version. CUDA is simulated by files, macOS by a Python that says Darwin.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.real.configured import simulated
from tests.real.configured.site import Site
from tests.real.configured.versions import OTHERS, RELEASES

from tfwright.configure import bazelrc
from tfwright.configure.catalogue import Answer
from tfwright.documents.release import Release
from tfwright.errors import RecipeError

pytestmark = pytest.mark.real

VERSIONS = {**RELEASES, **OTHERS}
OF_LINE = {pinned.version: pinned for pinned in RELEASES.values()}
QUESTIONS = "2 3 3 5 6 9 9 11 12 13 14 15 15 16 16 16 17 11 10 10 10 10 9 8 8 7 7 7"
"""Of a CPU configure on Linux, release by release."""
ASKED_BY_DEFAULT = dict(zip(OF_LINE, map(int, QUESTIONS.split()), strict=True))
FEATURES = ("GCP", "HDFS", "S3", "AWS", "KAFKA", "IGNITE", "GDR", "VERBS", "NGRAPH", "JEMALLOC")

Scenario = Callable[[Site], "tuple[dict[str, Answer], Path | None] | None"]
"""Returns the answers and the place of CUDA, or None where a version has no such choice."""


def cpu(site: Site) -> tuple[dict[str, Answer], None]:
    """Say no to everything."""
    return site.answers(), None


def features(site: Site) -> tuple[dict[str, Answer], None] | None:
    """Say yes to every feature; configure in bash would look for libcurl and a JDK."""
    if site.release < Release(1, 1):
        return None
    variables = [f"TF_NEED_{feature}" for feature in FEATURES]
    return site.answers("TF_ENABLE_XLA", *variables), None


def cuda(site: Site) -> tuple[dict[str, Answer], Path]:
    """Build for CUDA with gcc."""
    return site.answers("TF_NEED_CUDA"), site.toolkit()


def linked_cuda(site: Site) -> tuple[dict[str, Answer], Path]:
    """Name the toolkit by a link, such as /usr/local/cuda is one."""
    link = site.folder / "linked"
    link.symlink_to(site.toolkit())
    return site.answers("TF_NEED_CUDA"), link


def clang(site: Site) -> tuple[dict[str, Answer], Path] | None:
    """Compile CUDA by a clang of the host."""
    if not site.asks("TF_CUDA_CLANG"):
        return None
    yes = ("TF_NEED_CUDA", "TF_CUDA_CLANG")
    return site.answers(*yes, CLANG_CUDA_COMPILER_PATH=str(_clang(site))), site.toolkit()


def clang_for_the_host(site: Site) -> tuple[dict[str, Answer], None] | None:
    """Compile everything by a clang of the host."""
    if not site.asks("TF_NEED_CLANG"):
        return None
    return site.answers("TF_NEED_CLANG", CLANG_COMPILER_PATH=str(_clang(site))), None


def _clang(site: Site) -> Path:
    """Simulate a clang, whose version configure asks for from 2.14 on."""
    path = site.folder / "llvm-16/bin/clang"
    return simulated.program(path, "echo clang version 16.0.0")


def compiler_behind_a_link(site: Site) -> tuple[dict[str, Answer], Path]:
    """Name a compiler that is no link, in a directory that is one."""
    gcc = simulated.program(site.folder / "gcc/bin/gcc", 'exec gcc "$@"')
    linked = site.folder / "linked-gcc"
    linked.symlink_to(gcc.parent)
    compiler = str(linked / "gcc")
    return site.answers("TF_NEED_CUDA", GCC_HOST_COMPILER_PATH=compiler), site.toolkit()


def downloaded_clang(site: Site) -> tuple[dict[str, Answer], Path] | None:
    """Compile CUDA by a clang that Bazel downloads."""
    if not site.asks("TF_DOWNLOAD_CLANG"):
        return None
    return site.answers("TF_NEED_CUDA", "TF_CUDA_CLANG", "TF_DOWNLOAD_CLANG"), site.toolkit()


def tensorrt(site: Site) -> tuple[dict[str, Answer], Path] | None:
    """Build with TensorRT."""
    if site.release < Release(1, 6):
        return None
    cut = site.release >= Release(1, 7) or site.pinned.version == "1.6.0-rc1"
    cudart = ".".join(site.cuda.split(".")[:2])
    cudnn = site.cudnn.partition(".")[0] if cut else site.cudnn
    root = simulated.tensorrt(site.folder / "trt", "5.1.5", cudart, cudnn)
    texts = {"TENSORRT_INSTALL_PATH": str(root), "TF_TENSORRT_VERSION": "5.1.5"}
    if site.release >= Release(1, 14):
        texts = {"TF_CUDA_PATHS": str(root), "TF_TENSORRT_VERSION": "5.1.5"}
    return site.answers("TF_NEED_CUDA", "TF_NEED_TENSORRT", **texts), site.toolkit()


def opencl(site: Site) -> tuple[dict[str, Answer], None] | None:
    """Build with OpenCL by ComputeCpp."""
    if not Release(0, 12) <= site.release <= Release(2, 3):
        return None
    files = {"lib/libComputeCpp.so": "", "include/SYCL/sycl.hpp": ""}
    root = simulated.write(site.folder / "computecpp", files)
    yes = ("TF_NEED_OPENCL", "TF_NEED_OPENCL_SYCL", "TF_NEED_COMPUTECPP")
    return site.answers(*yes, COMPUTECPP_TOOLKIT_PATH=str(root)), None


def rocm(site: Site) -> tuple[dict[str, Answer], None] | None:
    """Build for ROCm, in a place of its own where the version has a variable for it."""
    if site.release < Release(1, 12):
        return None
    texts = {"ROCM_PATH": "/opt/rocm", "HIP_PLATFORM": "amd"}
    return site.answers("TF_NEED_ROCM", **texts), None


def mpi(site: Site) -> tuple[dict[str, Answer], None] | None:
    """Build with MPI."""
    if not Release(1, 3) <= site.release <= Release(2, 0):
        return None
    names = ("include/mpi.h", "include/mpio.h", "include/mpicxx.h", "lib/libmpi.so")
    root = simulated.write(site.folder / "mpi", dict.fromkeys(names, ""))
    return site.answers("TF_NEED_MPI", MPI_HOME=str(root)), None


def system_libraries(site: Site) -> tuple[dict[str, Answer], None] | None:
    """Take libraries of the host."""
    if site.release < Release(1, 11):
        return None
    return site.answers(TF_SYSTEM_LIBS="zlib, curl", PREFIX="/usr"), None


SCENARIOS: tuple[Scenario, ...] = (
    cpu,
    features,
    cuda,
    linked_cuda,
    clang,
    clang_for_the_host,
    compiler_behind_a_link,
    downloaded_clang,
    tensorrt,
    opencl,
    rocm,
    mpi,
    system_libraries,
)


@pytest.mark.parametrize("by", ["dialogue", "environment"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("name", VERSIONS)
def test_what_is_rendered_is_what_the_real_configure_writes(
    name: str, scenario: Scenario, by: str, tmp_path: Path
) -> None:
    site = Site(VERSIONS[name], tmp_path)
    chosen = scenario(site)
    if chosen is None or (site.release == Release(0, 11) and by == "environment"):
        pytest.skip("this version has no such choice")
    answers, toolkit = chosen
    configured = site.run(answers, by, cuda=toolkit)
    assert configured.bazelrc.path == site.bazelrc
    assert configured.asked or by == "environment"


@pytest.mark.parametrize("name", OF_LINE)
def test_a_cpu_configure_asks_as_many_questions_as_ever(name: str, tmp_path: Path) -> None:
    site = Site(OF_LINE[name], tmp_path)
    assert len(site.run(site.answers()).asked) == ASKED_BY_DEFAULT[name]


def test_the_environment_cannot_answer_0_11_which_the_recipe_alone_tells(tmp_path: Path) -> None:
    site = Site(OF_LINE["0.11"], tmp_path)
    with fails(RecipeError, "PYTHON_LIB_PATH"):
        site.run(site.answers(), by="environment")


@pytest.mark.parametrize("name", ["1.3", "1.8", "1.13", "1.15", "2.1", "2.4", "2.6"])
def test_a_simulated_mac_agrees_with_the_template(name: str, tmp_path: Path) -> None:
    site = Site(OF_LINE[name], tmp_path)
    site.pretend_darwin()
    assert "TF_NEED_JEMALLOC" not in site.run(site.answers()).asked


def test_cuda_on_a_simulated_mac_asks_the_21_questions_of_1_8(tmp_path: Path) -> None:
    site = Site(OF_LINE["1.8"], tmp_path)
    site.pretend_darwin()
    configured = site.run(site.answers("TF_NEED_CUDA"), cuda=site.toolkit())
    assert len(configured.asked) == 21
    assert 'TF_CUDNN_VERSION="7"' in site.bazelrc.read_text()


def test_both_ways_of_answering_give_the_same_build(tmp_path: Path) -> None:
    site = Site(OF_LINE["1.15"], tmp_path)
    answers = site.answers("TF_NEED_CUDA")
    site.run(answers, "environment", cuda=site.toolkit())
    exported = site.bazelrc.read_text()
    site.run(answers, cuda=site.toolkit())
    # 1.14 to 2.1 look for TF_NEED_CUDA in the environment alone when they choose the tests.
    difference = bazelrc.compare(exported, site.bazelrc.read_text())
    assert {setting.command for setting in difference.only_rendered} == {"test"}


def test_a_tree_that_was_configured_before_is_configured_again(tmp_path: Path) -> None:
    site = Site(OF_LINE["1.0"], tmp_path)
    first = site.run(site.answers("TF_NEED_HDFS"))
    assert site.run(site.answers()).bazelrc == first.bazelrc
    rules = site.tree / "tensorflow/core/platform/default/build_config.bzl"
    assert "WITH_HDFS_SUPPORT = False" in rules.read_text()


@pytest.mark.parametrize(
    ("name", "bazel", "wanted"),
    [
        ("1.8", "0.9.0", "0.10.0 or newer"),
        ("1.15", "0.20.0", "0.24.1 or newer"),
        ("2.1", "2.1.0", "0.29.1 or older"),
    ],
)
def test_a_bazel_that_does_not_suit_is_a_fault_of_the_recipe_whatever_the_exit_status(
    name: str, bazel: str, wanted: str, tmp_path: Path
) -> None:
    site = Site(OF_LINE[name], tmp_path)
    with pytest.raises(RecipeError, match=wanted):
        site.run(site.answers(), bazel=bazel)
    assert not site.bazelrc.exists()


@pytest.mark.parametrize("name", ["1.3", "1.4", "1.8", "1.15", "2.6"])
def test_a_toolkit_that_does_not_exist_is_named(name: str, tmp_path: Path) -> None:
    site = Site(OF_LINE[name], tmp_path)
    with pytest.raises(RecipeError, match=r"asks again|did not find") as caught:
        site.run(site.answers("TF_NEED_CUDA"), cuda=tmp_path / "nowhere")
    lines = caught.value.evidence.lines
    assert any("nowhere" in line or "ould not find" in line for line in lines)
    assert not site.bazelrc.exists()
