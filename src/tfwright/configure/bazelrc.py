"""The file that Bazel reads: rendered from answers, parsed, compared with what ./configure wrote."""

import os
import platform
import re
import shlex
from collections.abc import Mapping
from typing import Literal, NamedTuple

from tfwright.configure import catalogue
from tfwright.configure.catalogue import Answer, Answers
from tfwright.documents.release import Release
from tfwright.tools import render as templates

TEMPLATE = "tf_configure.bazelrc.j2"
FIRST_OWN_FILE = Release(1, 2)
"""Older releases have no .tf_configure.bazelrc; they make tools/bazel.rc."""


By = Literal["dialogue", "environment"]
"""How the answers go in; the file differs a little with it."""


def name(release: Release) -> str:
    """Return the path, in the tree, of the file that ./configure writes."""
    return ".tf_configure.bazelrc" if release >= FIRST_OWN_FILE else "tools/bazel.rc"


def written_in(release: Release) -> tuple[str, ...]:
    """Return the paths of all files that ./configure spreads the settings over."""
    return ("tools/bazel.rc", ".bazelrc") if release == Release(1, 1) else (name(release),)


def render(release: Release, system: str, answers: Answers, *, by: By, python: str) -> str:
    """Return the file that ./configure of a release writes for these answers.

    `python` is the version of the target Python; some lines name its first digit, and which
    lines there are differs a little with the way that the answers go in. The answers must be
    complete: see `catalogue.unanswered`.
    """
    features = [prompt for prompt in catalogue.prompts(release, system) if prompt.feature]
    values = {
        "answers": (written := settled(answers, release, system, by)),
        "by": by,
        "clang_major": _clang_major(written),
        "features": [(prompt.feature, prompt.variable) for prompt in features],
        "python_major": python.partition(".")[0],
        "release": release,
        "system": system,
    }
    return templates.render(TEMPLATE, values)


def _clang_major(answers: Answers) -> str:
    """Read the major version of the clang that is used off its path; configure asks the program."""
    path = answers.get(
        "CLANG_CUDA_COMPILER_PATH" if answers["TF_NEED_CUDA"] else "CLANG_COMPILER_PATH", ""
    )
    found = re.search(r"(?:llvm|clang)-(\d+)", str(path))
    return found[1] if found else ""


def settled(answers: Answers, release: Release, system: str, by: str) -> dict[str, Answer]:
    """Return the answers as the release writes them: it cuts versions and follows links."""
    # The links of another system, and a place that is not known yet and stands as @NAME@, cannot be followed.
    follow = system == platform.system()
    return {
        variable: _settle(variable, value, release, by, follow=follow)
        if isinstance(value, str) and value
        else value
        for variable, value in answers.items()
    }


_KEPT_PARTS = {"TF_CUDA_VERSION": 2, "TF_CUDNN_VERSION": 1, "TF_NCCL_VERSION": 1}
"""How many numbers of a version 1.7 to 1.13 keep; all others take it as it is."""


def _settle(variable: str, value: str, release: Release, by: str, *, follow: bool) -> str:
    if variable in _KEPT_PARTS and Release(1, 7) <= release <= Release(1, 13):
        return _cut(value, _KEPT_PARTS[variable])
    if variable.endswith("COMPUTE_CAPABILITIES") and release >= Release(1, 9):
        return "".join(value.split())
    if follow and value.startswith(("/", "~")) and _followed(variable, release, by):
        return os.path.realpath(os.path.expanduser(value))  # noqa: PTH111 what configure itself calls
    return value


def _cut(version: str, parts: int) -> str:
    """Return a version with exactly so many numbers: 9.2.148 is 9.2, and 9 is 9.0."""
    return ".".join([*version.split("."), *["0"] * parts][:parts])


def _followed(variable: str, release: Release, by: str) -> bool:
    """Say whether a release writes what the links of a path lead to, instead of the path."""
    match variable:
        case "CUDNN_INSTALL_PATH":
            return Release(1, 4) <= release or by == "dialogue"
        case "NCCL_INSTALL_PATH" | "TENSORRT_INSTALL_PATH":
            return True
        case "CUDA_TOOLKIT_PATH":
            # find_cuda_config.py, which reports the toolkit's own place.
            return release >= Release(1, 14)
        case "GCC_HOST_COMPILER_PATH":
            return release >= Release(2, 1)
        case "CLANG_COMPILER_PATH" | "CLANG_CUDA_COMPILER_PATH":
            return release >= Release(2, 13)
        case _:
            return False


class Setting(NamedTuple):
    """One flag for one command, as ``build:opt --copt=-O2`` is Setting("build", "opt", "--copt=-O2")."""

    command: str
    config: str
    flag: str

    def __str__(self) -> str:
        return f"{self.command}{':' if self.config else ''}{self.config} {self.flag}"


def parse(text: str) -> set[Setting]:
    """Read a bazelrc. ``--define a=b`` and ``--define=a=b`` are the same, quotes and order do not count."""
    host_file = set[Setting]()
    for line in text.splitlines():
        command, *words = shlex.split(line, comments=True) or [""]
        head, _, config = command.partition(":")
        host_file |= {Setting(head, config, flag) for flag in _flags(words)}
    return host_file


def _flags(words: list[str]) -> list[str]:
    """Join each flag with the value that stands behind it."""
    flags = list[str]()
    for word in words:
        if flags and not word.startswith("-") and "=" not in flags[-1].partition(" ")[0]:
            flags[-1] += f"={word}"
        else:
            flags.append(word)
    return flags


class Difference(NamedTuple):
    """What one of two bazelrc files has and the other has not; false if they agree."""

    only_rendered: tuple[str, ...]
    only_written: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.only_rendered or self.only_written)

    def lines(self) -> tuple[str, ...]:
        """Show both sides, one setting a line."""
        return (
            *(f"- rendered only: {line}" for line in self.only_rendered),
            *(f"+ written only:  {line}" for line in self.only_written),
        )


def compare(rendered: str, written: str) -> Difference:
    """Say how two bazelrc files differ, as sets of settings."""
    ours, theirs = parse(rendered), parse(written)
    return Difference(
        tuple(sorted(map(str, ours - theirs))), tuple(sorted(map(str, theirs - ours)))
    )


def exported(release: Release, answers: Answers) -> Mapping[str, str]:
    """Return the answers that a build needs in its environment, because no file carries them.

    0.10 to 1.1 export what the CUDA and OpenCL questions were answered with, and their
    repository rules read it there; 0.8 and 0.9 write it into their sources.
    """
    if not Release(0, 10) <= release < FIRST_OWN_FILE:
        return {}
    wanted = ("TF_NEED_CUDA", "TF_NEED_OPENCL", *_EXPORTED_WITH_CUDA, *_EXPORTED_WITH_OPENCL)
    return {
        variable: as_text(answers[variable], "1", "0") for variable in wanted if variable in answers
    }


_EXPORTED_WITH_CUDA = (
    "GCC_HOST_COMPILER_PATH",
    "CUDA_TOOLKIT_PATH",
    "TF_CUDA_VERSION",
    "CUDNN_INSTALL_PATH",
    "TF_CUDNN_VERSION",
    "TF_CUDA_COMPUTE_CAPABILITIES",
)
_EXPORTED_WITH_OPENCL = ("HOST_CXX_COMPILER", "HOST_C_COMPILER", "COMPUTECPP_TOOLKIT_PATH")


def as_text(value: Answer, yes: str, no: str) -> str:
    """Spell an answer."""
    return value if isinstance(value, str) else yes if value else no
