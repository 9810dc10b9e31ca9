"""The pages of compare and reproduce: what differs between two wheels."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby, islice
from typing import TYPE_CHECKING

from tfwright.printable import printable
from tfwright.terminal import text
from tfwright.terminal.text import Styled

if TYPE_CHECKING:
    from tfwright.build.reproduce import Reproduction
    from tfwright.wheel.compare.comparison import Comparison, Side
    from tfwright.wheel.compare.difference import Difference

MOST = 12
"""Differences of a group that are shown; JSON has all."""


def show_comparison(comparison: "Comparison", *, as_json: bool) -> None:
    """Print what two wheels are, and their differences by group."""
    if as_json:
        text.as_json({"same": comparison.same, **asdict(comparison)})
        return
    first = comparison.first
    # One digest says it all: the same bytes have no differences to list.
    if comparison.same:
        same = Styled("the same", text.GOOD)
        text.line(same, f" {first.size:,} bytes, sha256 {first.sha256}")
        return
    text.line(Styled("the wheels differ", text.BAD))
    text.paragraph("first", _side(first), indent=8)
    text.paragraph("second", _side(comparison.second), indent=8)
    # The comparison yields each group as a whole, which groupby relies on.
    for group, differences in groupby(comparison.differences, key=lambda found: found.group):
        show_group(group, list(differences))


def show_group(group: str, differences: "Sequence[Difference]") -> None:
    """Print the differences of one group; files that differ alike share a line."""
    files = sum(bool(difference.member) for difference in differences)
    text.line()
    text.line(Styled(group, text.HEADING), f": {files:,} files" if files > 1 else "")
    # A changed version shows in every file of a wheel; one line says it for all.
    alike = dict[tuple[str, tuple[str, ...]], list[str]]()
    for difference in differences:
        alike.setdefault((difference.what, difference.lines), []).append(difference.member)
    for (what, lines), members in islice(alike.items(), MOST):
        _show_difference(what, lines, members)
    if len(alike) > MOST:
        text.line(f"  and {len(alike) - MOST:,} more differences; --json lists all")


def _show_difference(what: str, lines: Sequence[str], members: Sequence[str]) -> None:
    # Names in a wheel are chosen by whoever made it.
    text.paragraph("", printable(_of_members(what, members)), indent=2)
    for row in lines:
        text.line(Styled(f"      {printable(row)}", text.DETAIL))


def _of_members(what: str, members: Sequence[str]) -> str:
    # A difference of the whole wheel, such as its tags, is of no file.
    if not members[0]:
        return what
    more = len(members) - 1
    others = f" (and {more:,} more files, alike)" if more else ""
    return f"{members[0]}{others}: {what}"


def _side(side: "Side") -> str:
    return (
        f"{side.file}: {side.size:,} bytes, {side.members:,} files "
        f"of {side.unpacked:,} bytes, sha256 {side.sha256[:12]}…"
    )


def show_reproduction(found: "Reproduction", *, as_json: bool) -> None:
    """Print whether a rebuilt wheel is the same; if it differs, where and why."""
    if as_json:
        text.as_json({"reproduced": found.comparison.same, **asdict(found)})
        return
    if found.comparison.same:
        first = found.comparison.first
        text.line(
            Styled("reproduced", text.GOOD),
            f": {found.original.name} is the same {first.size:,} bytes, sha256 {first.sha256}",
        )
        return
    both = f": {found.original} (first), {found.rebuilt} (second)"
    text.line(Styled("not reproduced", text.BAD), both)
    show_comparison(found.comparison, as_json=False)
    text.line()
    text.heading("why")
    for cause in found.causes:
        text.paragraph("", cause, indent=2)
