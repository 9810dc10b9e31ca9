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
from tfwright.errors import RecipeError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import NCCL_LIBRARY, Built, HostFacts, NcclOps, Tree
from tfwright.pipeline.stage import Artefact, Step
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command

REVISION = 2
SOURCE = "tensorflow/contrib/nccl/ops/nccl_ops.cc"
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
    # Found before the compiler runs: a target without this library is a fault of the recipe.
    place = _bazel_library(tree, built)
    command = _command(job, table, compiling, tree.epoch)
    output = _rebuilt_library(job)
    output.parent.mkdir(parents=True, exist_ok=True)
    remedy = (
        "Correct nccl.flags in the recipe, or CXX in [compile.env]; "
        "nccl.rebuild = false keeps the library that Bazel built."
    )
    runner.run(command, job.log("nccl"), remedy=remedy)
    targets = [place]
    # build_pip_package packs the runfiles, so a copy there counts more than the output.
    copy = place.parents[len(Path(NCCL_LIBRARY).parts) - 1] / RUNFILES / NCCL_LIBRARY
    if copy.is_file() and not copy.samefile(place):
        targets.append(copy)
    for target in targets:
        # Read-only like all that Bazel makes, so that it is replaced and never written to.
        with files.replacing(target, mode=0o555) as temporary:
            shutil.copyfile(output, temporary)
    # The compiler exits 0 also where every operation was compiled out.
    stub = libraries.stub_reason(place)
    result = f": a stub, with which TensorFlow imports; {stub}" if stub else ""
    job.listener.note(f"_nccl_ops.so rebuilt by {host.compiler}{result}")
    return NcclOps(library=Artefact.of(place), stub=bool(stub))


def steps(job: Job, table: NcclTable, compiling: CompileTable, tree: Tree | None) -> Sequence[Step]:
    """Return the compiler's command, if the recipe asks for it."""
    epoch = tree.epoch if tree else 0
    return (_command(job, table, compiling, epoch),) if table.rebuild else ()


def _command(job: Job, table: NcclTable, compiling: CompileTable, epoch: int) -> Command:
    """Return the compiler's command: the recipe's CXX if it sets one, else the host's c++."""
    from tfwright.tools.process.command import clean_environment

    tree, external = job.places.tree, job.places.bazel / "external"
    mac = platform.system() == "Darwin"
    # A release has only some of the others' headers.
    others = filter(Path.is_dir, (external / name for name in EXTERNAL_HEADERS))
    headers = (tree, tree / "bazel-genfiles", *others)
    framework: tuple[str, ...] = ()
    # TensorFlow has it from 1.4 on; the operations call it, and TensorFlow loads it only for the
    # libraries that link to it. Relative to the library: the wheel may be installed anywhere.
    if (tree / FRAMEWORK).is_file():
        folder = Path(FRAMEWORK).parent.relative_to("bazel-bin")
        up = os.path.relpath(folder, Path(NCCL_LIBRARY).parent)
        framework = (FRAMEWORK, f"-Wl,-rpath,{'@loader_path' if mac else '$ORIGIN'}/{up}")
    argv = (
        compiling.env.get("CXX", "c++"),
        "-shared",
        "-fPIC",
        "-O2",
        "-std=c++11",
        # TensorFlow defines the undefined symbols at run time; linkers for ELF permit them.
        *(("-undefined", "dynamic_lookup") if mac else ()),
        # Relative: where the tree lies would else be in the library, by way of __FILE__.
        *(f"-I{os.path.relpath(path, tree)}" for path in headers),
        *table.flags,
        SOURCE,
        *framework,
        "-o",
        str(_rebuilt_library(job)),
    )
    return Command(argv, tree, clean_environment(job.places.home, epoch=epoch))


def _rebuilt_library(job: Job) -> Path:
    return job.places.dist / "nccl" / "_nccl_ops.so"


def _bazel_library(tree: Tree, built: Built) -> Path:
    """Return the library that Bazel built; raise RecipeError where there is none."""
    remedy = "Take nccl.rebuild out of the recipe"
    place = (tree.path / "bazel-bin" / NCCL_LIBRARY).resolve()
    if not place.is_file():
        other = f', or build the pip package: [compile] target = "{TENSORFLOW_TARGET}"'
        raise RecipeError(
            f"{built.target} built no _nccl_ops.so that could be replaced",
            remedy=f"{remedy}." if built.target == TENSORFLOW_TARGET else remedy + other,
        )
    return place
