import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_program
from tests.results import facts_of, tree_of

from tfwright.documents.recipe import PATCHES, TENSORFLOW_TARGET, CompileTable, NcclTable
from tfwright.errors import RecipeError, ToolError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import NCCL_LIBRARY, Built, NcclOps
from tfwright.pipeline.stages import nccl

DEMO = Path(nccl.__file__).parents[2] / "demo" / "tree"
CUDA = "-DGOOGLE_CUDA=1"

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


@pytest.fixture
def built(job: RecipeJob) -> RecipeJob:
    """Return a job whose tree is the demo's, with the read-only library that Bazel would have put there."""
    shutil.copytree(DEMO, job.places.tree)
    shutil.copy(PATCHES / "demo" / "nccl.h", job.places.tree / "third_party" / "nccl")
    output = job.places.bazel / "execroot" / "bin"
    library = make_file(output / NCCL_LIBRARY, b"Bazel's")
    library.chmod(0o555)
    (job.places.tree / "bazel-bin").symlink_to(output)
    job.places.home.mkdir()
    return job


def run(job: RecipeJob, table: NcclTable, env: dict[str, str] | None = None) -> NcclOps:
    built = Built(target=TENSORFLOW_TARGET, outputs=(), actions=1)
    compiling, host = CompileTable(env=env or {}), facts_of(compiler="c++ 12")
    return nccl.run(job, table, compiling, host, tree_of(job), built)


def test_a_recipe_that_does_not_ask_keeps_what_bazel_built(job: RecipeJob) -> None:
    assert run(job, NcclTable()) == NcclOps(library=None, stub=False)
    assert nccl.steps(job, NcclTable(), CompileTable(), None) == ()


def test_the_usual_rebuild_gives_a_library_without_operations_and_says_so(
    built: RecipeJob, notes: list[str]
) -> None:
    made = run(built, NcclTable(rebuild=True))
    assert made.stub
    assert notes == [
        "_nccl_ops.so rebuilt by c++ 12: a stub, with which TensorFlow imports; it registers no operation"
    ]


def test_the_library_takes_the_place_of_bazels_and_is_read_only_like_it(built: RecipeJob) -> None:
    made = run(built, NcclTable(rebuild=True)).library
    assert made
    assert made.path == (built.places.tree / "bazel-bin" / NCCL_LIBRARY).resolve()
    assert made.path.read_bytes() != b"Bazel's"
    assert made.path.stat().st_mode & 0o777 == 0o555


@pytest.mark.medium
def test_with_cuda_defined_the_operation_is_in_it_and_has_no_kernel(
    built: RecipeJob, notes: list[str]
) -> None:
    assert run(built, NcclTable(rebuild=True, flags=(CUDA,))).stub
    assert notes == [
        "_nccl_ops.so rebuilt by c++ 12: a stub, with which TensorFlow imports; its operations have no kernel"
    ]


@pytest.mark.medium
def test_it_finds_what_it_calls_in_tensorflows_framework_library_by_itself(
    built: RecipeJob,
) -> None:
    framework = built.places.tree / nccl.FRAMEWORK
    (built.places.tree / "framework.cc").write_text(
        "int unchanged_shape() { return 1; }\n", "utf-8"
    )
    argv = [
        "c++",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libtensorflow_framework.so",
        "framework.cc",
        "-o",
        str(framework),
    ]
    subprocess.run(argv, cwd=built.places.tree, check=True)
    (built.places.tree / nccl.SOURCE).write_text(
        'int unchanged_shape();\nextern "C" int called() { return unchanged_shape(); }\n', "utf-8"
    )
    library = run(built, NcclTable(rebuild=True)).library
    assert library
    load = (
        f"import ctypes, os; assert ctypes.CDLL({str(library.path)!r}, os.RTLD_NOW).called() == 1"
    )
    subprocess.run([sys.executable, "-c", load], check=True)


def test_where_the_tree_lies_is_not_in_the_library(built: RecipeJob) -> None:
    make_file(built.places.tree / nccl.SOURCE, '#include "where.h"\n')
    (built.places.tree / "where.h").write_text(
        'extern "C" const char* where() { return __FILE__; }\n', "utf-8"
    )
    library = run(built, NcclTable(rebuild=True)).library
    assert library
    assert b"where.h" in library.path.read_bytes()
    assert str(built.places.tree).encode() not in library.path.read_bytes()


def test_a_copy_in_the_runfiles_is_replaced_as_well(built: RecipeJob) -> None:
    copy = make_file(built.places.tree / "bazel-bin" / nccl.RUNFILES / NCCL_LIBRARY, b"Bazel's")
    made = run(built, NcclTable(rebuild=True)).library
    assert made
    assert copy.read_bytes() == made.path.read_bytes()


def test_a_link_in_the_runfiles_stays_a_link(built: RecipeJob) -> None:
    link = built.places.tree / "bazel-bin" / nccl.RUNFILES / NCCL_LIBRARY
    link.parent.mkdir(parents=True)
    link.symlink_to(built.places.bazel / "execroot" / "bin" / NCCL_LIBRARY)
    run(built, NcclTable(rebuild=True))
    assert link.is_symlink()
    assert link.read_bytes() != b"Bazel's"


@pytest.mark.medium
def test_the_library_is_the_same_wherever_the_tree_lies(built: RecipeJob, tmp_path: Path) -> None:
    first = run(built, NcclTable(rebuild=True, flags=(CUDA,))).library
    moved = tmp_path / "elsewhere"
    shutil.copytree(built.places.build_out, moved, symlinks=True)
    other = dataclasses.replace(built, host_file=built.host_file.changed(build_out=moved))
    second = run(other, NcclTable(rebuild=True, flags=(CUDA,))).library
    assert first
    assert second
    assert first.sha256 == second.sha256


def test_a_build_that_made_no_such_library_is_refused(built: RecipeJob) -> None:
    (built.places.tree / "bazel-bin" / NCCL_LIBRARY).unlink()
    with fails(RecipeError, "_nccl_ops.so"):
        run(built, NcclTable(rebuild=True))


def test_a_compile_error_is_shown_and_bazels_library_stays(built: RecipeJob) -> None:
    (built.places.tree / "third_party" / "nccl" / "nccl.h").unlink()
    with pytest.raises(ToolError) as caught:
        run(built, NcclTable(rebuild=True, flags=(CUDA,)))
    assert any("nccl.h" in line for line in caught.value.evidence.lines)
    assert (built.places.tree / "bazel-bin" / NCCL_LIBRARY).read_bytes() == b"Bazel's"


def test_the_compiler_that_the_recipe_gives_bazel_is_the_one(
    built: RecipeJob, tmp_path: Path
) -> None:
    compiler = make_program(tmp_path / "my-c++", '#!/bin/sh\necho mine\nexec c++ "$@"\n')
    run(built, NcclTable(rebuild=True), env={"CXX": str(compiler)})
    assert built.log("nccl").read_text("utf-8") == "mine\n"
