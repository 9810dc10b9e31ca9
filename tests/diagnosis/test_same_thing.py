"""What other lines of a log decide: its system, a GPU that is there, a remark that came true."""

from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.diagnosis import reader

NCCL = "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory\n"
NO_WHEEL = "ERROR: Could not find a version that satisfies the requirement {} (from versions: {})\n"
NO_DRIVER = (
    "2024-07-07 22:04:49.005473: I external/local_tsl/tsl/cuda/cudart_stub.cc:31] Could not find "
    "cuda drivers on your machine, GPU will not be used.\n"
)
SMI = "| NVIDIA-SMI 470.256.02   Driver Version: 472.12       CUDA Version: 11.4     |\n"
PTX = """\
W0000 00:00:1.1 12 gpu_device.cc:2430] TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0. CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer.
2025-05-22 10:00:01.1: W tf_gpu_runtime_wrappers.cc:40] 'cuModuleLoadData(&module, data)' failed with 'CUDA_ERROR_INVALID_PTX'
2025-05-22 10:00:01.2: W tf_gpu_runtime_wrappers.cc:40] 'cuModuleGetFunction(&function, module, kernel_name)' failed with 'CUDA_ERROR_INVALID_HANDLE'
"""


def read(tmp_path: Path, text: str) -> reader.Diagnosis:
    log = make_file(tmp_path / "log", text)
    return reader.diagnose(str(log))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (NO_WHEEL.format("nvidia-nccl-cu12==2.19.3", "0.0.1.dev5"), "pip-nccl-is-for-linux"),
        ("Alpine Linux 3.19\n" + NO_WHEEL.format("tensorflow", "none"), "pip-no-wheel-for-musl"),
        (NO_WHEEL.format("tensorflow", "none"), "pip-no-version"),
        (NCCL, "import-cuda-library"),
        ('File "/apps/TF/2.6.0-foss-2021a-CUDA-11.3.1/a.py"\n' + NCCL, "import-library-of-modules"),
        (PTX, "run-ptx-refused"),
        (SMI + NO_DRIVER, "tf-no-gpu"),
    ],
)
def test_the_rest_of_the_log_decides_what_a_line_means(
    text: str, first: str, tmp_path: Path
) -> None:
    found = read(tmp_path, text)
    assert found.matches[0].entry.id == first
    assert found.matches[0].explains


def test_a_driver_that_nvidia_smi_shows_is_named_where_tensorflow_finds_none(
    tmp_path: Path,
) -> None:
    cause = read(tmp_path, SMI + NO_DRIVER).matches[0].cause
    assert "472.12" in cause
    assert "up to CUDA 11.4" in cause
    assert read(tmp_path, NO_DRIVER).first is None


def test_a_remark_about_what_then_failed_is_not_called_harmless(tmp_path: Path) -> None:
    base = "/home/user/.cache/bazel/_bazel_user/0123"
    warning = f"WARNING: Output base '{base}' is on NFS. This may lead to surprising failures.\n"
    error = f"ERROR: {base}/server/.nfs0000 (Device or resource busy).\n"
    assert read(tmp_path, warning + error).harmless == ()
    other = "ERROR: /home/user/tree/a/BUILD:1:1: no such target '//a:b'\n"
    assert [match.entry.id for match in read(tmp_path, warning + other).harmless] == [
        "bazel-remark"
    ]


def test_a_proxy_that_bazel_ignores_is_not_harmless_where_no_server_is_reached(
    tmp_path: Path,
) -> None:
    warning = "WARNING: ignoring http_proxy in environment.\n"
    error = (
        "ERROR: no such package '@a//b': Error downloading [https://example.org/a.tar.gz] to /a: "
        "All mirrors are down: [Unknown host: example.org]\n"
    )
    assert read(tmp_path, warning + error).harmless == ()
