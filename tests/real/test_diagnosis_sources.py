"""Every message that the sources of a tool hold is explained by a family.

Wanted from the environment: TFWRIGHT_TENSORFLOW_MIRRORS, a colon-separated list of bare mirrors;
TFWRIGHT_CUDA_INCLUDE, the include folder of a CUDA toolkit; TFWRIGHT_BAZELS, a folder with Bazel's
binary, where there is no network.
"""

import importlib.util
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tfwright.diagnosis import reader

pytestmark = [pytest.mark.real, pytest.mark.slow]

MAKERS = Path(__file__).parents[2] / "benchmarks"
STATUS = re.compile(
    r"^\s*(?P<name>(?:CUDA_ERROR|CUBLAS_STATUS|CUDNN_STATUS|CURAND_STATUS|CUSOLVER_STATUS"
    r"|CUSPARSE_STATUS|NVRTC_ERROR|NVML_ERROR)_(?!SUCCESS|STATUS)\w+|cudaError[A-Z]\w+"
    r"|nccl\w*Error)\s*=",
    re.MULTILINE,
)
HEADERS = (
    "cuda.h",
    "driver_types.h",
    "cublas_api.h",
    "cudnn_ops_infer.h",
    "curand.h",
    "cusolver_common.h",
    "cusparse.h",
    "nvrtc.h",
    "nvml.h",
    "nccl.h",
)
LOGGED = (
    "2019-01-01 00:00:00.000000: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] "
    "operation failed: {}"
)
UNSPECIFIC = {
    "general-error",
    "gpu-logged-error",
    "bazel-error",
    "marked-error",
    "python-exception",
}


def maker(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, MAKERS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    "TFWRIGHT_TENSORFLOW_MIRRORS" not in os.environ, reason="needs TFWRIGHT_TENSORFLOW_MIRRORS"
)
def test_nearly_every_message_of_the_configuration_at_every_tag_is_explained() -> None:
    mirrors = os.environ["TFWRIGHT_TENSORFLOW_MIRRORS"].split(":")
    made = maker("configure_messages")
    messages = {line for mirror in mirrors for line in made.messages(Path(mirror))}
    unexplained = [line for line in messages if made.explained(line).startswith("- ")]
    assert len(messages) > 150
    # What remains are comments, usages and halves of messages.
    assert len(unexplained) < 0.05 * len(messages), unexplained


@pytest.mark.skipif("TFWRIGHT_CUDA_INCLUDE" not in os.environ, reason="needs TFWRIGHT_CUDA_INCLUDE")
@pytest.mark.parametrize("header", HEADERS)
def test_every_status_of_a_cuda_header_is_explained(header: str) -> None:
    text = (Path(os.environ["TFWRIGHT_CUDA_INCLUDE"]) / header).read_text("latin-1")
    names = [found["name"] for found in STATUS.finditer(text)]
    assert names
    for name in names:
        found = reader.read(io.BytesIO(LOGGED.format(name).encode()))
        known = {match.entry.id for match in found.matches if match.explains}
        assert known - UNSPECIFIC, name


def test_most_messages_of_bazels_server_are_explained_as_bazels_own(
    obtain_bazel: Callable[[str], Path],
) -> None:
    made = maker("bazel_messages")
    messages = made.messages(obtain_bazel("0.26.1"))
    families = {each: made.family_of(each.line) for each in messages}
    known = [each for each in messages if made.right(families[each])]
    claimed = {each.line: families[each] for each in messages if made.foreign(families[each])}
    assert len(messages) > 1000
    assert not claimed
    # What remains belongs to other commands than build, or is a part of another text.
    assert len(known) > 0.8 * len(messages)
