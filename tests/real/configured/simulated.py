"""What ./configure looks for on a host, simulated by the files that it looks at."""

import subprocess
from pathlib import Path

from tfwright.documents.release import Release
from tfwright.facts import compatibility

STAND_INS = ("cublas", "cupti", "cufft", "curand", "cusolver", "cusparse")


def toolkit(root: Path, cuda: str, cudnn: str) -> Path:
    """Simulate a CUDA toolkit with cuDNN and NCCL in it."""
    major, minor = cuda.split(".")[:2]
    first, *_ = cudnn.split(".")
    short = f"{major}.{minor}"
    texts = {
        **_headers(cuda, cudnn),
        **{f"lib64/lib{name}.so": "" for name in STAND_INS},
        **{f"lib64/lib{name}.so.{short}": "" for name in STAND_INS},
        "lib/libnccl.so.2": "",
        f"lib/libcudart.{short}.dylib": "",
        f"lib/libcudnn.{first}.dylib": "",
        "nvvm/libdevice/libdevice.10.bc": "",
        f"extras/CUPTI/lib64/libcupti.so.{short}": "",
        "bin/nvcc": f"#!/bin/sh\necho 'Cuda compilation tools, release {short}, V{short}.130'\n",
    }
    write(root, texts)
    (root / "bin/nvcc").chmod(0o755)
    for version in {"", f".{short}", f".{cuda}"}:
        library(root / f"lib64/libcudart.so{version}", f"libcudart.so.{short}")
    for version in {first, cudnn, cudnn.rpartition(".")[0]}:
        library(root / f"lib64/libcudnn.so.{version}", f"libcudnn.so.{first}")
    return root


def _headers(cuda: str, cudnn: str) -> dict[str, str]:
    major, minor = cuda.split(".")[:2]
    numbers = dict(zip(("MAJOR", "MINOR", "PATCHLEVEL"), [*cudnn.split("."), "0"], strict=False))
    return {
        "include/cuda.h": f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n",
        "include/cudnn.h": _defines("CUDNN", numbers),
        "include/nccl.h": _defines("NCCL", {"MAJOR": "2", "MINOR": "2", "PATCH": "13"}),
        **{f"include/{name}": "" for name, _ in compatibility.cuda_headers(Release(2, 17))},
    }


def _defines(prefix: str, numbers: dict[str, str]) -> str:
    return "".join(f"#define {prefix}_{name} {value}\n" for name, value in numbers.items())


def tensorrt(root: Path, version: str, cudart: str, cudnn: str) -> Path:
    """Simulate TensorRT; configure up to 1.13 asks ldd what its library was linked with."""
    needs = [root / "stub/cudart.so", root / "stub/cudnn.so"]
    library(needs[0], f"libcudart.so.{cudart}")
    library(needs[1], f"libcudnn.so.{cudnn}")
    major, minor, patch = version.split(".")
    library(root / f"lib/libnvinfer.so.{version}", f"libnvinfer.so.{major}", needs)
    for link in ("libnvinfer.so", f"libnvinfer.so.{major}"):
        (root / "lib" / link).symlink_to(f"libnvinfer.so.{version}")
    header = _defines("NV_TENSORRT", {"MAJOR": major, "MINOR": minor, "PATCH": patch})
    write(root, {"include/NvInfer.h": header, "include/NvInferVersion.h": header})
    return root


def library(path: Path, soname: str, needs: list[Path] | None = None) -> None:
    """Link an empty shared library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    empty = ["-x", "c", "/dev/null", f"-Wl,-soname,{soname}", "-Wl,--no-as-needed", "-x", "none"]
    target = ["-o", str(path)]
    linked = [str(need) for need in needs or []]
    subprocess.run(["gcc", "-shared", "-nostdlib", *target, *empty, *linked], check=True)


def write(root: Path, texts: dict[str, str]) -> Path:
    """Write files, with the directories that they need."""
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def program(path: Path, script: str) -> Path:
    """Write a program of a few lines of shell."""
    write(path.parent, {path.name: f"#!/bin/sh\n{script}\n"})
    path.chmod(0o755)
    return path
