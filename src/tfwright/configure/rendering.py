"""The file that Bazel reads, rendered from the answers."""

import os
import platform
import re
from pathlib import Path

from tfwright.configure import stanzas
from tfwright.configure.bazelrc import FIRST_OWN_FILE
from tfwright.configure.catalogue import Answer, Answers
from tfwright.configure.interview import Interview, as_text
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.tools import render as templates
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, open_container

TEMPLATE = "tf_configure.bazelrc.j2"


def render(interview: Interview) -> str:
    """Return the file that ./configure writes for these answers.

    The answers must be complete: see `Interview.unanswered`. Raises RecipeError for one that only
    the ./configure of this commit wants, and no release that calls itself so.
    """
    dialect = interview.dialect
    written = written_answers(interview)
    features = [
        (prompt.feature, prompt.variable)
        for prompt in dialect.prompts
        if prompt.feature and prompt.variable in written
    ]
    # ./configure runs the program to learn its version; a plan must work on hosts without it.
    clang = "CLANG_CUDA_COMPILER_PATH" if written["TF_NEED_CUDA"] else "CLANG_COMPILER_PATH"
    clang_version = re.search(r"(?:llvm|clang)-(\d+)", str(written.get(clang, "")))
    values = {
        "answers": written,
        "by": interview.by,
        "clang_major": clang_version[1] if clang_version else "",
        "features": features,
        "python_major": interview.python.partition(".")[0],
        "release": dialect.release,
        "system": dialect.system,
        "traits": dialect.traits,
    }
    try:
        return templates.render(TEMPLATE, values)
    except templates.MissingValueError as fault:
        variable = fault.args[0]
        raise RecipeError(
            f"The ./configure of this commit writes {variable}, which the recipe does not answer",
            remedy=f'Add to the recipe {stanzas.WHERE}:\n[configure.answers]\n{variable} = "..."',
        ) from fault


def written_answers(interview: Interview) -> dict[str, Answer]:
    """Return the answers as the version writes them: it cuts versions and follows links."""
    writer = _AnswerWriter(interview)
    answers = {
        variable: writer.written_value(variable, value)
        if isinstance(value, str) and value
        else value
        for variable, value in interview.answers.items()
    }
    # After the others: where a library lies depends on its version, which may have been cut.
    if "TENSORRT_INSTALL_PATH" in answers:
        answers["TENSORRT_INSTALL_PATH"] = writer.library_folder(answers)
    if writer.traits["nccl_by_library"] and "NCCL_INSTALL_PATH" in answers:
        answers["NCCL_INSTALL_PATH"] = writer.nccl_folder(answers)
    return answers


_KEPT_PARTS = {"TF_CUDA_VERSION": 2, "TF_CUDNN_VERSION": 1}
"""How many numbers of a version remain where versions are cut."""
_NCCL_FOLDERS = ("lib", "lib64", "lib/powerpc64le-linux-gnu", "lib/x86_64-linux-gnu", "")
"""Where configure looks for NCCL's library, in this order."""


class _AnswerWriter:
    """What one ./configure makes of single answers."""

    def __init__(self, interview: Interview) -> None:
        dialect = interview.dialect
        self.by, self.release, self.traits = interview.by, dialect.release, dialect.traits
        # Links of another system cannot be followed here.
        self.follows = dialect.system == platform.system()

    def written_value(self, variable: str, value: str) -> str:
        traits = self.traits
        # 1.7 to 1.13 cut versions: CUDA to two numbers, cuDNN to one.
        if traits["versions_cut"] and variable in _KEPT_PARTS:
            return _cut(value, _KEPT_PARTS[variable])
        if traits["nccl_version_cut"] and variable == "TF_NCCL_VERSION":
            return _cut(value, 1)
        if variable.endswith("COMPUTE_CAPABILITIES") and traits["capabilities_joined"]:
            return "".join(value.split())
        if variable == "TF_SYSTEM_LIBS":
            # As configure sorts them, which keeps a blank behind a comma.
            separator = "," if "," in value or not traits["system_libs_by_blanks"] else None
            return ",".join(sorted(value.split(separator)))
        is_path = value.startswith(("/", "~"))
        return (
            _resolve_links(value)
            if is_path and self.follows and self._follows_links(variable, value)
            else value
        )

    def _follows_links(self, variable: str, path: str) -> bool:
        """Say whether the version writes what the links of a path lead to, instead of the path."""
        traits = self.traits
        match variable:
            case "CUDNN_INSTALL_PATH":
                # The bash scripts before 1.4 resolve the path only where it was typed.
                return self.release >= Release(1, 4) or self.by == "dialogue"
            case "NCCL_INSTALL_PATH" | "TENSORRT_INSTALL_PATH":
                return True
            case "CUDA_TOOLKIT_PATH":
                return traits["cuda_found"] and traits["cuda_links_followed"]
            case "GCC_HOST_COMPILER_PATH":
                return traits["compiler_links_followed"] and (
                    # Before 2.12 a compiler that is not a link keeps its path, whatever its
                    # directory is.
                    traits["folder_links_followed"] or _is_link(path)
                )
            case "CLANG_COMPILER_PATH" | "CLANG_CUDA_COMPILER_PATH":
                return traits["clang_choice"]
            case _:
                return False

    def library_folder(self, answers: Answers) -> str:
        """Return where TensorRT's library really lies: configure writes that."""
        prefix = Path(str(answers["TENSORRT_INSTALL_PATH"]))
        name = f"libnvinfer.so.{answers.get('TF_TENSORRT_VERSION', '')}"
        for folder in (prefix, prefix / "lib", prefix / "lib64") if self.follows else ():
            for link in sorted(folder.glob("libnvinfer.so*")):
                if (found := link.resolve()).name == name:
                    return str(found.parent)
        return str(prefix)

    def nccl_folder(self, answers: Answers) -> str:
        """Return the folder of NCCL's library, which 1.12 and 1.13 write instead of the answer."""
        prefix = str(answers["NCCL_INSTALL_PATH"])
        name = f"libnccl.so.{answers.get('TF_NCCL_VERSION', '')}"
        for folder in _NCCL_FOLDERS if self.follows else ():
            if Path(prefix, folder, name).exists():
                return str(Path(prefix, folder))
        # On a host without the library, as in a plan, its first place is assumed.
        return f"{prefix}/lib"


def _cut(version: str, parts: int) -> str:
    """Return a version with exactly so many numbers: 9.2.148 is 9.2, and 9 is 9.0."""
    # CUDA 9 becomes 9.0, as configure.py fills it up to the parts that it keeps.
    return ".".join([*version.split("."), *["0"] * parts][:parts])


def _resolve_links(path: str) -> str:
    """Return what the links of a path lead to: in the container, if ./configure runs in one."""
    # configure itself calls these two, and pathlib treats '..' in another way.
    home = os.path.expanduser(path)  # noqa: PTH111
    if open_container():
        return runner.short_output(Command.of_system("readlink", "-m", home)).strip() or home
    return os.path.realpath(home)


def _is_link(path: str) -> bool:
    if open_container():
        return bool(runner.short_output(Command.of_system("readlink", path)).strip())
    return Path(path).is_symlink()


def exported_answers(interview: Interview) -> dict[str, str]:
    """Return the answers that a build needs in its environment, because no file carries them.

    0.10 to 1.1 export what the CUDA and OpenCL questions were answered with, and their
    repository rules read it there; 0.8 and 0.9 write it into their sources.
    """
    if not Release(0, 10) <= interview.dialect.release < FIRST_OWN_FILE:
        return {}
    answers = interview.answers
    return {name: as_text(answers[name], "1", "0") for name in _EXPORTED if name in answers}


_EXPORTED = (
    "TF_NEED_CUDA",
    "TF_NEED_OPENCL",
    "GCC_HOST_COMPILER_PATH",
    "CUDA_TOOLKIT_PATH",
    "TF_CUDA_VERSION",
    "CUDNN_INSTALL_PATH",
    "TF_CUDNN_VERSION",
    "TF_CUDA_COMPUTE_CAPABILITIES",
    "HOST_CXX_COMPILER",
    "HOST_C_COMPILER",
    "COMPUTECPP_TOOLKIT_PATH",
)
