import io
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.making import Read

from tfwright.terminal import text
from tfwright.terminal.text import Column, Styled

COLUMNS = (
    Column("name"),
    Column("path", 1, "middle", least=10),
    Column("detail", 2, "end", least=6),
)
ROW = ("demo", "/a/very/long/path/to/some/file.so", "this and that")


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Screen]:
    """Return what makes standard output a terminal of a width, without colours."""

    def make(columns: int) -> Screen:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        screen = Screen()
        monkeypatch.setattr(sys, "stdout", screen)
        return screen

    return make


Wide = Callable[[int], Screen]


def shown(screen: Screen, *rows: Sequence[str], columns: Sequence[Column] = COLUMNS) -> list[str]:
    """Return the lines of a table."""
    text.table(columns, rows or [ROW])
    return screen.getvalue().splitlines()


@pytest.mark.parametrize("columns", [20, 30, 40, 60, 80, 100, 160])
def test_a_table_is_never_wider_than_the_terminal(columns: int, wide: Wide) -> None:
    assert max(map(len, shown(wide(columns)))) <= columns


def test_the_least_important_column_goes_first(wide: Wide) -> None:
    assert shown(wide(20))[0].split() == ["name", "path"]
    assert shown(wide(100))[0].split() == ["name", "path", "detail"]


def test_one_long_text_does_not_take_the_room_of_a_less_important_column(wide: Wide) -> None:
    source = "getconf GNU_LIBC_VERSION"
    rows = [("glibc", "2.36", source), ("certificates", "/a/file " * 40, "environment")]
    assert source in "".join(shown(wide(100), *rows))


def test_a_column_without_a_text_is_left_out(out: Read) -> None:
    text.table(COLUMNS, [("demo", "", "this"), ("other", " ", "that")])
    assert [row.split() for row in out().splitlines()] == [
        ["name", "detail"],
        ["demo", "this"],
        ["other", "that"],
    ]


def test_a_dropped_column_without_a_head_is_not_missed_by_name(wide: Wide) -> None:
    columns = (Column(""), Column("", 1, "end", least=6))
    assert shown(wide(20), ("a" * 18, "b" * 9), columns=columns) == ["a" * 18]


def test_a_head_is_never_cut(wide: Wide) -> None:
    columns = (Column("name"), Column("std::string", 1, "end", least=4))
    row = ("a" * 20, "cxx11 " * 9)
    assert "…" not in shown(wide(30), row, columns=columns)[0]


def test_small_columns_take_the_room_that_a_wide_one_leaves(wide: Wide) -> None:
    columns = (Column("name"), Column("TF", 2, "never"), Column("verified", 1, "end", least=20))
    row = ("a" * 20, "1.8", "publish (2026-11-23)")
    assert "1.8" in "".join(shown(wide(30), row, columns=columns))


def test_a_sentence_goes_on_below_and_keeps_its_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    parts = (Styled("  kept ", text.GOOD), "since nothing ", "of it has changed")
    text.line(*parts, hang=7, to=screen)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert plain == "  kept since nothing of\n       it has changed\n"
    assert screen.getvalue().startswith("  \x1b[32mkept ")


@pytest.mark.parametrize("columns", [20, 41, 60])
@pytest.mark.parametrize(
    "words",
    [
        ("           PATH=" + "/usr/bin:" * 12,),
        ("  a", " b ", "c" * 70, "  d"),
        ("the same the same ", "the same the same the same the same"),
        ("   " + "x " * 60, "y" * 90),
    ],
)
def test_no_character_of_a_broken_line_is_lost(
    words: tuple[str, ...], columns: int, wide: Wide
) -> None:
    screen = wide(columns)
    text.line(*words)
    assert screen.getvalue().split() == "".join(words).split()


def test_a_line_that_must_stay_whole_is_not_broken(wide: Wide) -> None:
    screen = wide(20)
    text.line("  resume: invoke build --offline", whole=True)
    assert screen.getvalue() == "  resume: invoke build --offline\n"


@pytest.mark.parametrize("columns", [20, 33, 60])
def test_a_command_on_several_lines_is_still_the_same_command(columns: int, wide: Wide) -> None:
    screen = wide(columns)
    words = ["git", "--work-tree=/a b/c", "apply", "it's", "--cached", "x" * 30]
    text.command("  ", words)
    shown = screen.getvalue()
    # As a shell joins them.
    assert shlex.split(shown.replace("\\\n", "")) == words
    assert shown.count("\n") > 1


@pytest.mark.parametrize(
    ("label", "content", "indent", "printed"),
    [
        # A word that is too long for its indent moves to the left,
        ("  GLIBCXX", f"3.4 {'x' * 36}", 14, f"  GLIBCXX     3.4\n    {'x' * 36}\n"),
        # and one that is too long for any line stays behind its label.
        ("  [1]", f"{'x' * 50} see it", 6, f"  [1] {'x' * 50}\n      see it\n"),
        (
            "  do:",
            "first command\nsecond command",
            8,
            "  do:   first command\n        second command\n",
        ),
    ],
)
def test_a_paragraph_keeps_its_indent_where_its_words_fit(
    label: str, content: str, indent: int, printed: str, wide: Wide
) -> None:
    screen = wide(40)
    text.paragraph(label, content, indent=indent)
    assert screen.getvalue() == printed


def test_a_path_is_cut_in_its_middle(wide: Wide) -> None:
    row = shown(wide(40))[1]
    assert re.fullmatch(r"demo  /a/.*….*/file\.so  this .*", row)


def test_a_pipe_gets_the_whole_table(out: Read) -> None:
    text.table(COLUMNS, [ROW])
    assert out().splitlines()[1] == "  ".join(ROW)


def test_one_long_text_does_not_push_a_column_of_a_piped_table_aside(out: Read) -> None:
    long = "x" * 300
    text.table([Column("")] * 3, [("first", "one", "last"), ("second", long, "last")])
    assert out().splitlines() == ["first   one  last", f"second  {long}  last"]


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Screen()
    text.line(Styled("ok", text.GOOD), to=screen)
    assert "\x1b[32mok" in screen.getvalue()
    for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(variable, value)
        plain = Screen()
        text.line(Styled("ok", text.GOOD), to=plain)
        assert plain.getvalue() == "ok\n"


def test_what_a_stranger_wrote_cannot_command_the_terminal(out: Read) -> None:
    text.table((Column("", 0),), [("\x1b]52;c;aGk=\x07",)])
    assert "\x1b" not in out()


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0.04, "0.0 s"), (59.4, "59.4 s"), (60, "1 min 00 s"), (7530, "2 h 05 min")],
)
def test_durations_are_said_as_people_say_them(seconds: float, says: str) -> None:
    assert text.as_duration(seconds) == says


@pytest.mark.parametrize("columns", ["²", "-1", "0", "+5", " 80", "1e3", "9" * 5000, "", "٣"])
def test_a_width_that_is_no_number_is_not_believed(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert text.width(io.StringIO()) is None


@pytest.mark.parametrize(
    ("here", "told", "shown"),
    [
        ("/", "see https://example.org/a//b", "see https://example.org/a//b"),
        ("/build", "/build/a and /mnt/build/a", "a and /mnt/build/a"),
        ("/build", "'/build/a', file:///build/a", "'a', file:///build/a"),
        ("/build", "/work and /buildings/a", "/work and /buildings/a"),
    ],
)
def test_only_paths_below_the_working_directory_become_relative(
    here: str, told: str, shown: str, monkeypatch: pytest.MonkeyPatch, err: Read
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path(here))
    text.tell(told)
    assert err() == f"{shown}\n"
