from tfwright.commands import port
from tfwright.commands.port import PortedPin
from tfwright.documents.release import Release

OLD = """\
summary = "x"

[source]
branch = "r1.8"
commit = "0000000000000000000000000000000000000000"

[verified]
until = "publish"
by = "Ada"

[bazel]
version = "1"
"""


def test_the_new_text_has_the_new_commit_and_is_not_verified() -> None:
    text = port._text(OLD, "v1.12.0", "1" * 40)
    assert f'commit = "{"1" * 40}"' in text
    assert 'branch = "r1.12"' in text
    assert "[verified]" not in text
    assert text.endswith('[bazel]\nversion = "1"\n')


def test_the_new_name_says_the_new_release() -> None:
    assert port._name("linux-r1.8-cpu", Release(1, 8), "v1.12.0") == "linux-r1.12-cpu"
    assert port._name("linux-r1.8-cuda11.8", Release(1, 8), "r2.6") == "linux-r2.6-cuda11.8"


def test_what_must_change_comes_first() -> None:
    pins = [PortedPin("patch", name, name, "") for name in ("fits", "change", "look")]
    assert [pin.state for pin in port.worst_first(pins)] == ["change", "look", "fits"]
