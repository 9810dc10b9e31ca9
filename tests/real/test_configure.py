"""The real ./configure of each TensorFlow that the mirrors hold, answered on a real pty.

Wanted from the environment: TFWRIGHT_TENSORFLOW_MIRRORS, a colon-separated list of bare
repositories; TFWRIGHT_PYTHONS, a directory of interpreters such as pyenv's versions/ (else the
host file, PATH and pyenv are asked); the host file's [bazels] for real Bazels, else a stand-in
that only says its version. CUDA is simulated by files, macOS by a Python that says Darwin.
"""

import os
import subprocess
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from tfwright.configure import bazelrc, catalogue
from tfwright.documents import host_file
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, ToolError
from tfwright.host import pythons
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Programs, Tree
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import configure

pytestmark = pytest.mark.real


class Upstream(NamedTuple):
    """A commit of upstream's, and what its configure accepts."""

    commit: str
    bazel: str
    python: str


UPSTREAM = {
    "0.8": Upstream("9b69ec3960cf9225df557fdc1ab673bd36bde4fb", "0.3.0", "3.6"),
    "0.9": Upstream("3976aab26b7495428e343c0b6c1c51a7681f500c", "0.3.0", "3.6"),
    "0.10": Upstream("bf1ad52e8f5c682fa78f025ab819c9d2d6249b0e", "0.3.0", "3.6"),
    "0.11": Upstream("50575842c3a44cd6a05e57027dd592a64a3ffa52", "0.3.2", "3.6"),
    "0.12": Upstream("b5e5120c586298b05654d6f46964b9cde169a866", "0.4.2", "3.6"),
    "1.0": Upstream("905662a1c047f314ad295e27d2e2a00b4aa51e90", "0.4.5", "3.6"),
    "1.1": Upstream("8ddd727a4a43c0fba11550f3abc277a6e8d9f8c0", "0.4.5", "3.6"),
    "1.2": Upstream("030279306903241c8317a738c0aede55760088ee", "0.4.5", "3.6"),
    "1.3": Upstream("408fd454d7d2a16269576ea12bcd516e25a6b0c5", "0.17.2", "3.6"),
    "1.4": Upstream("81012dcd91770dc8113cd5beb4f854968c27e272", "0.5.4", "3.6"),
    "1.5": Upstream("285c6a0fa1d5a3d2a96507ac9f707ce5c0e3ac1f", "0.17.2", "3.6"),
    "1.6": Upstream("080d59b76ca27b184f0fce605db7f5339ea5a8cf", "0.9.0", "3.6"),
    "1.7": Upstream("9156fcc7a8a901ca9e553297da8237a313255bd8", "0.10.0", "3.6"),
    "1.8": Upstream("93bc2e2072e0daccbcff7a90d397b704a9e8f778", "0.17.2", "3.6"),
    "1.9": Upstream("9bd0e0e06874b558a07a7cb5ae87753bd17dd9d5", "0.17.2", "3.6"),
    "1.10": Upstream("f9410ac2e50d961adbea6b4805f82da90116bebe", "0.15.0", "3.6"),
    "1.11": Upstream("7a67406abda84cb5c2da02ed4d77a85ddfd2a417", "0.15.0", "3.6"),
    "1.12": Upstream("8ce231a8ebc73be5be53ccd90387fc68b187bcec", "0.17.2", "3.6"),
    "1.13": Upstream("c33db572fe31cd48432dab84e17434359786bac8", "0.21.0", "3.7"),
    "1.14": Upstream("8d7696a800efb7fa97415bbf288b8022c214672c", "0.24.1", "3.7"),
    "1.15": Upstream("590d6eef7e91a6a7392c8ffffb7b58f2e0c8bc6b", "0.26.1", "3.7"),
    "2.0": Upstream("f2be0e04c6668b5834e5c571986a514097d3d6e7", "0.26.1", "3.7"),
    "2.1": Upstream("e5bf8de410005de06a7ff5393fafdf832ef1d4ad", "0.29.1", "3.7"),
    "2.2": Upstream("5c2cbaf0b2c78e9f1de554bd0b32cd3cb90d2bc8", "2.0.0", "3.8"),
    "2.3": Upstream("bd173ff4f8209c1a5cb046d85843c2f3deba4f8e", "3.1.0", "3.8"),
    "2.4": Upstream("582c8d236cb079023657287c318ff26adb239002", "3.1.0", "3.8"),
    "2.5": Upstream("f5c57d495753bbc166abc928430ea808aa8aa6b3", "3.7.2", "3.8"),
    "2.6": Upstream("1ec60cd309cfa85bc8f1874a1503486969f511f3", "3.7.2", "3.8"),
}

COUNTS = (
    2,
    3,
    3,
    5,
    6,
    9,
    9,
    11,
    12,
    13,
    14,
    15,
    15,
    16,
    16,
    16,
    17,
    11,
    10,
    10,
    10,
    10,
    9,
    8,
    8,
    7,
    7,
    7,
)
ASKED_BY_DEFAULT = dict(zip(UPSTREAM, COUNTS, strict=True))
"""Questions of a CPU configure on Linux."""

NEEDED = (
    *(
        "/configure",
        "/configure.py",
        "/.gitignore",
        "/.bazelrc",
        "/WORKSPACE",
        "/tools/",
        "/util/python/",
        "/third_party/gpus/",
        "/third_party/py/numpy/",
    ),
    *(
        "/third_party/mpi/",
        "/tensorflow/tools/git/",
        "/tensorflow/tools/swig/",
        "/tensorflow/core/platform/default/build_config.bzl",
    ),
    *(
        "/tensorflow/stream_executor/dso_loader.cc",
        "/tensorflow/core/common_runtime/gpu/gpu_device.cc",
        "/tensorflow/workspace.bzl",
    ),
)
"""What ./configure of any release reads or edits."""

CUDA = {"exact": ("8.0", "5.1.10"), "trimmed": ("9.2.148", "7.2.1"), "found": ("10.0", "7.6")}
"""CUDA and cuDNN as answered, by what a release makes of a version."""


def mirror_of(commit: str) -> Path:
    """Return the mirror that holds a commit; skip the test if there is none."""
    named = os.environ.get("TFWRIGHT_TENSORFLOW_MIRRORS")
    if not named:
        pytest.skip("TFWRIGHT_TENSORFLOW_MIRRORS names no mirror of TensorFlow")
    for path in map(Path, named.split(":")):
        if (
            subprocess.run(
                ["git", "-C", path, "cat-file", "-e", f"{commit}^{{commit}}"],
                check=False,
                capture_output=True,
            ).returncode
            == 0
        ):
            return path
    pytest.skip(f"no mirror holds {commit}")


def check_out(commit: str, target: Path) -> Path:
    """Check out the few files that ./configure needs."""
    subprocess.run(
        [
            "git",
            "clone",
            "-q",
            "--shared",
            "--no-checkout",
            f"--separate-git-dir={target}.git",
            mirror_of(commit),
            target,
        ],
        check=True,
    )
    subprocess.run(
        ["git", "-C", target, "sparse-checkout", "set", "--no-cone", *NEEDED], check=True
    )
    subprocess.run(
        ["git", "-C", target, "-c", "advice.detachedHead=false", "checkout", "-q", commit],
        check=True,
    )
    return target


def python_for(version: str, *, numpy: bool) -> Path:
    """Return a target Python; skip the test if this host has none, or none with numpy where configure wants it."""
    folder = os.environ.get("TFWRIGHT_PYTHONS")
    named = sorted(Path(folder).glob(f"{version}.*/bin/python")) if folder else []
    python = named[-1] if named else pythons.find(version, host_file.read())
    if python is None:
        pytest.skip(f"this host has no Python {version}")
    if (
        numpy
        and subprocess.run(
            [python, "-c", "import numpy"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip(f"{python} has no numpy, which configure of this release imports")
    return python


def bazel_for(version: str, folder: Path) -> Artefact:
    """Return the host file's Bazel of a version, or a stand-in that says it is one."""
    real = host_file.read().bazels.get(version)
    if real:
        return Artefact.of(real)
    say = (
        f'case "$*" in --version) echo bazel {version} ;; *) echo "Build label: {version}" ;; esac'
    )
    return Artefact.of(write_program(folder / f"bazel-{version}", say))


def write_program(path: Path, script: str) -> Path:
    """Write a program of a few lines of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def make_toolkit(root: Path, cuda: str, cudnn: str) -> Path:
    """Simulate a CUDA toolkit with cuDNN and NCCL in it, by the files that some configure looks for."""
    major, minor = cuda.split(".")[:2]
    numbers = dict(zip(("MAJOR", "MINOR", "PATCHLEVEL"), [*cudnn.split("."), "0"], strict=False))
    headers = {
        "cuda.h": f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n",
        "cudnn.h": "".join(f"#define CUDNN_{name} {number}\n" for name, number in numbers.items()),
        "nccl.h": "#define NCCL_MAJOR 2\n#define NCCL_MINOR 2\n#define NCCL_PATCH 13\n",
        **dict.fromkeys(
            ["cublas_api.h", "cupti.h", "cufft.h", "curand.h", "cusolver_common.h", "cusparse.h"],
            "",
        ),
    }
    libraries = [
        f"lib{name}.so{version}"
        for name in ("cudart", "cublas", "cupti", "cufft", "curand", "cusolver", "cusparse")
        for version in ("", f".{major}.{minor}")
    ]
    cudnn_names = {
        f"libcudnn.so.{cudnn}",
        f"libcudnn.so.{cudnn.rsplit('.', 1)[0]}",
        f"libcudnn.so.{cudnn.partition('.')[0]}",
    }
    files = {
        **{f"include/{name}": text for name, text in headers.items()},
        **{f"lib64/{name}": "" for name in (*libraries, *cudnn_names)},
        **{
            f"lib/{name}": ""
            for name in (
                "libnccl.so.2",
                f"libcudart.{major}.{minor}.dylib",
                f"libcudnn.{cudnn.partition('.')[0]}.dylib",
            )
        },
        "nvvm/libdevice/libdevice.10.bc": "",
        f"extras/CUPTI/lib64/libcupti.so.{major}.{minor}": "",
        "bin/nvcc": f"#!/bin/sh\necho 'Cuda compilation tools, release {major}.{minor}, V{major}.{minor}.130'\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "bin/nvcc").chmod(0o755)
    return root


class Site:
    """One real tree with a job around it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.release = Release.parse(name)
        self.upstream = UPSTREAM[name]
        self.folder = folder
        self.tree = check_out(self.upstream.commit, folder / "tree")
        self.python = python_for(self.upstream.python, numpy=self.release <= Release(1, 1))
        self.version = pythons.version_of(self.python)
        self.system: Literal["Linux", "Darwin"] = "Linux"
        self.cuda, self.cudnn = CUDA[
            "found"
            if self.release >= Release(1, 14)
            else "trimmed"
            if self.release >= Release(1, 7)
            else "exact"
        ]

    @property
    def bazelrc(self) -> Path:
        """Where the result lies."""
        return self.tree / bazelrc.name(self.release)

    def toolkit(self) -> Path:
        """Simulate the CUDA that suits the release."""
        return make_toolkit(self.folder / "cuda", self.cuda, self.cudnn)

    def pretend_darwin(self) -> None:
        """Simulate macOS: the target Python and `uname` say Darwin."""
        shim = self.folder / "darwin"
        shim.mkdir()
        (shim / "sitecustomize.py").write_text(
            'import platform\nplatform.system = lambda: "Darwin"\n'
        )
        self.python = write_program(shim / "python", f'PYTHONPATH={shim} exec {self.python} "$@"')
        write_program(self.folder / "build_out/real/bin/uname", "echo Darwin")
        self.system = "Darwin"

    def answers(self, *, cuda: bool, **changed: bool | str) -> dict[str, bool | str]:
        """Answer all that the release may ask; a real recipe does no less."""
        texts = {
            "TF_CUDA_VERSION": self.cuda,
            "TF_CUDNN_VERSION": self.cudnn,
            "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc",
            "TF_NCCL_VERSION": "2.2" if self.release <= Release(1, 13) else "",
            "NCCL_INSTALL_PATH": str(self.folder / "cuda"),
            "TF_CUDA_COMPUTE_CAPABILITIES": "3.0,3.5,7.0",
            "CC_OPT_FLAGS": "-march=native -O2",
            "SWIG_PATH": "/bin/sh",
        }
        prompts = [
            prompt
            for prompt in catalogue.prompts(self.release, self.system)
            if prompt.yes_no or prompt.variable in texts
        ]
        chosen = {
            prompt.variable: prompt.variable == "TF_ENABLE_XLA"
            if prompt.yes_no
            else texts[prompt.variable]
            for prompt in prompts
        }
        chosen |= {"TF_NEED_CUDA": cuda}
        return {
            prompt.variable: chosen[prompt.variable] for prompt in prompts if prompt.applies(chosen)
        } | changed

    def run(
        self,
        answers: dict[str, bool | str],
        by: str = "dialogue",
        *,
        bazel: str = "",
        cuda: Path | None = None,
    ) -> Configured:
        """Run the stage."""
        version = bazel or self.upstream.bazel
        recipe = Recipe.model_validate(
            {
                "name": "real",
                "summary": "A recipe for tests",
                "source": {
                    "url": "https://example.org/tensorflow.git",
                    "branch": f"r{self.release}",
                    "commit": self.upstream.commit,
                },
                "host": {"system": self.system, "python": self.upstream.python},
                "bazel": {"version": version},
                "configure": {"by": by, "answers": answers},
            }
        )
        host_file = {"build_out": self.folder / "build_out", "cuda": cuda}
        job = BuildRequest(recipe=recipe, host_file=HostFile.model_validate(host_file))
        job.places.home.mkdir(parents=True, exist_ok=True)
        facts = HostFacts(
            system=self.system,
            machine="x86_64",
            glibc="",
            interpreter=self.python,
            python=self.version,
            compiler="",
        )
        artefact = bazel_for(version, self.folder)
        inputs = Inputs(
            mirror=self.tree,
            commit=self.upstream.commit,
            epoch=1,
            programs=Programs(bazel=artefact, bazel_origin="here", python=self.python),
        )
        tree = Tree(
            path=self.tree, commit=self.upstream.commit, epoch=1, release=self.release, content=""
        )
        return configure.run(job, recipe, facts, inputs, tree)


every_release = pytest.mark.parametrize("name", UPSTREAM)


@every_release
def test_a_cpu_configure_asks_what_it_always_asked_and_agrees_with_the_template(
    name: str, tmp_path: Path
) -> None:
    site = Site(name, tmp_path)
    configured = site.run(site.answers(cuda=False))
    assert len(configured.asked) == ASKED_BY_DEFAULT[name]
    assert configured.bazelrc.path == site.bazelrc


@every_release
def test_a_cuda_configure_agrees_with_the_template(name: str, tmp_path: Path) -> None:
    site = Site(name, tmp_path)
    configured = site.run(site.answers(cuda=True), cuda=site.toolkit())
    assert "TF_CUDA_VERSION" in configured.asked


@pytest.mark.parametrize("cuda", [False, True], ids=["cpu", "cuda"])
@pytest.mark.parametrize("name", [name for name in UPSTREAM if name != "0.11"])
def test_the_environment_answers_without_a_prompt_and_gives_the_same_file(
    name: str, *, cuda: bool, tmp_path: Path
) -> None:
    site = Site(name, tmp_path)
    toolkit = site.toolkit() if cuda else None
    answers = site.answers(cuda=cuda)
    configured = site.run(answers, by="environment", cuda=toolkit)
    assert configured.asked == ()
    exported = site.bazelrc.read_text()
    site.run(answers, cuda=toolkit)
    # 1.14 to 2.1 look for TF_NEED_CUDA in the environment alone when they choose the tests.
    build = [
        line
        for line in bazelrc.compare(exported, site.bazelrc.read_text()).lines()
        if " test --test_" not in line and " test --build_" not in line
    ]
    assert build == []


def test_the_environment_cannot_answer_0_11_which_says_so(tmp_path: Path) -> None:
    site = Site("0.11", tmp_path)
    with pytest.raises(RecipeError, match="does not take PYTHON_LIB_PATH"):
        site.run(site.answers(cuda=False), by="environment")


@pytest.mark.parametrize("name", ["1.3", "1.8", "1.13", "1.15", "2.1", "2.4", "2.6"])
def test_a_simulated_mac_agrees_with_the_template(name: str, tmp_path: Path) -> None:
    site = Site(name, tmp_path)
    site.pretend_darwin()
    configured = site.run(site.answers(cuda=False))
    assert "TF_NEED_JEMALLOC" not in configured.asked


def test_cuda_on_a_simulated_mac_asks_the_21_questions_of_1_8(tmp_path: Path) -> None:
    site = Site("1.8", tmp_path)
    site.pretend_darwin()
    configured = site.run(site.answers(cuda=True), cuda=site.toolkit())
    assert len(configured.asked) == 21
    assert 'TF_CUDNN_VERSION="7"' in site.bazelrc.read_text()


def test_a_tree_that_was_configured_before_is_configured_again(tmp_path: Path) -> None:
    site = Site("1.0", tmp_path)
    first = site.run(site.answers(cuda=False, TF_NEED_HDFS=True))
    assert site.run(site.answers(cuda=False)).bazelrc == first.bazelrc
    assert (
        "WITH_HDFS_SUPPORT = False"
        in (site.tree / "tensorflow/core/platform/default/build_config.bzl").read_text()
    )


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
    site = Site(name, tmp_path)
    with pytest.raises(RecipeError, match=wanted):
        site.run(site.answers(cuda=False), bazel=bazel)
    assert not site.bazelrc.exists()


@pytest.mark.parametrize("name", ["1.3", "1.4", "1.8", "1.15", "2.6"])
def test_a_toolkit_that_is_not_there_stops_at_the_second_asking(name: str, tmp_path: Path) -> None:
    site = Site(name, tmp_path)
    with pytest.raises(RecipeError, match="asks again") as caught:
        site.run(site.answers(cuda=True), cuda=tmp_path / "nowhere")
    assert any("nowhere" in line or "ould not find" in line for line in caught.value.evidence.lines)
    assert not site.bazelrc.exists()


def test_a_crash_is_told_with_its_reason_and_leaves_no_half_file(tmp_path: Path) -> None:
    site = Site("1.8", tmp_path)
    with pytest.raises(ToolError, match="crashed: TypeError"):
        site.run(
            site.answers(cuda=True, TF_CUDA_COMPUTE_CAPABILITIES="turing"), cuda=site.toolkit()
        )
    assert not site.bazelrc.exists()
