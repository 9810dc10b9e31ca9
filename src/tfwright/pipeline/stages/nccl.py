"""Rebuilds _nccl_ops.so with the host's compiler, where the recipe asks, and says what is in it.

TensorFlow 1.0 to 1.12 load this library by itself. Where NVIDIA ships no NCCL, as on macOS,
compiling its source alone makes TensorFlow import again, and nothing more: the kernels, and in some
releases the operations, stand under ``#if GOOGLE_CUDA``, so that the usual command gives a library
that can do nothing. It exits 0 all the same, which is why the symbols are read here.
"""

import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from tfwright.documents.recipe import TENSORFLOW_TARGET, CompileTable, NcclTable
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import NCCL_LIBRARY, Built, HostFacts, NcclOps, Tree
from tfwright.pipeline.stage import Artefact, Step
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command

REVISION = 2
FIRST, LAST = Release(1, 0), Release(1, 12)
"""The releases in which the operations are a library of their own."""
SOURCE = "tensorflow/contrib/nccl/ops/nccl_ops.cc"
LIBRARY = NCCL_LIBRARY
FRAMEWORK = "bazel-bin/tensorflow/libtensorflow_framework.so"
RUNFILES = "tensorflow/tools/pip_package/build_pip_package.runfiles/org_tensorflow"
EXTERNAL_HEADERS = (
    "eigen_archive",
    "protobuf_archive/src",
    "com_google_absl",
    "nsync/public",
    "local_config_cuda/cuda",
)
"""Where the headers of other projects lie that TensorFlow's own include, under Bazel's
external/."""


def run(
    job: Job, table: NcclTable, compiling: CompileTable, host: HostFacts, tree: Tree, built: Built
) -> NcclOps:
    """Put the rebuilt library where Bazel put its own; a recipe that does not ask has none."""
    from tfwright.wheel.inspect import library as libraries

    if not table.rebuild:
        return NcclOps(library=None, stub=False)
    # Found before the compiler runs: a release without
    # this library is a fault of the recipe.
    place = _place(tree, built)
    command = _command(job, table, compiling, tree.epoch)
    _output(job).parent.mkdir(parents=True, exist_ok=True)
    remedy = (
        "Correct nccl.flags in the recipe, or CXX in [compile.env]; "
        "nccl.rebuild = false keeps the library that Bazel built."
    )
    runner.run(command, job.log("nccl"), remedy=remedy)
    _replace(place, _output(job))
    # The compiler exits 0 also where every operation was compiled out.
    stub = libraries.registered(place).stub
    result = f": a stub, with which TensorFlow imports; {stub}" if stub else ""
    job.listener.note(f"_nccl_ops.so rebuilt by {host.compiler}{result}")
    return NcclOps(library=Artefact.of(place), stub=bool(stub))


def steps(job: Job, table: NcclTable, compiling: CompileTable, tree: Tree | None) -> Sequence[Step]:
    """Return the compiler's command, if the recipe asks for it."""
    epoch = tree.epoch if tree else 0
    return (_command(job, table, compiling, epoch),) if table.rebuild else ()


def _command(job: Job, table: NcclTable, compiling: CompileTable, epoch: int) -> Command:
    """Return the compiler's command: the recipe's CXX if it sets one, else the host's c++."""
    from tfwright.tools.process import environment

    tree = job.places.tree
    # Relative: where the tree lies would else be in the library, by way of __FILE__.
    fixed = (
        "-shared",
        "-fPIC",
        "-O2",
        "-std=c++11",
        *_system_flags(),
        *(f"-I{os.path.relpath(path, tree)}" for path in _headers(job)),
    )
    argv = (
        compiling.env.get("CXX", "c++"),
        *fixed,
        *table.flags,
        SOURCE,
        *_framework(tree),
        "-o",
        str(_output(job)),
    )
    return Command(argv, tree, environment.clean(job.places.home, epoch=epoch))


def _headers(job: Job) -> list[Path]:
    """Return where the compiler looks for headers: TensorFlow's, generated ones, others'."""
    tree = job.places.tree
    external = job.places.bazel / "external"
    others = (external / name for name in EXTERNAL_HEADERS)
    # A release has only some of them.
    return [tree, tree / "bazel-genfiles", *filter(Path.is_dir, others)]


def _framework(tree: Path) -> tuple[str, ...]:
    """Return the linker arguments for the framework library, which TensorFlow has from 1.4 on.

    The operations call it, and TensorFlow loads it only for the libraries that link to it.
    """
    if not (tree / FRAMEWORK).is_file():
        return ()
    # Relative to the library itself, since the wheel may be installed anywhere.
    origin = "@loader_path" if platform.system() == "Darwin" else "$ORIGIN"
    framework = Path(FRAMEWORK).parent.relative_to("bazel-bin")
    up = os.path.relpath(framework, Path(LIBRARY).parent)
    return (FRAMEWORK, f"-Wl,-rpath,{origin}/{up}")


def _system_flags() -> tuple[str, ...]:
    """Return the flags that permit undefined symbols, which TensorFlow defines at run time.

    Linkers for ELF permit them without a flag.
    """
    return ("-undefined", "dynamic_lookup") if platform.system() == "Darwin" else ()


def _output(job: Job) -> Path:
    return job.places.dist / "nccl" / "_nccl_ops.so"


def _place(tree: Tree, built: Built) -> Path:
    """Return the library that Bazel built; raise RecipeError where there can be, or is, none."""
    if not FIRST <= tree.release <= LAST:
        raise RecipeError(
            f"TensorFlow {tree.release} has no separate _nccl_ops.so; only {FIRST} to {LAST} do",
            remedy="Take nccl.rebuild out of the recipe.",
        )
    place = (tree.path / "bazel-bin" / LIBRARY).resolve()
    if not place.is_file():
        remedy = "Take nccl.rebuild out of the recipe."
        if built.target != TENSORFLOW_TARGET:
            remedy = (
                "Take nccl.rebuild out of the recipe, or build the pip package: "
                f'[compile] target = "{TENSORFLOW_TARGET}"'
            )
        raise RecipeError(
            f"{built.target} built no _nccl_ops.so that could be replaced", remedy=remedy
        )
    return place


def _replace(place: Path, library: Path) -> None:
    """Replace Bazel's library, and the copy in the runfiles unless that is a link to it."""
    for target in _copies(place):
        # Read-only like all that Bazel makes, so that it is replaced and never written to.
        with files.replacing(target, mode=0o555) as temporary:
            shutil.copyfile(library, temporary)


def _copies(place: Path) -> list[Path]:
    """Return where the library is: at its place, and maybe a second time in the runfiles."""
    copy = place.parents[len(Path(LIBRARY).parts) - 1] / RUNFILES / LIBRARY
    # build_pip_package packs the runfiles, so a copy there counts more than the output.
    if copy.is_file() and not copy.samefile(place):
        return [place, copy]
    return [place]
