import pytest

from tfwright.wheel.inspect import text as inspection_text
from tfwright.wheel.inspect.text import Text


def search(content: bytes) -> Text:
    return inspection_text.search(content)


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/tf/a.cc",
        "/Users/me/a.cc",
        "/private/var/tmp/_bazel_me/1/execroot/tf/a.cc",
        "/root/tf/a.cc",
        "/b/bazel-out/k8-opt/a.h",
    ],
)
def test_a_path_of_the_builder_is_found(path: str) -> None:
    assert search(b"\0" + path.encode() + b"\0") == Text(1, (path,))


@pytest.mark.parametrize(
    "text",
    [
        b"bazel-out/k8-opt/bin/a.cc",
        b"/proc/self/cwd/bazel-out/a.cc",
        b"https://example.org/home/page",
        b"/usr/lib/libm.so",
        b"share/home/x",
    ],
)
def test_a_path_that_is_no_builders_is_not(text: bytes) -> None:
    assert search(text) == Text()


def test_all_are_counted_and_some_are_shown() -> None:
    found = search(b"\0".join(b"/home/me/%d.cc" % number for number in range(9)))
    assert found == Text(9, ("/home/me/0.cc", "/home/me/1.cc", "/home/me/2.cc"))


def test_the_version_of_nccl_is_found() -> None:
    assert search(b"\0NCCL version 2.4.7+cuda10.0\0").nccl == "2.4.7+cuda10.0"
    assert (
        search(b"\0NCCL version 2.25.1+cudaCUDA_MAJOR.CUDA_MINOR\0").nccl
        == "2.25.1"
    )
    assert search(b"\0NCCL version %s\0").nccl == ""
    assert search(b"\0NCCL version mismatch with remote peer\0").nccl == ""
