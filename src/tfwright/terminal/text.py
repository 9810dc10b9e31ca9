"""The ways to print: a line, a wrapped paragraph, a table that fits the terminal, JSON.

Every line goes through here, so that one place decides about width, colour and foreign characters.
On a terminal, tables shrink to its width; into a pipe they are written whole, for grep and awk.
"""

import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

from tfwright.printable import CUT, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

Style = Literal["", "green", "yellow", "red", "bold", "dim", "bold red"]

GOOD: Style = "green"
WARNING: Style = "yellow"
BAD: Style = "red"
DETAIL: Style = "dim"
HEADING: Style = "bold"

GAP = "  "
"""Between the columns of a table."""
LABEL = 10
"""Characters in front of each part of an error or a finding."""
WIDE = 48
"""Characters to which a column without a terminal is padded at most; longer texts stand out."""
MARGIN = 20
"""Characters of a line that stay, however deep it is indented."""


class Styled(NamedTuple):
    """A text with its colour; the text alone must say the same."""

    text: str
    style: Style = ""


good = partial(Styled, style=GOOD)
warning = partial(Styled, style=WARNING)
bad = partial(Styled, style=BAD)
detail = partial(Styled, style=DETAIL)
bold = partial(Styled, style=HEADING)
Part = str | Styled
Cut = Literal["end", "middle", "never"]


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    head: str
    rank: int = 0
    """What a narrow terminal does without: the highest rank is dropped first, rank 0 never."""
    cut: Cut = "never"
    """Where a text that is too long loses characters: a path in its middle."""
    least: int = 8
    """Characters below which the column is dropped rather than shortened further. Its head is never
    cut."""
    right: bool = False
    """Whether the texts are numbers, aligned on the right."""


def line(
    *parts: Part, to: TextIO | None = None, whole: bool = False, hang: int | None = None
) -> None:
    """Write a line of parts on `to` (standard output by default), with colour on a terminal.

    Where a terminal is narrower, the line goes on below, behind `hang` blanks (by default two more
    than its own indent). With `whole` it stays one line, as a command that is copied must.
    """
    stream = to or sys.stdout
    shown = [_styled(part) for part in parts]
    available = None if whole else width(stream)
    rows = [shown] if available is None else _broken_line(shown, available, hang)
    # A line behind a display that is redrawn would be torn by it.
    while _drawn:
        _drawn.pop()()
    # https://no-color.org: set and not empty, whatever its value.
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    for row in rows:
        if plain:
            stream.write("".join(part.text for part in row) + "\n")
            continue
        from rich.text import Text

        # soft_wrap: rich would cut a long line at the width, and a path could not be copied.
        joined = Text.assemble(*((part.text, part.style) for part in row))
        console(stream).print(joined, soft_wrap=True)


def command(lead: str, words: Sequence[str], style: Style = "") -> None:
    """Write a command as a shell takes it, behind `lead`.

    On a narrow terminal its words go on below, behind a backslash, so that it can still be copied.
    """
    available = width(sys.stdout)
    row = lead
    for number, word in enumerate(map(shlex.quote, words)):
        # A blank and the backslash follow.
        if number and available and len(row) + len(word) + len(GAP) + 1 > available:
            line(Styled(f"{row} \\", style), whole=True)
            row = " " * (len(lead) + 4) + word
        else:
            row += f" {word}" if number else word
    line(Styled(row, style), whole=True)


def wrap_row(row: str, available: int, hang: int = 0) -> list[str]:
    """Break a row between its words into lines; those below the first begin with `hang` blanks."""
    # No word is broken, so paths, urls and flags can be copied.
    return textwrap.wrap(
        row,
        max(available, MARGIN),
        break_long_words=False,
        break_on_hyphens=False,
        subsequent_indent=" " * hang,
    )


_drawn: list[Callable[[], None]] = []
"""What takes a live display away."""


def before_next_line(remove: Callable[[], None]) -> None:
    """Let the next line call `remove`, which takes a live display off the terminal."""
    _drawn.append(remove)


def _broken_line(
    parts: Sequence[Styled], available: int, hang: int | None
) -> Iterator[list[Styled]]:
    """Break a line of parts into as many as fit in `available`; no word is broken."""
    whole = "".join(part.text for part in parts)
    # textwrap takes these for blanks, and what it returns could not be found again.
    if len(whole) <= available or re.search(r"[\t\n\v\f\r]", whole):
        yield [*parts]
        return
    indent = len(whole) - len(whole.lstrip())
    further = min(indent + 2 if hang is None else hang, max(available // 2, available - MARGIN))
    end = 0
    rows = wrap_row(whole, available, further)
    # A label is not left alone on its line by a word that is too long for any.
    if len(rows) > 1 and rows[0].strip() == parts[0].text.strip():
        rows[:2] = [whole[: whole.index(rows[1].strip(), len(rows[0])) + len(rows[1].strip())]]
    for row in rows:
        start = whole.index(row.strip(), end)
        # A word that is too long for the indent gets a smaller one.
        blanks = min(further, max(0, available - len(row.strip()))) if end else indent
        shown = [Styled(" " * blanks)]
        end = start + len(row.strip())
        begin = 0
        for part in parts:
            # What the part has of this row.
            text = part.text[max(0, start - begin) : max(0, end - begin)]
            begin += len(part.text)
            if text:
                shown.append(Styled(text, part.style))
        yield shown


def heading(title: str, style: Style = HEADING) -> None:
    """Write an empty line and the one above what belongs together."""
    line()
    line(Styled(title, style))


def tell(text: str, style: Style = "", *, whole: bool = False) -> None:
    """Write a line to standard error; paths below the working directory become relative.

    With `whole` it stays one line on a narrow terminal.
    """
    line(Styled(_from_here(text), style), to=sys.stderr, whole=whole)


def paragraph(first: Part, text: str, *, indent: int, to: TextIO | None = None) -> None:
    """Write `text` behind `first`; further lines start at `indent`.

    Lines of `text` stay lines: a command that is to be copied is never joined with its neighbour.
    """
    lead = _styled(first)
    # An empty text still gets its label.
    for row in printable_lines(text).splitlines() or [""]:
        own = len(row) - len(row.lstrip())
        start = lead.text.ljust(indent) if row else lead.text.rstrip()
        line(Styled(start, lead.style), row, to=to, hang=indent + own)
        lead = Styled("")


def next_commands(*commands: str) -> None:
    """Write the commands that come next, each whole, however long: they are there to be copied."""
    for number, command in enumerate(commands):
        tell(f"{'' if number else 'Then:':<5} {command}", whole=True)


def read_line() -> str | None:
    """Return the line that a person types; None at the end of the input."""
    while line := sys.stdin.readline():
        answer = line.rstrip("\n")
        if answer.isprintable():
            return answer
        # An arrow key, say: no recipe and no patch can hold it.
        tell("  that line has characters that cannot be printed; type it again")
    return None


def tell_labelled(label: Part, sentence: str, indent: int = LABEL) -> None:
    """Write a labelled part of an error, finding or note to standard error.

    Paths below the working directory are shown relative to it.
    """
    paragraph(label, _from_here(sentence), indent=indent, to=sys.stderr)


def _from_here(text: str) -> str:
    """Return a text with the paths below the working directory relative to it."""
    try:
        here = str(Path.cwd())
    except OSError:
        # It was deleted, or lies behind a directory that this user may not enter.
        return text
    # "/" would take the slashes out of every URL, and "/build" a part out of /mnt/build/x.
    return text if here == "/" else re.sub(rf"(?<![\w./-]){re.escape(here)}/", "", text)


def table(columns: Sequence[Column], rows: Iterable[Sequence[Part]], *, empty: str = "") -> None:
    """Print rows in columns, or `empty` where there are none.

    On a terminal the table is as wide as that at most.
    Columns are shortened down to their least widths, then dropped, the least important one first.
    A column without a text is left out. A pipe gets every text whole.
    """
    cells = [[_styled(cell) for cell in row] for row in rows]
    if empty and not cells:
        line(empty)
        return
    filled = [
        number
        for number in range(len(columns))
        if not cells or any(row[number].text.strip() for row in cells)
    ]
    columns = [columns[number] for number in filled]
    shown = [[row[number] for number in filled] for row in cells]
    if any(column.head for column in columns):
        shown.insert(0, [bold(column.head) for column in columns])
    lengths = [[len(row[number].text) for row in shown] or [0] for number in range(len(columns))]
    available = width(sys.stdout)
    if available is None:
        columns = [replace(column, cut="never") for column in columns]
        # One long text must not push a whole column out of sight.
        widths = [max(length for length in each if length <= WIDE) for each in lengths]
    else:
        widths = column_widths(columns, [max(each) for each in lengths], available)
    for row in shown:
        parts: list[Styled] = []
        for column, cell, wide in zip(columns, row, widths, strict=True):
            if wide:
                cut = shorten(cell.text, wide, column.cut)
                parts.append(Styled(f"{cut:{'>' if column.right else '<'}{wide}}", cell.style))
                parts.append(Styled(GAP))
        # Blanks at the end of a full line would begin a second one on some terminals.
        while parts and not parts[-1].text.strip():
            parts.pop()
        if parts:
            parts[-1] = Styled(parts[-1].text.rstrip(), parts[-1].style)
        line(*parts, whole=True)
    hidden = [column.head for column, wide in zip(columns, widths, strict=True) if not wide]
    # A column without a head has no name to be missed by.
    if named := ", ".join(filter(None, hidden)):
        line(detail(f"too narrow for: {named}"))


def column_widths(columns: Sequence[Column], natural: Sequence[int], available: int) -> list[int]:
    """Return the width of each column within `available` characters; 0 for one that is left out."""
    widths = [0] * len(columns)

    def free() -> int:
        shown = [width for width in widths if width]
        return available - sum(shown) - len(GAP) * len(shown)

    # The most important first; among equals the one further left.
    by_rank = sorted(range(len(columns)), key=lambda number: columns[number].rank)
    for number in by_rank:
        column = columns[number]
        least = natural[number]
        if column.cut != "never":
            least = min(least, max(column.least, len(column.head)))
        if column.rank == 0 or least <= free():
            widths[number] = least
    # Then they grow, first to half of the width: one long text must not take all of it.
    for most in (available // 2, available):
        for number in by_rank:
            if widths[number]:
                wanted = min(natural[number], most) - widths[number]
                widths[number] += max(0, min(wanted, free() + len(GAP)))
    return widths


def shorten(text: str, available: int, cut: Cut = "end") -> str:
    """Return `text` in at most `available` characters; an ellipsis marks what was left out."""
    if len(text) <= available or cut == "never":
        return text
    if cut == "end":
        return text[: available - 1] + CUT
    # The end of a path says more than its beginning.
    tail = (available - 1) * 2 // 3
    return text[: available - 1 - tail] + CUT + text[len(text) - tail :]


def width(stream: TextIO) -> int | None:
    """Return how many characters a line of `stream` holds; None for anything but a terminal.

    COLUMNS decides where it is set, for pipes as well.
    """
    # As a person or a test sets it; shells set it without exporting it.
    asked = os.environ.get("COLUMNS", "")
    # str.isdigit also takes "²", and int() refuses 5,000 digits.
    if re.fullmatch(r"0*[1-9][0-9]{0,5}", asked, re.ASCII):
        return int(asked)
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None


@cache
def console(stream: TextIO) -> "Console":
    """Return rich's console of a stream, which takes texts as they are."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _styled(part: Part) -> Styled:
    if isinstance(part, Styled):
        return Styled(printable_lines(part.text), part.style)
    return Styled(printable_lines(part))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 file``, ``1,234 files``."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def as_size(size: float) -> str:
    """Return bytes as people read them: ``13.3 kB``, ``1.2 GB`` (powers of ten, as disks have)."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size:.0f} bytes"


def as_duration(seconds: float) -> str:
    """Return seconds as people read them: ``4.2 s``, ``3 min 12 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 seconds in a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
