"""The lines of a log as their tool wrote them, without what stands around them.

Terminals add colours, build services add times, containers add names. A complaint is recognised by
what the tool wrote; people are shown the line without control characters.
"""

import re

WIDEST = 4096
"""Characters of one line that are read; what comes later in the line is not looked at."""
SHOWN = 600
"""Characters of one line that are shown."""
SHOWN_OF_ROOT = 960
"""Characters of the root line: old versions of Bazel put a whole chain of causes into one line."""

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[]_][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][AB0]|.)"
)
_BARE_COLOUR = re.compile(r"\[(?:\d{1,2}(?:;\d{1,2}){0,4})?m(?=\S)")
"""A colour whose escape character was lost when somebody copied the text."""
_OVERSTRUCK = re.compile(r".\x08")
_PREFIX = re.compile(
    r"""(?:
        \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?  # a date and a time
        (?:Z|[ ]?[+-]\d\d:?\d\d)?\]?[ ]  # and its zone
      | [\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?[\])]?[ ]  # also Bazel's --show_timestamps
      | \#\d{1,4}[ ]\d{1,6}\.\d{1,4}[ ]            # docker build: step and seconds
      | [\w.-]{1,60}[_-]\d{1,3}[ ]{1,20}\|[ ]      # docker-compose: service
      | \[[\w.-]{1,40}=[\w.=,-]{0,80}\][ ]         # Jenkins: the axes of a matrix
      | :(?:info|debug|notice|error|msg):\w{1,20}[ ]  # MacPorts
      | [\w.+-]{1,80}>[ ](?=[A-Z/\[ ])             # Nix: the derivation
      | [ ]{2,5}(?:>>[ ])?\d{1,6}[ ]{4}             # spack: the lines of a build's log
      | ==>[ ](?=Error|Warning)                    # spack and Homebrew
      | \#\#\[(?:error|section)\]                  # Azure and GitHub
      | \[(?:ERROR|FATAL)[ ][\d:.]{8,18}[ ]src/main/cpp/[\w./-]{1,60}:\d{1,5}\][ ]  # Bazel's client
      | ::error(?:[ ][^:]{0,200})?::
      | [ ]{4,12}>[ ](?=\S)                        # Nix: the last lines of a builder
      | (?:E[ ]{3}|>[ ])(?=[ ]*\S)                 # pytest, or a quotation
      | [ ]{0,12}`(?=[A-Z/])                       # Markdown
    )""",
    re.VERBOSE,
)
_MOST_PREFIXES = 3


def decoded(line: bytes) -> str:
    """Return one line as text of bounded length, without colours and control sequences."""
    text = line[:WIDEST].decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if text.find("m", 0, 400) >= 0 and "[" in text[:8]:
        text = _BARE_COLOUR.sub("", text, count=8)
    return text.rstrip("\r\n")


def said(text: str) -> str:
    """Return what the tool said: the line without the prefixes of build services."""
    for _ in range(_MOST_PREFIXES):
        prefix = _PREFIX.match(text)
        if not prefix:
            break
        text = text[prefix.end() :]
    return text


def shown(text: str, most: int = SHOWN) -> str:
    """Return a line as it can be shown: of at most that many characters, and printable."""
    short = text[:most]
    # Asked of the whole first: most lines are printable, and a log has many.
    if not short.isprintable():
        short = "".join(map(_printable, short))
    return short + (" …" if len(text) > most else "")


def _printable(letter: str) -> str:
    return letter if letter.isprintable() or letter == "\t" else "?"


def indent(text: str) -> int:
    """Return how far a line is indented, in columns; a tab counts as eight."""
    wide = text[:200].expandtabs()
    return len(wide) - len(wide.lstrip())
