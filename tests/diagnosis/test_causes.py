"""Cause and remedy follow from what the message names: two messages of one kind, two answers."""

import io
import re

import pytest

from tfwright.diagnosis import reader, tables
from tfwright.diagnosis.reader import Match


def first(log: str) -> Match:
    found = reader.read(io.BytesIO(log.encode()))
    return next(match for match in found.matches if match.explains)


OWN = "bazel-out/k8-opt/bin/tensorflow/core/_objs/a/a.o:a.cc:function main: error: undefined reference to "
VISIBILITY = (
    "ERROR: /w/external/my_toolchains/BUILD:19:29: in py_runtime rule @@my_toolchains//:r: "
    "Visibility error:\n"
    "target '@@rules_python//python:x.sh' is not visible from\n"
    "target '@@my_toolchains//:r'\n"
)
LOADED = "E tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime CuDNN library: "
CAUSES = [
    # dl-load.c and rtld.c of glibc
    (
        (
            "python: error while loading shared libraries: __vdso_time: invalid mode for dlopen(): "
            "Invalid argument\n"
        ),
        "load-two-glibcs",
        "two different glibcs",
    ),
    (
        (
            "/bin/ls: relocation error: /opt/glibc/libc.so.6: symbol _dl_exception_create, version "
            "GLIBC_PRIVATE not defined in file ld-linux-x86-64.so.2 with link time reference\n"
        ),
        "load-two-glibcs",
        "_dl_exception_create",
    ),
    (
        (
            "Traceback (most recent call last):\n"
            '  File "/t/third_party/gpus/find_cuda_config.py", line 250, in get_header_version\n'
            '    version = int(_get_header_version(path, "CUDA_VERSION"))\n'
            "ValueError: invalid literal for int() with base 10: ''\n"
        ),
        "python-exception",
        "a header that is not what its name says",
    ),
    (
        (
            "Traceback (most recent call last):\n"
            '  File "/v/lib/python3.9/site-packages/pip/_internal/req/x.py", line 5, in f\n'
            "    g()\n"
            "KeyError: 'a'\n"
        ),
        "python-exception",
        "It is pip itself that fails",
    ),
    (
        "/bin/bash: bazel-bintensorflowtoolspip_packagebuild_pip_package: No such file or directory\n",
        "package-no-bazel-bin",
        "took the backslashes out",
    ),
    (
        (
            "java.io.IOException: Error downloading [https://a.example/o/n/archive/.zip] to /o/.zip: "
            "GET returned 404 Not Found\n"
        ),
        "fetch-not-there",
        "lacks the commit or the tag",
    ),
    (
        "AttributeError: module 'importlib._bootstrap' has no attribute 'SourceFileLoader'\n",
        "python-name-missing",
        "An old setuptools or pip",
    ),
    (
        "AttributeError: module 'numpy' has no attribute 'typeDict'\n",
        "python-numpy-abi",
        "numpy 1.24 dropped that name",
    ),
    (
        f"{OWN}'xla::Shape::ToString(std::__cxx11::basic_string<char> const&)'\n",
        "link-own-symbol",
        "compiler and std::string are the same",
    ),
    (
        "a.o: undefined reference to 'tensorflow::Env::F(std::__cxx11::basic_string<char> const&)'\n",
        "link-undefined",
        "_GLIBCXX_USE_CXX11_ABI=0 or 1",
    ),
    (VISIBILITY, "bazel-not-visible", "newer ones also check"),
    (
        (
            "ERROR: /w/a/BUILD:1:1: in cc_library rule //a:b: alias '@x//:linux' referring to target "
            "'@x//:k8' is not visible from target '//a:b'. Check the visibility declaration\n"
        ),
        "bazel-not-visible",
        "reached by the name @x//:linux",
    ),
    (
        (
            "ERROR: /w/toolchain/platform/BUILD:1:1: in sh_binary rule //toolchain/platform:x: the file "
            "is too old\n"
        ),
        "bazel-rule-refused",
        "The rule sh_binary refuses",
    ),
    (
        (
            f"{LOADED}7401 (compatibility version 7400) but source was compiled with 7005 (compatibility "
            "version 7000).\n"
        ),
        "gpu-cudnn-version",
        "the very same first and second number",
    ),
    (
        "FATAL: Cannot get start time of process 4242: (error: 2): No such file or directory\n",
        "bazel-client",
        "Its server does not run",
    ),
    (
        "src/main/tools/linux-sandbox-pid1.cc:437: execvp(argv[0], argv): No such file or directory\n",
        "sandbox-refused",
        "does not find a file: execvp: No such file or directory. The program",
    ),
    (
        (
            'src/main/tools/linux-sandbox-pid1.cc:257: "mount(/tmp/w/src, tmp/w/src, NULL, MS_BIND, NULL)": '
            "No such file or directory\n"
        ),
        "sandbox-refused",
        "lies below /tmp, and inside the sandbox",
    ),
    (
        "host:1:2 [0] transport/net_ib.cc:94 NCCL WARN Call to ibv_reg_mr failed\n",
        "gpu-nccl",
        "the limit on locked memory",
    ),
    (
        "host:1:2 [0] misc/shmutils.cc:67 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9637892 bytes\n",
        "gpu-nccl",
        "64 MB in a container",
    ),
    (
        (
            "/usr/lib/gcc/x86_64-linux-gnu/7/include/avx512bwintrin.h:10:1: error: inlining failed in call "
            "to always_inline '__m512i _mm512_f(__m512i)': target specific option mismatch\n"
        ),
        "host-attribute-of-processor",
        "AVX-512 bw",
    ),
    (
        (
            "/v/lib/python3.6/site-packages/tensorflow/include/unsupported/x.h:3:10: fatal error: "
            "src/Tensor/y.inc: No such file or directory\n"
        ),
        "host-header-missing",
        "a header of the installed TensorFlow",
    ),
    (
        "a.h:8:3: error: 'std::unique_ptr' has not been declared\n",
        "host-name-missing",
        "--cxxopt=-include --cxxopt=memory",
    ),
    (
        "gcc: error: unrecognized command line option '-mavx512bw'\n",
        "host-option",
        "VL, BW and DQ from 5",
    ),
    (
        "ERROR: /w/p/BUILD:1:1: Executing genrule //p:g failed (Illegal instruction): bash failed\n",
        "illegal-instruction",
        "instructions that this processor does not have",
    ),
    (
        (
            "bazel-out/host/bin/external/protobuf/protoc: /usr/lib/libstdc++.so.6: version "
            "`GLIBCXX_3.4.30' not found (required by bazel-out/host/bin/external/protobuf/protoc)\n"
        ),
        "load-symbol-version",
        "bazel-out/host/bin/external/protobuf/protoc",
    ),
    (
        "ERROR: Failed to query remote execution capabilities: UNAVAILABLE: io exception\n",
        "execution-remote",
        "remote execution service",
    ),
    (
        "ERROR: /w/a.bzl:3:5: builtin variable 'PACKAGE_NAME' is referenced before assignment\n",
        "bazel-name-not-defined",
        "package_name()",
    ),
    (
        "ERROR: Failed to determine workspace status: Process exited with status 128\n",
        "bazel-workspace-status",
        "safe.directory",
    ),
    ("error: unsupported protocol: gopher\n", "general-error", "unsupported protocol"),
    (
        "cc1: error: too many filenames given.  Type cc1 --help for usage\n",
        "host-driver",
        "of two versions",
    ),
]


@pytest.mark.parametrize(("log", "family", "part"), CAUSES)
def test_a_cause_follows_from_what_the_message_names(log: str, family: str, part: str) -> None:
    match = first(log)

    assert match.entry.id == family
    assert part in match.cause
    assert not re.search(r" \.(?!\w)|\( | \)|:\.|\.:", match.cause)


REMEDIES = {
    "error: libhdf5.so.10: cannot open shared object file: No such file or directory\n": "libhdf5-dev",
    "a.cc:2:5: fatal error: absl/types/span.h: No such file or directory\n": "not from a package of the system",
    "host:1:2 [0] misc/socket.cc:1 NCCL WARN Net : Connect to 10.0.0.2<38341> failed : No route to host\n": (
        "NCCL_SOCKET_IFNAME"
    ),
}


@pytest.mark.parametrize("log", REMEDIES)
def test_a_remedy_follows_from_what_the_message_names(log: str) -> None:
    assert REMEDIES[log] in first(log).remedy


def test_every_row_of_a_table_can_be_reached() -> None:
    for table, rows in tables._tables().items():
        earlier: list[re.Pattern[str]] = []
        for pattern, _ in rows:
            words = pattern.pattern.removeprefix("^").removesuffix("$").split("|")
            if all(re.fullmatch(r"[\w/ -]+", word) for word in words):
                names = [form for word in words for form in (word, f"{word}.h", f"x_{word}_")]
                hidden = [any(row.search(name) for row in earlier) for name in names]
                assert not all(hidden), (table, pattern.pattern)
            earlier.append(pattern)
