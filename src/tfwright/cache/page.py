"""The build cache, as people read it."""

import time
from collections import Counter
from typing import TYPE_CHECKING

from tfwright.printable import listed
from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.cache.usage import ActionChange, CacheComparison, CacheState, ToolchainChange

MIB, GIB = 1 << 20, 1 << 30
KEPT = (Column("toolchain"), Column("entries", right=True))
BUILDS = (
    Column("finished", rank=2),
    Column("recipe", cut="middle"),
    Column("toolchain", rank=3),
    Column("hits", right=True),
    Column("of", right=True),
    Column("share", rank=1, right=True),
    Column("faults", rank=1, right=True),
)
EXPLAINED = 20
"""Differences that are listed one by one."""


def show_cache(state: "CacheState") -> None:
    """Print what the cache holds and what it did for the last builds."""
    share = f"{state.held / MIB:,.1f} MiB of {state.limit / GIB:g} GiB"
    behind = f", behind it {state.server}" if state.server else ""
    text.line(f"{share} in {state.directory}{behind}")
    if state.toolchains:
        # Twelve digits tell toolchains apart, and fit the table.
        text.table(KEPT, [(kept.digest[:12], str(kept.entries)) for kept in state.toolchains])
        text.line()
    rows, faults = [], Counter[str]()
    for build in state.builds:
        use = build.use
        faults.update(use.faults)
        rows.append(
            (
                # The reader's own time zone; the history keeps seconds.
                time.strftime("%Y-%m-%d %H:%M", time.localtime(build.finished)),
                build.recipe,
                use.toolchain[:12],
                str(use.hits),
                str(use.lookups),
                f"{100 * use.hits / use.lookups:.0f} %" if use.lookups else "-",
                str(sum(use.faults.values())),
            )
        )
    # The first one may be adding to it now.
    text.table(BUILDS, rows, empty="No build that used the cache has ended yet.")
    # Faults of a cache fail no build, so this page is where they show.
    for what, count in faults.most_common():
        text.tell(f"  {count}x {what}; the action was run", text.WARNING)
    for log in state.logs:
        text.tell(f"  execution log: {log.stem}")


def show_why(found: "CacheComparison") -> None:
    """Print what made actions differ, causes before consequences."""
    # A changed header makes hundreds of actions differ; only the first ones explain it.
    causes = [change for change in found.changes if not change.follows]
    total = found.same + len(found.changes) + found.only_second
    text.line(f"The second build took {found.hits} of {total} actions from the cache.")
    _show_toolchains(found)
    text.line(f"The same in both: {text.counted(found.same, 'action')}.")
    text.line(f"Different: {len(found.changes)}, {len(causes)} of them not because of another one.")
    text.line(
        f"In the first build only: {found.only_first}, in the second only: {found.only_second}."
    )
    # One variable makes each action differ: it is said once.
    grouped: dict[str, list[ActionChange]] = {}
    for change in causes:
        grouped.setdefault(change.what, []).append(change)
    for what, changes in list(grouped.items())[:EXPLAINED]:
        others = text.counted(len(changes) - 1, "other action")
        more = f", and {others}" if len(changes) > 1 else ""
        text.line(f"\n{changes[0].mnemonic} {changes[0].name}{more}")
        text.paragraph("", what, indent=2)
    if len(grouped) > EXPLAINED:
        text.line(f"\nand {len(grouped) - EXPLAINED} more differences; --json lists them all")


def _show_toolchains(found: "CacheComparison") -> None:
    """Say whether the builds could share entries at all, and whether shared ones are gone."""
    if found.toolchains is None:
        text.line("Their toolchains are not known: the history lists the last 50 builds here.")
    elif found.toolchains:
        text.line("The toolchains differ, so neither build can use what the other one left:")
        # gcc and cc are one program in most systems.
        parts: dict[str, list[str]] = {}
        for change in found.toolchains:
            parts.setdefault(_became(change), []).append(change.part)
        for what, names in parts.items():
            text.line(f"  {', '.join(names)}")
            text.paragraph("", what, indent=4)
        text.line()
    elif found.missed:
        text.line(
            "The second build ran the same actions again: their entries were not in the cache any "
            "more, or it was off."
        )


def _became(change: "ToolchainChange") -> str:
    """Say in lines what became of a part of the toolchain, and which of its files differ."""
    lines = []
    if change.before and change.before == change.after:
        lines.append(f"{change.before}, with other content")
    elif change.before or change.after:
        # One that was not known is a part of many files.
        before = change.before or "other files"
        lines.append(f"{before} became {change.after or 'other files'}")
    # Digests of many files say nothing, their names do.
    if change.files:
        word = "file" if len(change.files) == 1 else "files"
        lines.append(f"{word}: {listed(change.files, 3)}")
    return "\n".join(lines)
