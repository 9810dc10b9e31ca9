"""The page of compare: what differs between two wheels."""

from collections.abc import Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING

from tfwright.printable import printable
from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.wheel.compare.comparison import Comparison
    from tfwright.wheel.compare.difference import Difference

MOST = 12
"""Differences of a group that are shown; JSON has all."""


def show_comparison(comparison: "Comparison") -> None:
    """Print what two wheels are, and their differences by group."""
    first, second = comparison.first, comparison.second
    # One digest says it all: the same bytes have no differences to list.
    if comparison.same:
        same = text.good("the same")
        text.line(same, f" {first.size:,} bytes, sha256 {first.sha256}")
        return
    text.line(text.bad("the wheels differ"))
    for label, side in (("first", first), ("second", second)):
        known = (
            f"{side.file}: {side.size:,} bytes, {side.members:,} files "
            f"of {side.unpacked:,} bytes, sha256 {side.sha256[:12]}…"
        )
        text.paragraph(label, known, indent=8)
    # The comparison yields each group as a whole, which groupby relies on.
    for group, differences in groupby(comparison.differences, key=lambda found: found.group):
        show_group(group, list(differences))


def show_group(group: str, differences: "Sequence[Difference]") -> None:
    """Print the differences of one group; files that differ alike share a line."""
    files = sum(bool(difference.member) for difference in differences)
    text.line()
    text.line(text.bold(group), f": {files:,} files" if files > 1 else "")
    # A changed version shows in every file of a wheel; one line says it for all.
    alike = dict[tuple[str, tuple[str, ...]], list[str]]()
    for difference in differences:
        alike.setdefault((difference.what, difference.lines), []).append(difference.member)
    for (what, lines), members in islice(alike.items(), MOST):
        others = f" (and {len(members) - 1:,} more files, alike)" if members[1:] else ""
        # A difference of the whole wheel, such as its tags, is of no file.
        where = f"{members[0]}{others}: " if members[0] else ""
        # Names in a wheel are chosen by whoever made it.
        text.paragraph("", printable(where + what), indent=2)
        for row in lines:
            text.line(text.detail(f"      {printable(row)}"))
    if len(alike) > MOST:
        text.line(f"  and {len(alike) - MOST:,} more differences; --json lists all")
