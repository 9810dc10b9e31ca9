"""One run of a tree's ./configure: the programs on its PATH, the dialogue, and what it writes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.configure import expected, failures
from tfwright.configure.answering import Answerer
from tfwright.configure.interview import Interview
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, ToolError
from tfwright.tools import files
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command, clean_environment

LAST_THAT_CLEANS = Release(1, 2)
"""Up to here ./configure makes Bazel clean, expunge and fetch, which is not its business here."""
LAST_WITH_SERVER = Release(1, 3)
"""Up to here it starts Bazel without --batch, and leaves a server behind."""
LONGEST_BAZELRC = 1 << 20
"""Bytes; what ./configure writes has a few kilobytes."""


@dataclass(frozen=True)
class ConfigureProgram:
    """The program of a tree that asks the questions, ready to be run."""

    recipe: Recipe
    tree: Path
    interview: Interview
    bazel: Path
    python: Path
    """The target Python."""
    programs: Path
    """The directory that is first on its PATH."""
    home: Path
    log: Path
    epoch: int
    """SOURCE_DATE_EPOCH, in seconds."""

    @property
    def command(self) -> Command:
        """Its run, with the pinned Bazel and the target Python first on the PATH."""
        exports = self.interview.exports()
        clean = clean_environment(self.home, (self.programs,), self.epoch, exports)
        program = self.tree / self.recipe.configure.program
        argv: tuple[str, ...] = (str(program),)
        # People run such a program as `python configure.py`: it need not be executable.
        if program.suffix == ".py" and not os.access(program, os.X_OK):
            argv = (str(self.programs / "python"), *argv)
        return Command(argv, self.tree, clean)

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that it writes for Bazel; the first one is that which the build reads."""
        names = expected.written_files(self.recipe.configure, self.interview.dialect)
        return tuple(self.tree / name for name in names)

    @contextmanager
    def run_answered(self, answerer: Answerer) -> Iterator[None]:
        """Run it to its end, with answers; the block then looks at what it wrote.

        Of that nothing is left of an earlier run, and nothing stays if it, or the block, fails.
        Raises RecipeError or ToolError.
        """
        self._check_program()
        self._write_programs()
        self.remove()
        try:
            self._run(answerer)
            yield
        # BaseException: Ctrl-C in the middle of the questions leaves a half file as well.
        except BaseException:
            self.remove()
            raise

    def _run(self, answerer: Answerer) -> None:
        timeout = self.recipe.configure.timeout
        spoken = dialogue.converse(self.command, self.log, answerer, timeout=timeout)
        # A script that runs out of answers may still end with 0, and write nothing.
        if spoken.status != 0 or not all(path.is_file() for path in self.written):
            # Which of its messages mean the recipe and which the host is known there.
            raise failures.configure_error(
                spoken, self.command, self.log, self.recipe, answerer.asked
            )

    def remove(self) -> None:
        """Remove what it wrote."""
        for path in self.written:
            files.remove(path)

    def text(self) -> str:
        """Return all that it wrote for Bazel."""
        texts = list[str]()
        for path in self.written:
            # The tree decides what lies there: a link could lead to any file of the host, and a
            # pipe has no end.
            plain = path.is_file() and not path.is_symlink()
            if not plain or path.stat().st_size > LONGEST_BAZELRC:
                name = path.relative_to(self.tree)
                raise ToolError(
                    f"./configure made {name} a link, pipe or directory, or longer than "
                    f"{LONGEST_BAZELRC:,} bytes",
                    remedy=f"Add a patch to the recipe, so that ./configure writes {name} as a "
                    "plain file.",
                )
            texts.append(files.text(path))
        return "\n".join(texts)

    def _check_program(self) -> None:
        """Insist that the tree has the program, and name what it has instead."""
        name = self.recipe.configure.program
        path = self.tree / name
        if not path.is_file():
            found = path.parent.glob("configure*")
            others = sorted(program.name for program in found if program.is_file())
            instead = f"; it has {', '.join(others)}" if others else ""
            raise RecipeError(
                f"The source tree has no {name}{instead}",
                remedy="Set 'program' in [configure] to the program that asks the questions.",
            )
        # The kernel takes the carriage return for a part of the interpreter's name.
        with path.open("rb") as script:
            if script.readline(200).endswith(b"\r\n"):
                raise RecipeError(
                    f"{name} has Windows line ends, so the system does not find its shell",
                    remedy="Add a patch to the recipe that replaces them by plain line ends.",
                )

    def _write_programs(self) -> None:
        """Put `bazel`, `python` and `pip` under these very names into the directory for PATH.

        Scripts and no links: a venv's Python that is started through a link does not find its venv.
        """
        dialect = self.interview.dialect
        bazel = f'exec "{self.bazel}"'
        if not dialect.own and dialect.release <= LAST_WITH_SERVER:
            bazel += " --batch"
        # `bazel fetch` would go to the network for minutes, and clean what compile can resume.
        if not dialect.own and dialect.release <= LAST_THAT_CLEANS:
            bazel = f'case "$1" in clean | fetch) exit 0 ;; esac\n{bazel}'
        python = f'exec "{self.python}"'
        pip = f"{python} -m pip"
        lines: Mapping[str, str] = {
            "bazel": bazel,
            "python": python,
            "python3": python,
            "pip": pip,
            "pip3": pip,
        }
        # 1.12 and 1.13 prefer an NCCL that ldconfig knows to the one that the recipe answers.
        if dialect.traits.get("nccl_by_library") and self.interview.answers.get("TF_NEED_CUDA"):
            lines = {**lines, "ldconfig": "exit 0"}
        # What is left from an earlier run, or was put there, would hide the host's own programs.
        files.remove(self.programs)
        for name, line in lines.items():
            files.write(self.programs / name, f'#!/bin/sh\n{line} "$@"\n', mode=0o755)


EDITED_FILES = frozenset(
    {
        "tensorflow/core/common_runtime/gpu/gpu_device.cc",  # 0.8, 0.9: the compute capabilities
        # 0.8 to 1.0: versions, later WITH_ switches
        "tensorflow/core/platform/default/build_config.bzl",
        "tensorflow/stream_executor/dso_loader.cc",  # 0.8, 0.9: the versions of CUDA and cuDNN
        # 0.8, 0.9: compiler, capabilities
        "third_party/gpus/crosstool/clang/bin/crosstool_wrapper_driver_is_not_gcc",
        "third_party/gpus/cuda/platform.bzl",  # 0.9: the versions of CUDA and cuDNN
        "third_party/mpi/mpi.bzl",  # 1.3 to 2.0, with MPI: whose library it is
    }
)
