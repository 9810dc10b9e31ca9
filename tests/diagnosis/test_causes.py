"""Cause and remedy follow from what the message names: two messages of one kind, two answers."""

import re

import pytest
from tests.diagnosis.reading import explaining

from tfwright.diagnosis import tables

OWN = "bazel-out/k8-opt/bin/tensorflow/core/_objs/a/a.o:a.cc:function main: error: undefined reference to "
VISIBILITY = (
    "ERROR: /w/external/my_toolchains/BUILD:19:29: in py_runtime rule @@my_toolchains//:r: "
    "Visibility error:\n"
    "target '@@rules_python//python:x.sh' is not visible from\n"
    "target '@@my_toolchains//:r'\n"
)
LOADED = "E tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime CuDNN library: "


REMEDIES = {
    "error: libhdf5.so.10: cannot open shared object file: No such file or directory\n": "libhdf5-dev",
    "a.cc:2:5: fatal error: absl/types/span.h: No such file or directory\n": "not from a package of the system",
    "host:1:2 [0] misc/socket.cc:1 NCCL WARN Net : Connect to 10.0.0.2<38341> failed : No route to host\n": (
        "NCCL_SOCKET_IFNAME"
    ),
}


@pytest.mark.parametrize("log", REMEDIES)
def test_a_remedy_follows_from_what_the_message_names(log: str) -> None:
    assert REMEDIES[log] in explaining(log)[0].remedy


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
