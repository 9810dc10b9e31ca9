import pytest

from tfwright.wheel.inspect import nccl


def test_the_version_of_nccl_is_found() -> None:
    assert nccl.version(b"\0NCCL version 2.4.7+cuda10.0\0") == "2.4.7+cuda10.0"
    assert nccl.version(b"\0NCCL version 2.25.1+cudaCUDA_MAJOR.CUDA_MINOR\0") == "2.25.1"
    assert nccl.version(b"\0NCCL version %s\0") == ""
    assert nccl.version(b"\0NCCL version mismatch with remote peer\0") == ""


def test_a_placeholder_does_not_hide_the_version_behind_it() -> None:
    assert nccl.version(b"NCCL version %s\0NCCL version 2.16.2\0") == "2.16.2"


def test_a_file_full_of_placeholders_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "MOST", 3)
    assert nccl.version(b"NCCL version %s\0" * 2 + b"NCCL version 2.16.2\0")
    assert nccl.version(b"NCCL version %s\0" * 3 + b"NCCL version 2.16.2\0") == ""
