import tomllib
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.tools import toml_editing

TEXT = """\
# What stands first.
[a]
x = 1  # one

[a.b]
y = [
    "p",
]

# About the next one.
[c]
z = 2

[verified]
until = "done"
digests = { a = "b" }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_file(tmp_path / "x.toml", TEXT)


def test_the_comment_of_the_next_table_stays_when_a_table_is_replaced(path: Path) -> None:
    toml_editing.put_section(path, ("a", "b"), "[a.b]\ny = 3\n")
    changed = TEXT.replace('y = [\n    "p",\n]\n', "y = 3\n")
    assert path.read_text("utf-8") == changed


def test_a_table_can_be_removed_without_the_comment_of_the_next(path: Path) -> None:
    toml_editing.put_section(path, ("a", "b"), "")
    assert path.read_text("utf-8") == TEXT.replace('[a.b]\ny = [\n    "p",\n]\n\n', "")


def test_a_table_that_is_not_there_is_an_error(path: Path) -> None:
    with pytest.raises(KeyError):
        toml_editing.put_section(path, ("d",), "")


def test_a_key_goes_with_the_comment_behind_it(path: Path) -> None:
    toml_editing.remove_key(path, ("a", "x"))
    assert path.read_text("utf-8") == TEXT.replace("x = 1  # one\n", "")


def test_the_last_table_can_be_left_out() -> None:
    left = toml_editing.without_table(TEXT, "verified")
    assert left.rstrip() == TEXT.partition("[verified]")[0].rstrip()
    assert toml_editing.without_table(left, "verified") == left


def test_a_dotted_key_is_added_to_the_lines_of_its_table(path: Path) -> None:
    toml_editing.put_dotted(path, "c", ("sha256", "linux-x86_64"), "ab", "from x")
    added = 'z = 2\nsha256.linux-x86_64 = "ab"  # from x\n'
    assert path.read_text("utf-8") == TEXT.replace("z = 2\n", added)
    toml_editing.put_dotted(path, "c", ("sha256", "darwin-arm64"), "cd", "from y")
    both = tomllib.loads(path.read_text("utf-8"))["c"]["sha256"]
    assert both == {"linux-x86_64": "ab", "darwin-arm64": "cd"}


NEXT = """\
[verified]
by = "a"  # who

# About what follows.
[[prompts]]
name = "x"
"""


def test_a_table_that_is_replaced_leaves_the_comment_of_the_next_one(tmp_path: Path) -> None:
    path = make_file(tmp_path / "x.toml", NEXT)
    toml_editing.put_table(path, "verified", {"by": "b"})
    text = path.read_text("utf-8")
    assert text == NEXT.replace('by = "a"  # who', 'by = "b"')


def test_a_table_that_is_removed_leaves_the_comment_of_the_next_one() -> None:
    left = toml_editing.without_table(NEXT, "verified")
    assert left.strip() == NEXT[NEXT.index("# About") :].strip()


def test_a_table_in_several_pieces_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = make_file(tmp_path / "x.toml", "[a]\nb = 1\n[a.c]\nd = 1\n[e]\n")
    toml_editing.put_table(path, "a", {"b": 2})
    assert tomllib.loads(path.read_text("utf-8")) == {"a": {"b": 2}, "e": {}}


def test_a_new_key_stays_in_its_table_and_not_below_the_comment_of_the_next(tmp_path: Path) -> None:
    path = make_file(
        tmp_path / "r.toml",
        '[[fetch.sources]]\nurl = "a"\n\n# Of the second.\n[[fetch.sources]]\nurl = "b"\n\n'
        "# Of the host.\n[host]\n",
    )
    for number in (0, 1):
        toml_editing.put(path, ("fetch", "sources", number, "sha256"), f"{number}")
    assert path.read_text("utf-8") == (
        '[[fetch.sources]]\nurl = "a"\nsha256 = "0"\n\n# Of the second.\n[[fetch.sources]]\n'
        'url = "b"\nsha256 = "1"\n\n# Of the host.\n[host]\n'
    )


def test_comments_in_a_list_stay_with_their_texts_and_lines_end_as_before(tmp_path: Path) -> None:
    before = """\
y = [  # What the build needs.
    "q==1",  # 2 fails
    # The newest.
    'p[x]==3', "gone",
    # Nothing else.
]  # Behind.
"""
    path = make_file(tmp_path / "x.toml", before.replace("\n", "\r\n"))
    toml_editing.put(path, ("y",), ["new==1", "p[x]==4", "q==1"])
    assert (
        path.read_bytes().decode()
        == """\
y = [  # What the build needs.
    "new==1",
    # The newest.
    "p[x]==4",
    "q==1",  # 2 fails
    # Nothing else.
]  # Behind.
""".replace("\n", "\r\n")
    )
