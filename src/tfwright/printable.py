"""What may reach a terminal: foreign text, with everything that a terminal obeys made visible.

Names in a wheel, lines of a log and answers of a server are chosen by strangers. An escape sequence
in them can clear the screen, set the clipboard or forge a line of ours; a direction mark can turn a
path round. `printable` is the only place that decides which characters pass.

It also hides the passwords of addresses: libraries and programs quote the proxy that they could not
use, and the mirror that did not answer.
"""

import os
import re
import shlex
from collections.abc import Iterable, Sequence

CUT = "…"
_started: tuple[str, re.Pattern[str], str] | None = None
"""The program that was started in place of `invoke`, how messages begin a command of ours, and
where the pages of docs/ are."""
_PAGE = re.compile(r"(?<![\w/])docs/(?=[\w-]+\.md)")
_UNSAFE = re.compile(r"[^\x20-\x7e]")
"""Candidates only: most text is ASCII, and `str.isprintable` on each letter of a long log is
slow."""
_SPECIAL_WITHIN_DOUBLE_QUOTES = re.compile(r'["$`\\!]')
_KEPT_IN_TEXT = frozenset("\n\t")
_USER = re.compile(r"(?<=://)([^\s/@:]*):[^\s/@]+(?=@)")
"""User and password in front of a host, as in ``https://user:password@host/``."""
_PROXY_USER = re.compile(r"(?:\w+://)?([^:/@]*):(.+)@")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def printable(text: object, longest: int | None = None) -> str:
    r"""Return `text` as one line that is safe to show: ``\x1b[2J`` instead of an escape sequence.

    Control characters, line ends, direction marks, lone surrogates and unassigned characters are
    written as Python escapes them. `longest` cuts the result to that many characters.
    """
    shown = _UNSAFE.sub(_escaped, without_passwords(str(text)))
    cut = longest is not None and len(shown) > longest
    return shown[: longest - len(CUT)] + CUT if longest is not None and cut else shown


def name_program(program: str, commands: Sequence[str], pages: str = "docs/") -> None:
    """Let messages name `program` in the commands that they give, and `pages` for docs/."""
    global _started  # noqa: PLW0603 a process is started under one name
    command = re.compile(rf"\binvoke (?=(?:{'|'.join(commands)}|COMMAND)\b|--|\[)")
    _started = program, command, pages


def as_started(text: str) -> str:
    """Return a text with the program that was started, and the pages, as they are here."""
    if not _started:
        return text
    program, command, pages = _started
    return _PAGE.sub(lambda _: pages, command.sub(lambda _: f"{program} ", text))


def program() -> str:
    """Return the name of the program that was started."""
    return _started[0] if _started else "invoke"


def printable_lines(text: object) -> str:
    """Return `text` with its line feeds and tabs kept, and everything else as in `printable`.

    Commands in it begin with the program that was started.
    """
    return _UNSAFE.sub(_escaped_within_line, without_passwords(as_started(str(text))))


def without_passwords(text: str) -> str:
    """Return `text` with an ellipsis for each password of an address: ``https://user:…@host``."""
    if ":" not in text:
        return text
    # A proxy that cannot be parsed is quoted in parts, which no longer look like an address.
    for name in _PROXIES:
        for spelled in (name, name.upper()):
            found = _PROXY_USER.match(os.environ.get(spelled, ""))
            if found:
                user, password = found.groups()
                # What is left of it where a library takes one of these characters for the end of
                # the host.
                for secret in filter(None, (password, re.split(r"[/?#@\s]", password)[0])):
                    text = text.replace(f"{user}:{secret}", f"{user}:{CUT}")
    return _USER.sub(rf"\1:{CUT}", text)


def shell_word(text: str) -> str:
    """Return `text` as a shell takes it as one word.

    Double quotes where they do: messages put a command between single quotes, and a person could
    not tell which of them end it.
    """
    quoted = shlex.quote(text)
    if quoted == text or not text or _SPECIAL_WITHIN_DOUBLE_QUOTES.search(text):
        return quoted
    return f'"{text}"'


def first_few(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first lines, and a last one that says how many more there are."""
    more = len(lines) - most
    return (*lines[:most], f"and {more:,} more") if more > 0 else tuple(lines)


def listed(names: Sequence[str], most: int) -> str:
    """List the first names, and how many more there are: ``a, b and 3 more``."""
    shown = ", ".join(names[:most])
    more = len(names) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def first_of(names: Sequence[str]) -> str:
    """Return the first name, and how many more there are: ``a (and 3 more)``."""
    more = len(names) - 1
    return f"{names[0]} (and {more:,} more)" if more else names[0]


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    # isprintable refuses control, format, surrogate and unassigned characters. Letters
    # of other scripts are harmless, and names of people and files need them.
    if letter.isprintable():
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def _escaped_within_line(found: re.Match[str]) -> str:
    return found[0] if found[0] in _KEPT_IN_TEXT else _escaped(found)


LONGEST_COMPARED = 100
"""Characters that are compared: the time grows with the square of the length."""
SIMILAR = 0.6
"""Share of equal characters from which two words are alike."""


def nearest(word: str, known: Iterable[str], similar: float = SIMILAR) -> str:
    """Return the known word that is most like another; empty if none is."""
    # Every command imports this module, and few meet a word that is not known.
    from difflib import get_close_matches

    near = get_close_matches(word[:LONGEST_COMPARED], list(known), n=1, cutoff=similar)
    return near[0] if near else ""


def did_you_mean(word: str, known: Iterable[str], similar: float = SIMILAR) -> str:
    """Return the end of a sentence about an unknown word: the question for the nearest one."""
    near = nearest(word, known, similar)
    return f"; did you mean {near!r}?" if near else ""
