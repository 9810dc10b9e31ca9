"""The actions in a profile that Bazel leaves."""

from pathlib import Path

from tests.nightly.test_pages import profile

from tfwright.tools.bazel.profile import read


def test_a_profile_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = profile(tmp_path / "a.gz", {f"Compiling {number}": 1.0 for number in range(5000)})
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    assert 0 < len([*read(path)]) < 5000
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + b"\xff" * 99 + whole[middle + 99 :])
    assert len([*read(path)]) < 5000
    (tmp_path / "plain.json").write_text('{"cat": "action processing", "name": 1}\nnot json\n[1,')
    assert [*read(tmp_path / "plain.json")] == []
