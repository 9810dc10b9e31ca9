"""What may reach a terminal."""

import shlex
import subprocess

import pytest

from tfwright.errors import Evidence, SupplyError
from tfwright.printable import first_few, first_of, listed, printable, printable_lines, shell_word

CLIPBOARD = "\x1b]52;c;cm0gLXJmIC8=\x07"


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[2J",
        "\x1b]0;title\x07",
        CLIPBOARD,
        "\x9b2J",
        "\r",
        "\x7f",
        "\u202e",
        "\u2028",
        "\ud800",
    ],
)
def test_no_character_that_a_terminal_obeys_passes(sequence: str) -> None:
    shown = printable(f"before{sequence}after")
    assert shown.isprintable()
    assert shown.startswith("before")
    assert shown.endswith("after")


def test_letters_of_any_alphabet_pass() -> None:
    assert printable("Grüße, 日本語, Ω") == "Grüße, 日本語, Ω"


def test_a_line_feed_cannot_forge_a_line_of_ours() -> None:
    assert printable("x\n  do:     rm -rf /") == "x\\n  do:     rm -rf /"


def test_text_of_several_lines_keeps_them() -> None:
    assert printable_lines("one\n\ttwo\x1b[2J") == "one\n\ttwo\\x1b[2J"


def test_a_long_line_is_cut_where_the_caller_wants_it() -> None:
    assert printable("a" * 70_000, longest=80) == "a" * 79 + "…"


def test_an_error_shows_no_escape_sequence_wherever_it_came_in() -> None:
    fault = SupplyError(
        f"a {CLIPBOARD}",
        remedy=f"b {CLIPBOARD}",
        evidence=Evidence(where=f"c {CLIPBOARD}", lines=[f"d {CLIPBOARD}"]),
    )
    shown = [fault.what, fault.remedy, str(fault), fault.evidence.where, *fault.evidence.lines]
    assert all(text.isprintable() for text in shown)


@pytest.mark.parametrize(
    "text",
    ["", "plain", "two words", "it's", 'say "no"', "$HOME", "`id`", "a\\b", "wow !1", "a\nb"],
)
def test_a_shell_reads_a_quoted_word_as_what_it_was(text: str) -> None:
    assert shlex.split(f"program {shell_word(text)}") == ["program", text]
    shell = ["bash", "-c", f"printf %s {shell_word(text)}"]
    assert subprocess.check_output(shell, text=True) == text


def test_a_long_list_is_cut_and_says_how_much_more_there_is() -> None:
    names = [f"f{number}" for number in range(1202)]
    assert first_few(names, 2) == ("f0", "f1", "and 1,200 more")
    assert listed(names, 2) == "f0, f1 and 1,200 more"
    assert first_of(names) == "f0 (and 1,201 more)"


def test_a_short_list_is_shown_whole() -> None:
    assert first_few(["a", "b"], 2) == ("a", "b")
    assert listed(["a", "b"], 2) == "a, b"
    assert first_of(["a"]) == "a"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host/x", "https://me:…@host/x"),
        ("no way to u:Canary#1 at all", "no way to u:… at all"),
        ("'u:Canary' is no host", "'u:…' is no host"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("http://host:80/a@b", "http://host:80/a@b"),
    ],
)
def test_passwords_of_addresses_are_hidden(
    monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://u:Canary#1@proxy:3128")
    assert printable(text) == shown
    assert printable_lines(text) == shown
    assert str(SupplyError(text, remedy="-")) == shown
