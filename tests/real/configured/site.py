"""One real tree with everything that the configure stage wants around it."""

import os
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from tests.real.configured import simulated
from tests.real.configured.versions import Pinned, check_out
from tests.results import facts_of, inputs_of, tree_of

from tfwright.configure import bazelrc, dialect, expected
from tfwright.configure.catalogue import Answer, Prompt
from tfwright.documents import host_file
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.host import pythons
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Configured
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import configure

TEXTS = {
    "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc",
    "HOST_CXX_COMPILER": "/usr/bin/g++",
    "HOST_C_COMPILER": "/usr/bin/gcc",
    "TF_CUDA_COMPUTE_CAPABILITIES": "3.5,7.0",
    "CC_OPT_FLAGS": "-march=native -O2",
    "SWIG_PATH": "/bin/sh",
    "HERMETIC_CUDA_VERSION": "12.5.1",
    "HERMETIC_CUDNN_VERSION": "9.3.0",
    "HERMETIC_CUDA_COMPUTE_CAPABILITIES": "sm_80,compute_90",
    "LOCAL_CUDA_PATH": "",
    "LOCAL_CUDNN_PATH": "",
    "LOCAL_NCCL_PATH": "",
}
"""Answers that suit every version."""


class Site:
    """A tree, a target Python, a Bazel and a simulated CUDA."""

    def __init__(self, pinned: Pinned, folder: Path) -> None:
        self.pinned, self.folder = pinned, folder
        self.release = pinned.exact.line
        self.tree = check_out(pinned.commit, folder / "tree")
        self.python = python_for(pinned.python, numpy=self.release <= Release(1, 1))
        self.system: Literal["Linux", "Darwin"] = "Linux"
        self.cuda, self.cudnn = self._versions()

    def _versions(self) -> tuple[str, str]:
        """Return CUDA and cuDNN as answered: as they are, cut, or looked for, by the release."""
        if self.release >= Release(1, 14):
            return "10.0", "7.6"
        return ("9.2.148", "7.2.1") if self.release >= Release(1, 7) else ("8.0", "5.1.10")

    @property
    def bazelrc(self) -> Path:
        """Where the result lies."""
        return self.tree / bazelrc.file_name(self.release)

    def toolkit(self) -> Path:
        """Simulate the CUDA that suits the release."""
        root = self.folder / "cuda"
        return root if root.exists() else simulated.toolkit(root, self.cuda, self.cudnn)

    def pretend_darwin(self) -> None:
        """Simulate macOS: the target Python and `uname` say Darwin."""
        shim = self.folder / "darwin"
        line = 'import platform\nplatform.system = lambda: "Darwin"\n'
        simulated.write(shim, {"sitecustomize.py": line})
        script = f'PYTHONPATH={shim} exec {self.python} "$@"'
        self.python = simulated.program(shim / "python", script)
        simulated.program(self.folder / "build_out/real/bin/uname", "echo Darwin")
        self.system = "Darwin"

    def recipe(self, answers: dict[str, Answer], by: str = "dialogue", bazel: str = "") -> Recipe:
        """Return a recipe for this tree."""
        source = {
            "url": f"https://github.com/{self.pinned.fork}/tensorflow.git",
            "branch": f"r{self.pinned.version}",
            "commit": self.pinned.commit,
        }
        document = {
            "name": "real",
            "summary": "A recipe for tests",
            "source": source,
            "host": {"system": self.system, "python": self.pinned.python},
            "bazel": {"version": bazel or self.pinned.bazel},
            "configure": {"by": by, "answers": answers},
        }
        return Recipe.model_validate(document)

    def answers(self, *yes: str, **texts: str) -> dict[str, Answer]:
        """Answer all that may be asked, with no to all but `yes`; a real recipe does no less."""
        own = {
            "TF_CUDA_VERSION": self.cuda,
            "TF_CUDNN_VERSION": self.cudnn,
            "TF_NCCL_VERSION": "2.2" if self.release <= Release(1, 13) else "",
            "NCCL_INSTALL_PATH": str(self.folder / "cuda"),
        }
        given = {**TEXTS, **own, **texts}
        prompts = dialect.of_tensorflow(self.recipe({}).source.exact, self.system).prompts
        chosen: dict[str, Answer] = {}
        for prompt in prompts:
            if prompt.yes_no and (prompt.asked or prompt.variable in yes):
                chosen[prompt.variable] = prompt.variable in yes
            elif prompt.variable in given and _is_stated(prompt, texts):
                chosen[prompt.variable] = given[prompt.variable]
        asked = {prompt.variable for prompt in prompts if prompt.applies(chosen)}
        return {variable: answer for variable, answer in chosen.items() if variable in asked}

    def asks(self, variable: str) -> bool:
        """Say whether this version may ask for an answer."""
        prompts = dialect.of_tensorflow(self.recipe({}).source.exact, self.system).prompts
        return variable in {prompt.variable for prompt in prompts}

    def run(
        self,
        answers: dict[str, Answer],
        by: str = "dialogue",
        *,
        bazel: str = "",
        cuda: Path | None = None,
    ) -> Configured:
        """Run the stage, as a build does after the check."""
        recipe = self.recipe(answers, by, bazel)
        settings = {"build_out": self.folder / "build_out", "cuda": cuda}
        job = RecipeJob(recipe=recipe, host_file=HostFile.model_validate(settings))
        expected.check_answers(expected.interview(recipe, job.host_file))
        job.places.home.mkdir(parents=True, exist_ok=True)
        facts = facts_of(self.python, system=self.system, glibc="", python=self.pinned.python)
        pinned = {"commit": self.pinned.commit, "epoch": 1}
        bazel_here = bazel_for(recipe.bazel.version, self.folder)
        inputs = inputs_of(self.tree, bazel_here, self.python, **pinned)
        named = ["git", "-C", str(self.tree), "rev-parse", f"{self.pinned.commit}^{{tree}}"]
        content = subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()
        tree = tree_of(job, path=self.tree, release=self.release, content=content, **pinned)
        return configure.run(job, recipe, facts, inputs, tree)


def _is_stated(prompt: Prompt, texts: dict[str, str]) -> bool:
    """Say whether a text is answered: what only the environment carries, if it was asked for."""
    return not prompt.environment or prompt.variable in {*texts, "SWIG_PATH"}


def python_for(version: str, *, numpy: bool) -> Path:
    """Return a target Python; skip the test if there is none, or none with numpy if needed."""
    folder = os.environ.get("TFWRIGHT_PYTHONS")
    named = sorted(Path(folder).glob(f"{version}*/bin/python")) if folder else []
    python = named[-1] if named else pythons.find(version, host_file.read())
    if python is None:
        pytest.skip(f"this host has no Python {version}")
    if numpy:
        tried = subprocess.run([python, "-c", "import numpy"], check=False, capture_output=True)
        if tried.returncode:
            pytest.skip(f"{python} has no numpy, which configure of this release imports")
    return python


def bazel_for(version: str, folder: Path) -> Artefact:
    """Return the host file's Bazel of a version, or a stand-in that says that it is one."""
    real = host_file.read().bazel(version)
    if real:
        return Artefact.of(real)
    script = (
        f'case "$*" in --version) echo bazel {version} ;; *) echo "Build label: {version}" ;; esac'
    )
    return Artefact.of(simulated.program(folder / f"bazel-{version}", script))
