"""The bundled tree's ./configure on a real pty, with a Bazel that only says its version."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.making import make_file, make_program

from tfwright import tools
from tfwright.configure import bazelrc, rendering
from tfwright.configure.answering import Answerer
from tfwright.configure.dialect import of_tensorflow
from tfwright.configure.interview import Interview
from tfwright.documents import recipe as recipes
from tfwright.documents.release import ExactRelease
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command, clean_environment

DEMO = Path(tools.__file__).parents[1] / "demo" / "tree"
VERSION = ExactRelease(1, 12)
CUDA: dict[str, bool | str] = {
    "TF_NEED_CUDA": True,
    "TF_CUDA_VERSION": "9.2.148",
    "TF_CUDNN_VERSION": "7.2",
    "TF_NEED_TENSORRT": False,
    "TF_NCCL_VERSION": "2.2",
    "TF_CUDA_COMPUTE_CAPABILITIES": "3.0, 6.1",
    "TF_CUDA_CLANG": False,
    "GCC_HOST_COMPILER_PATH": "/bin/sh",
}


class Site:
    """A copy of the tree, and what stands in for the outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        shutil.copytree(DEMO, self.tree)
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.write("bazel", "echo Build label: 0.26.1")
        self.write("python3", f'exec {sys.executable} "$@"')
        self.system = "Linux"
        self.toolkit = folder / "cuda"

    def write(self, name: str, line: str) -> None:
        """Put a program of one line on PATH."""
        make_program(self.programs / name, f"#!/bin/sh\n{line}\n")

    def pretend(self, system: str) -> None:
        """Let the Python that runs configure.py say that this is another system."""
        self.system = system
        program = f"import platform, runpy, sys; platform.system = lambda: '{system}'; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        self.write("python3", f'exec {sys.executable} -c "{program}" "$@"')

    def install_cuda(self) -> None:
        """Simulate a toolkit by the files that configure looks for."""
        names = [
            "lib64/libcudart.so.9.2",
            "lib64/libcudnn.so.7",
            "lib/libnccl.so.2",
            "include/nccl.h",
            "lib/libcudart.9.2.dylib",
            "lib/libcudnn.7.dylib",
        ]
        for name in names:
            make_file(self.toolkit / name, b"")

    def answers(self, **changed: bool | str) -> dict[str, bool | str]:
        """Return the demo recipe's answers, with changes."""
        places = dict.fromkeys(
            ["CUDA_TOOLKIT_PATH", "CUDNN_INSTALL_PATH", "NCCL_INSTALL_PATH"], str(self.toolkit)
        )
        python = {
            "PYTHON_BIN_PATH": sys.executable,
            "PYTHON_LIB_PATH": "/usr/lib/python3/dist-packages",
        }
        return {**recipes.read("demo").configure.answers, **python, **places, **changed}

    def configure(self, answers: dict[str, bool | str]) -> list[str]:
        """Run ./configure, answered as the stage answers it; return what it asked for."""
        typist = Answerer(self.interview(answers))
        env = clean_environment(self.folder, (self.programs,))
        dialogue.converse(
            Command((str(self.tree / "configure"),), self.tree, env),
            self.folder / "log",
            typist,
            timeout=20,
        )
        return typist.asked

    @property
    def written(self) -> str:
        """What configure wrote."""
        return (self.tree / ".tf_configure.bazelrc").read_text("utf-8")

    def rendered(self, answers: dict[str, bool | str]) -> str:
        """What 1.12 writes, by the template that is checked against the real one."""
        return rendering.render(self.interview(answers))

    def interview(self, answers: dict[str, bool | str]) -> Interview:
        return Interview(of_tensorflow(VERSION, self.system), answers, python="3.11")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.medium
@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_a_cpu_dialogue_is_that_of_1_12(site: Site, system: str) -> None:
    site.pretend(system)
    asked = site.configure(site.answers())
    assert " ".join(asked) == (
        "PYTHON_BIN_PATH PYTHON_LIB_PATH TF_NEED_IGNITE TF_ENABLE_XLA TF_NEED_OPENCL_SYCL TF_NEED_ROCM TF_NEED_CUDA "
        "TF_DOWNLOAD_CLANG TF_NEED_MPI CC_OPT_FLAGS TF_SET_ANDROID_WORKSPACE"
    )
    assert not bazelrc.compare(site.rendered(site.answers()), site.written)


@pytest.mark.medium
@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_a_cuda_dialogue_is_that_of_1_12(site: Site, system: str) -> None:
    site.pretend(system)
    site.install_cuda()
    asked = site.configure(site.answers(**CUDA))
    assert ("TF_NCCL_VERSION" in asked) == ("TF_NEED_TENSORRT" in asked) == (system == "Linux")
    assert not bazelrc.compare(site.rendered(site.answers(**CUDA)), site.written)


@pytest.mark.medium
def test_every_feature_that_is_chosen_is_written_as_1_12_writes_it(site: Site) -> None:
    answers = site.answers(TF_NEED_IGNITE=True, TF_ENABLE_XLA=True, CC_OPT_FLAGS="-O3 -g")
    site.configure(answers)
    assert not bazelrc.compare(site.rendered(answers), site.written)


def by_environment(site: Site, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run ./configure with nobody to type."""
    answers = {
        name: value if isinstance(value, str) else str(int(value))
        for name, value in site.answers().items()
    }
    env = clean_environment(site.folder, (site.programs,), extra={**answers, **variables})
    return subprocess.run(
        [site.tree / "configure"],
        cwd=site.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_answers_without_a_question(site: Site) -> None:
    done = by_environment(site)
    assert "?" not in done.stdout
    assert "Please" not in done.stdout
    assert not bazelrc.compare(site.rendered(site.answers()), site.written)


@pytest.mark.parametrize(
    "variable",
    [
        "TF_NEED_OPENCL_SYCL",
        "TF_NEED_ROCM",
        "TF_DOWNLOAD_CLANG",
        "TF_NEED_MPI",
        "TF_SET_ANDROID_WORKSPACE",
    ],
)
def test_what_the_tree_does_not_have_cannot_be_chosen(site: Site, variable: str) -> None:
    done = by_environment(site, **{variable: "1"})
    assert done.returncode == 1
    assert "UserInputError: This tree has no" in done.stderr


def test_a_yes_or_no_that_is_neither_crashes_and_leaves_half_a_file(site: Site) -> None:
    done = by_environment(site, TF_NEED_ROCM="maybe")
    assert done.returncode == 1
    assert (
        "UserInputError: Environment variable TF_NEED_ROCM must be set as a boolean indicator."
        in done.stderr
    )
    assert 'TF_NEED_OPENCL_SYCL="0"' in site.written
    assert "CUDA" not in site.written


def test_without_a_bazel_only_the_text_tells_that_nothing_was_configured(site: Site) -> None:
    (site.programs / "bazel").unlink()
    for name in ("bash", "dirname"):
        (site.programs / name).symlink_to(shutil.which(name) or "")
    done = by_environment(site, PATH=str(site.programs))
    assert (done.returncode, done.stdout) == (
        0,
        "Cannot find bazel. Please install bazel.\nConfiguration finished\n",
    )


def test_with_a_bazel_that_is_too_old_it_is_the_same(site: Site) -> None:
    site.write("bazel", "echo Build label: 0.14.0")
    done = by_environment(site)
    assert done.returncode == 0
    assert "Please upgrade your bazel installation to version 0.15.0 or higher" in done.stdout
    assert not (site.tree / ".tf_configure.bazelrc").exists()


def test_a_toolkit_that_is_not_there_is_asked_for_ten_times(site: Site) -> None:
    done = by_environment(site, TF_NEED_CUDA="1", CUDA_TOOLKIT_PATH="/nowhere")
    assert done.returncode == 1
    assert done.stdout.count("Invalid path to CUDA") == 10
    assert "Assuming to be a scripting mistake." in done.stderr


@pytest.mark.medium
def test_configuring_again_imports_the_file_once_and_keeps_what_else_bazelrc_says(
    site: Site,
) -> None:
    (site.tree / ".bazelrc").write_text("build --jobs=1\n", "utf-8")
    for _ in range(2):
        by_environment(site)
    lines = (site.tree / ".bazelrc").read_text("utf-8").splitlines()
    assert lines == ["build --jobs=1", f"import {site.tree}/.tf_configure.bazelrc"]
    assert (site.tree / "tools" / "python_bin_path.sh").read_text(
        "utf-8"
    ) == f'export PYTHON_BIN_PATH="{sys.executable}"'
