"""In what two wheels differ, as people and machines read it."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby, islice
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.commands.reproduce import Reproduction
    from tfwright.wheel.compare.comparison import Comparison, Side
    from tfwright.wheel.compare.difference import Difference

MOST = 12
"""Differences of a group that are told; JSON has all."""


def show_comparison(comparison: "Comparison", *, as_json: bool) -> None:
    """Print what two wheels are, and their differences by group."""
    if as_json:
        text.as_json({"same": comparison.same, **asdict(comparison)})
        return
    if comparison.same:
        print(f"the same {comparison.first.size:,} bytes, sha256 {comparison.first.sha256}")
        return
    print(f"first   {_side(comparison.first)}")
    print(f"second  {_side(comparison.second)}")
    for group, differences in groupby(comparison.differences, key=lambda one: one.group):
        show_group(group, list(differences))


def show_group(group: str, differences: "Sequence[Difference]") -> None:
    """Print the differences of one group; files that differ alike are told together."""
    named = sum(bool(one.member) for one in differences)
    print(f"\n{group}" + (f": {named:,} files" if named > 1 else ""))
    alike = dict[tuple[str, tuple[str, ...]], list[str]]()
    for one in differences:
        alike.setdefault((one.what, one.lines), []).append(one.member)
    for (what, lines), members in islice(alike.items(), MOST):
        others = f" (and {len(members) - 1:,} more files, alike)" if len(members) > 1 else ""
        print(f"  {members[0]}{others}: {what}" if members[0] else f"  {what}")
        for line in lines:
            print(f"      {line}")
    if len(alike) > MOST:
        print(f"  and {len(alike) - MOST:,} more differences; --json names all")


def _side(side: "Side") -> str:
    return f"{side.file}: {side.size:,} bytes, {side.members:,} files of {side.unpacked:,} bytes, sha256 {side.sha256[:12]}…"


def show_reproduction(found: "Reproduction", *, as_json: bool) -> None:
    """Print whether a rebuilt wheel is the same, and if not, in what it differs and why."""
    if as_json:
        text.as_json({"reproduced": found.comparison.same, **asdict(found)})
        return
    if found.comparison.same:
        print(
            f"reproduced: {found.original.name} is the same {found.comparison.first.size:,} bytes, sha256 {found.comparison.first.sha256}"
        )
        return
    print(f"not reproduced: {found.original} (first), {found.rebuilt} (second)")
    show_comparison(found.comparison, as_json=False)
    print("\nwhy")
    for cause in found.causes:
        print(f"  {cause}")
