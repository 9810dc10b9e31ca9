"""GPU code of a real nvcc: what tfwright says about it is what NVIDIA's own tools say."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tfwright.wheel.inspect import inspection

pytestmark = [pytest.mark.real, pytest.mark.slow]
NVCC = shutil.which("nvcc")
"""Whose host compiler may be given by NVCC_PREPEND_FLAGS=-ccbin=…, as nvcc itself reads it."""
KERNEL = """\
__global__ void twice(float* values) { values[threadIdx.x] *= 2; }
extern "C" void run(float* values) { twice<<<1, 32>>>(values); }
"""
CODE = ("-gencode=arch=compute_75,code=sm_75", "-gencode=arch=compute_86,code=[sm_86,compute_86]")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a shared library with code for two GPUs, and PTX for later ones."""
    if NVCC is None:
        pytest.skip("no nvcc on PATH")
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "twice.cu").write_text(KERNEL)
    made = folder / "_twice.so"
    command = [NVCC, "--shared", "-Xcompiler=-fPIC", *CODE, "-o", str(made), "twice.cu"]
    subprocess.run(command, cwd=folder, check=True)
    return made


def wheel_of(library: Path) -> Path:
    """Return a wheel that holds nothing but the library."""
    wheel = library.with_name("twice-1.0-py3-none-linux_x86_64.whl")
    metadata = {
        "METADATA": "Metadata-Version: 2.1\nName: twice\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.write(library, "twice/_twice.so")
        for name, content in metadata.items():
            packed.writestr(f"twice-1.0.dist-info/{name}", content)
    return wheel


def architectures(library: Path) -> tuple[str, ...]:
    """Return what tfwright says about the GPU code of a library."""
    summary = inspection.inspect(wheel_of(library), None).summary
    assert summary is not None
    return tuple(summary.gpu)


def test_inspect_lists_the_architectures_that_nvcc_compiled_for(library: Path) -> None:
    assert architectures(library) == ("sm_75", "sm_86", "compute_86")


def test_inspect_agrees_with_cuobjdump(library: Path) -> None:
    # An older one than the compiler cannot read its output.
    program = Path(NVCC or "").with_name("cuobjdump")
    if not program.is_file():
        pytest.skip("no cuobjdump next to nvcc")
    listed = subprocess.run(
        [str(program), "--list-elf", "--list-ptx", str(library)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    native = [name for name in architectures(library) if name.startswith("sm_")]
    assert all(f".{name}." in listed for name in native)
