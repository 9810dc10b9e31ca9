"""Where a wheel's libraries look for NVIDIA's, read from small real ones."""

import platform
import shutil
from pathlib import Path

import pytest
from tests.libraries import compile_library

from tfwright.wheel.binary import elf
from tfwright.wheel.binary.elf import LibraryPart
from tfwright.wheel.inspect import cuda
from tfwright.wheel.inspect.library import Library

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or platform.system() != "Linux",
    reason="there is no gcc that makes ELF files",
)

REQUIRES = ("nvidia-cusparse-cu11 (>=11.7)", "nvidia-nccl-cu11")


def made(folder: Path, name: str, *options: str) -> Path:
    return compile_library(folder / name, "int nothing;\n", "-nostdlib", *options, compiler="gcc")


def library(folder: Path, path: str, search: str, *needed: str, tags: str = "new") -> Library:
    """Return a library of a wheel that looks for others in the directories of `search`."""
    for name in needed:
        made(folder, name, f"-Wl,-soname,{name}")
    dtags = "-Wl,--enable-new-dtags" if tags == "new" else "-Wl,--disable-new-dtags"
    own = made(folder, "own.so", "-Wl,--no-as-needed", dtags, f"-Wl,-rpath,{search}", *needed)
    read, _ = elf.read(own.read_bytes())
    return Library(path, own.stat().st_size, (read,))


def ways(found: Library) -> dict[str, str]:
    """Return how each of NVIDIA's libraries is found."""
    return {
        name: source.how
        for source in cuda.library_sources([found], REQUIRES)
        for name in source.libraries
    }


@pytest.mark.parametrize("origin", ["$ORIGIN", "${ORIGIN}"])
@pytest.mark.parametrize("tags", ["new", "old"])
def test_a_directory_above_the_wheel_is_said_to_be_outside_site_packages(
    tmp_path: Path, origin: str, tags: str
) -> None:
    path, search = "tensorflow_core/libown.so.1", f"{origin}/../../nvidia/cusparse/lib"
    found = library(tmp_path, path, search, "libcusparse.so.11", tags=tags)
    assert ways(found) == {
        "libcusparse.so.11": "site-packages/../nvidia/cusparse/lib, which is outside "
        f"site-packages, then {cuda.SYSTEM}"
    }


@pytest.mark.parametrize(
    ("path", "search"),
    [
        ("tensorflow_core/own.so", "$ORIGIN/../nvidia/cusparse/lib"),
        ("tensorflow/python/own.so", "$ORIGIN/../../nvidia/cusparse/lib"),
        ("tensorflow/python/own.so", "$ORIGIN/../../x/../nvidia/./cusparse/lib/"),
        ("a-1.data/purelib/a/own.so", "$ORIGIN/../nvidia/cusparse/lib"),
    ],
)
def test_a_directory_of_nvidias_packages_is_named_below_site_packages(
    tmp_path: Path, path: str, search: str
) -> None:
    found = library(tmp_path, path, search, "libcusparse.so.11")
    assert ways(found) == {
        "libcusparse.so.11": "site-packages/nvidia/cusparse/lib of pip's "
        f"nvidia-cusparse-cu11, which its metadata names, then {cuda.SYSTEM}"
    }


def test_only_directories_that_fit_a_library_are_named(tmp_path: Path) -> None:
    packages = ("cublas", "cusparse", "nccl", "cuda_runtime")
    search = ":".join(f"$ORIGIN/../nvidia/{name}/lib" for name in packages)
    needed = ("libnccl.so.2", "libcusparse.so.11", "libcufft.so.10", "libcudart.so.11.0")
    found = library(tmp_path, "tensorflow/own.so", f"{search}:$ORIGIN/../_solib_k8", *needed)
    assert ways(found) == {
        "libnccl.so.2": "site-packages/nvidia/nccl/lib of pip's nvidia-nccl-cu11, which its "
        f"metadata names, then {cuda.SYSTEM}",
        "libcusparse.so.11": "site-packages/nvidia/cusparse/lib of pip's nvidia-cusparse-cu11, "
        f"which its metadata names, then {cuda.SYSTEM}",
        "libcufft.so.10": f"only by {cuda.SYSTEM}",
        "libcudart.so.11.0": "site-packages/nvidia/cuda_runtime/lib of pip's "
        f"nvidia-cuda-runtime, which its metadata does not name, then {cuda.SYSTEM}",
    }


def test_what_is_opened_by_name_is_found_in_the_packages_of_the_search_path(tmp_path: Path) -> None:
    search = "$ORIGIN/../nvidia/cudnn/lib:$ORIGIN/../../nvidia/nccl/lib:/opt/nvidia/x/lib"
    near = library(tmp_path, "tensorflow/own.so", search)
    deep = library(tmp_path, "tensorflow/python/own.so", "$ORIGIN/../../nvidia/cublas/lib")
    assert cuda.reachable_packages([near, deep]) == ("cublas", "cudnn")


def test_many_directories_are_counted(tmp_path: Path) -> None:
    search = ":".join(f"/opt/cuda-{number}/lib64" for number in range(9))
    found = library(tmp_path, "tensorflow/own.so", search, "libcudart.so.11.0")
    assert ways(found) == {
        "libcudart.so.11.0": "/opt/cuda-0/lib64, a fixed place, then /opt/cuda-1/lib64, a fixed "
        f"place, then 7 more places, then {cuda.SYSTEM}"
    }


def test_a_name_that_only_begins_like_the_origin_is_a_working_directory(tmp_path: Path) -> None:
    search = "$ORIGINAL/lib::${ORIGIN}/x:$ORIGIN"
    found = library(tmp_path, "tensorflow/own.so", search)
    assert [note for note in found.notes() if note.startswith("looks for")] == [
        "looks for libraries in $ORIGINAL/lib, ., below whatever directory it is started in"
    ]


def test_the_driver_is_found_with_itself_and_never_in_the_wheel(tmp_path: Path) -> None:
    found = library(tmp_path, "tensorflow/own.so", "$ORIGIN", "libcuda.so.1", "libm.so.6")
    assert ways(found) == {"libcuda.so.1": "with NVIDIA's driver"}


def mac(*needed: str, search: tuple[str, ...] = ()) -> Library:
    said = LibraryPart(system="macOS", machine="x86_64", needed=needed, search=search)
    return Library("tensorflow/own.so", 1, (said,))


def test_libraries_of_a_mac_are_found_as_its_loader_looks_for_them() -> None:
    found = mac(
        "@rpath/libcudart.9.2.dylib",
        "/usr/local/cuda/lib/libcublas.9.2.dylib",
        "/usr/local/cuda/lib/libcuda.dylib",
    )
    assert ways(found) == {
        "/usr/local/cuda/lib/libcuda.dylib": "with NVIDIA's driver",
        "@rpath/libcudart.9.2.dylib": "only by DYLD_LIBRARY_PATH",
        "/usr/local/cuda/lib/libcublas.9.2.dylib": "at /usr/local/cuda/lib, a fixed place",
    }


def test_a_library_of_nvidia_in_the_wheel_is_said_to_be_there() -> None:
    carried = Library("tensorflow/libcudart.9.2.dylib", 1)
    (source,) = cuda.library_sources([mac("@rpath/libcudart.9.2.dylib"), carried], ["numpy"])
    assert source.how == "inside the wheel"
