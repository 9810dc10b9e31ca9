"""A family answers messages of its kind that differ in names, versions and tools from each other.

Each line is a tool's format with names of our own in its gaps.
"""

import pytest
from tests.diagnosis.reading import explaining

STEPS = {
    "error: libhdf5.so.10: cannot open shared object file: No such file or directory": "libhdf5-dev",
    "a.cc:2:5: fatal error: absl/types/span.h: No such file or directory": (
        "not from a package of the system"
    ),
    "host:1:2 [0] misc/socket.cc:1 NCCL WARN Net : Connect to 10.0.0.2<38341> failed : No route to host": (
        "NCCL_SOCKET_IFNAME"
    ),
    "clang: error: unsupported CUDA gpu architecture: sm_120a": "--config=cuda_nvcc",
    "clang: error: unsupported option '--linkopt=-s'": "in quotes of its own",
    "/l/clang/18/include/__clang_cuda_runtime_wrapper.h:5:10: fatal error: 'a.h' file not found": (
        "let nvcc compile"
    ),
    "AttributeError: module 'typing' has no attribute '_x'": "uninstall typing",
    "/sw/include/python3.9/eval.h:1:1: error: unknown type name 'PyObject'": "unset CPATH",
    "ERROR: missing input file '//a:b':/w/b (Permission denied)": "chmod -R a+rX",
    "nvlink fatal   : No input files specified": "-c opt",
    'ValueError: Cannot repair wheel, because required library "libtensorflow_framework.so.2" could not be located': (
        "--exclude libtensorflow_framework"
    ),
    "ERROR: /w/BUILD:1: Extension file not found: 'google/protobuf/a.bzl'.": "git submodule update",
}


@pytest.mark.parametrize("log", STEPS)
def test_a_first_step_follows_from_the_kind(log: str) -> None:
    assert STEPS[log] in explaining(log)[0].remedy


def test_an_architecture_that_clang_lacks_gives_the_flag_for_nvcc() -> None:
    new = explaining("clang: error: unsupported CUDA gpu architecture: sm_120")[0]
    old = explaining("clang: error: unsupported CUDA gpu architecture: sm_61")[0]
    assert any("--config=cuda_nvcc" in line for line in new.advice.recipe)
    assert not old.advice.recipe
