from pathlib import Path

import pytest

from tfwright.documents import filesystem
from tfwright.tools.cache import usage


@pytest.mark.parametrize("seconds", [2**62, 10**13, -(10**13), float("inf"), 0, -1])
def test_every_time_of_a_commit_or_file_is_one(seconds: float) -> None:
    assert filesystem.FIRST <= filesystem.utc(seconds) <= filesystem.LAST


def test_a_line_of_the_history_with_such_a_time_is_left_out(tmp_path: Path) -> None:
    line = '{"recipe": "demo", "finished": 1e300, "use": {"toolchain": ""}}\n'
    (tmp_path / "builds.jsonl").write_text(line)
    assert usage.read(tmp_path) == ()
