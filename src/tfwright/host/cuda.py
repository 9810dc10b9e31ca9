"""Where a recipe expects CUDA and cuDNN on this host, and which GPUs it builds for."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_older, version_numbers
from tfwright.host.place import Place

HERMETIC_SINCE = Release(2, 18)
"""From here on Bazel downloads CUDA; https://www.tensorflow.org/install/source says how."""
LOCAL_CLANG = frozenset({"--config=clang_local", "--config=release_arm64_linux"})
"""Flags that take the host's compiler where Bazel would download one."""
BY_CLANG = frozenset(
    f"--config={name}" for name in ("cuda_clang", "cuda_clang_official", "release_gpu_linux")
)
"""Flags with which clang compiles the kernels: the others of .bazelrc expand to the first."""

CAPABILITIES = ("TF_CUDA_COMPUTE_CAPABILITIES", "HERMETIC_CUDA_COMPUTE_CAPABILITIES")
"""What names the GPUs to compile for: with the host's CUDA, and with one that Bazel downloads."""


def capabilities_variable(answers: Collection[str]) -> str:
    """Return which of the answers names the GPUs: from 2.18 on the second of `CAPABILITIES`."""
    return CAPABILITIES[CAPABILITIES[1] in answers]


def uses_cuda(recipe: Recipe) -> bool:
    """Say whether the recipe builds with CUDA, wherever that comes from."""
    return recipe.configure.agrees_to("TF_NEED_CUDA")


@dataclass(frozen=True)
class Stated:
    """What a recipe says of variables: the command line comes after ./configure's file."""

    answers: Mapping[str, bool | str]
    flags: Sequence[str]

    @classmethod
    def by(cls, recipe: Recipe) -> "Stated":
        """Return what a recipe says."""
        return cls(recipe.configure.answers, recipe.compile.flags)

    def of(self, variable: str) -> str:
        """Return the value of a variable; empty if neither states it."""
        return self.flag(variable) or self.answer(variable)

    def flag(self, variable: str) -> str:
        """Return what the flags say."""
        pattern = re.compile(rf"--(?:repo_env|action_env)=(?i:{variable})=(.*)")
        found = [match[1] for flag in self.flags if (match := pattern.fullmatch(flag))]
        return found[-1] if found else ""

    def answer(self, variable: str) -> str:
        """Return what the answers say."""
        value = self.answers.get(variable)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class CudaInForce:
    """The CUDA that a build takes, whichever of a recipe's parts, or its tree, says it."""

    version: str
    """Empty if nothing says it."""
    cudnn: str
    architectures: tuple[str, ...]
    """``sm_120`` is machine code, ``compute_120`` PTX."""
    downloaded: bool = False
    """Whether Bazel downloads it, and not the host has it."""
    clang: str = ""
    """The clang that compiles device code, if its version is known; empty with nvcc."""
    by_default: bool = False
    """Whether the tree chose the version, because the recipe leaves it open."""

    @property
    def capabilities(self) -> list[str]:
        """The compute capabilities that it makes machine code for, as ``12.0``."""
        return list(dict.fromkeys(code_capabilities(self.architectures)))


def downloading_clang(recipe: Recipe) -> compatibility.Hermetic | None:
    """Return what is known of the tree, if its Bazel downloads a clang and the recipe lets it."""
    tree = compatibility.hermetic(recipe.source.release)
    # .bazelrc itself sets clang_local for macOS.
    local = LOCAL_CLANG & {*recipe.compile.flags} or recipe.host.system == "Darwin"
    return tree if tree and tree.clang_downloaded and not local else None


def compiled_by_clang(recipe: Recipe) -> bool:
    """Say whether clang compiles the kernels, by an answer or by a flag."""
    by_flag = not BY_CLANG.isdisjoint(recipe.compile.flags)
    return by_flag or recipe.configure.agrees_to("TF_CUDA_CLANG")


def in_force(recipe: Recipe, tree: compatibility.Hermetic | None) -> CudaInForce | None:
    """Return the CUDA of a recipe; None for one without.

    `tree` is what Bazel downloads where the recipe is silent, as `hermetic.downloads` returns it.
    """
    if not uses_cuda(recipe):
        return None
    stated, clang = Stated.by(recipe), compiled_by_clang(recipe)
    elsewhere = recipe.source.own_interface
    tree = None if elsewhere else tree
    variable = CAPABILITIES[tree is not None]
    gpus = stated.flag(variable)
    if not gpus and clang and not elsewhere:
        # This configuration of the tree states them again, after those of ./configure.
        release = recipe.source.release
        set_again = tree.clang_architectures if tree else compatibility.clang_configuration(release)
        gpus = ",".join(set_again)
    gpus = gpus or stated.answer(variable)
    if tree is None:
        return CudaInForce(
            recipe.host.cuda or stated.of("TF_CUDA_VERSION"),
            recipe.host.cudnn or stated.of("TF_CUDNN_VERSION"),
            tuple(architectures(gpus)),
        )
    gpus = gpus or "3.5,7.0"
    named = re.search(r"(?:llvm|clang)-(\d+)", stated.of("CLANG_CUDA_COMPILER_PATH"))
    own = downloading_clang(recipe)
    used = own.clang if own else named[1] if named else ""
    version = stated.of("HERMETIC_CUDA_VERSION")
    # Rules ask a local cuDNN for its version, and the recipe for that of a local CUDA.
    local_cudnn = stated.of("LOCAL_CUDNN_PATH") and recipe.host.cudnn
    return CudaInForce(
        version or tree.cuda,
        local_cudnn or stated.of("HERMETIC_CUDNN_VERSION") or tree.cudnn,
        tuple(architectures(gpus)),
        downloaded=True,
        clang=used if clang else "",
        by_default=not version,
    )


def architectures(stated: str) -> Iterator[str]:
    """Yield what a list of compute capabilities compiles to: 12.0 is machine code and PTX."""
    for name in filter(None, stated.replace(" ", "").split(",")):
        if name.startswith("sm_"):
            yield name
        else:
            number = name.removeprefix("compute_").replace(".", "")
            yield from (f"sm_{number}", f"compute_{number}")


def needs_toolkit(recipe: Recipe) -> bool:
    """Say whether the recipe builds with a CUDA that must be installed."""
    return uses_cuda(recipe) and recipe.source.release < HERMETIC_SINCE


@dataclass(frozen=True)
class CudaPlaces:
    """Where the CUDA of a recipe lies: as the host file says, else as the recipe says."""

    recipe: Recipe
    host_file: HostFile

    @property
    def toolkit(self) -> Path:
        """Where the toolkit must be."""
        return (
            self.host_file.cuda
            or self._path_answered("CUDA_TOOLKIT_PATH")
            or Path("/usr/local/cuda")
        )

    @property
    def cudnn(self) -> Path:
        """Where cuDNN must be: by default with the toolkit, as TensorFlow has it."""
        return self.host_file.cudnn or self._path_answered("CUDNN_INSTALL_PATH") or self.toolkit

    @property
    def prefixes(self) -> list[Path]:
        """Where CUDA's libraries may be: from 1.14 on, in any of TF_CUDA_PATHS."""
        paths = str(self.recipe.configure.answers.get("TF_CUDA_PATHS") or "").split(",")
        named = [Path(path) for path in paths if path]
        # A dictionary keeps the order, in which the first place that has a library wins.
        return list(dict.fromkeys([self.cudnn, *named]))

    @property
    def of_host(self) -> bool:
        """Whether they are on the host, where an image sees what the host file names.

        Otherwise they are in the image, whose digest decides what is there.
        """
        return self.recipe.host.image is None or self.host_file.cuda is not None

    def present_paths(self, place: Place) -> tuple[Path | None, Path | None]:
        """Return the toolkit and the cuDNN that the recipe needs and a host has."""
        found = (self.toolkit, self.cudnn) if needs_toolkit(self.recipe) else (None, None)
        toolkit, cudnn = (path if path and place.exists(path) else None for path in found)
        return toolkit, cudnn

    def _path_answered(self, variable: str) -> Path | None:
        """Return the path that the recipe answers: from 1.14 on the first of TF_CUDA_PATHS."""
        answers = self.recipe.configure.answers
        path = str(answers.get(variable) or answers.get("TF_CUDA_PATHS") or "").partition(",")[0]
        return Path(path) if path else None


def code_capabilities(names: Iterable[str]) -> list[str]:
    """Return the compute capabilities of some GPU code, which is named ``sm_120`` or ``12.0``."""
    # compute_120 is PTX, which the driver compiles, and lto_120 is for a linker.
    return [capability(name) for name in names if not name.startswith(("compute_", "lto_"))]


def ptx_capabilities(names: Iterable[str]) -> list[str]:
    """Return the compute capabilities whose PTX is among some GPU code: ``compute_120`` is 12.0."""
    return [capability(name) for name in names if name.startswith("compute_")]


def capability(text: str) -> str:
    """Return a compute capability as NVIDIA writes it, ``3.0``, from that or from ``sm_30``."""
    # The last digit is the minor version: sm_120 is 12.0.
    found = re.fullmatch(r"(?:sm_?|compute_)(\d+)(\d)[af]?", text)
    return f"{found[1]}.{found[2]}" if found else text.rstrip("af")


def runs_on(built: list[str], gpu: str) -> bool:
    """Say whether machine code for some compute capabilities runs on a GPU."""
    # It runs on GPUs of the same major version whose minor version is the same or higher.
    major = version_numbers(gpu)[:1]
    # No number at all: an index is written by strangers, and a recipe by people.
    alike = [made_for for made_for in built if version_numbers(made_for)[:1] == major]
    return any(not is_older(gpu, made_for) for made_for in alike)
