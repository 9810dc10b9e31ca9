"""The venv that `python3 tasks.py` makes for itself."""

from pathlib import Path

import pytest

from tfwright import bootstrap


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\0" * 64, b"{"])
def test_a_damaged_mark_makes_the_venv_again(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "requirements.txt").write_text("six==1.11.0\n", "utf-8")
    (tmp_path / "tfwright-requirements").write_bytes(content)
    assert not bootstrap._ready(tmp_path, tmp_path, "requirements.txt")
