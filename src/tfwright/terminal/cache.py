"""The build cache, as people read it."""

import time
from collections import Counter
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.commands.cache import CacheComparison, CacheState
    from tfwright.tools.cache.history import CachedBuild

GIB = 1 << 30
EXPLAINED = 20
"""Changed actions that are listed one by one."""


def show_cache(state: "CacheState", *, as_json: bool) -> None:
    """Print what the cache holds and what it did for the last builds."""
    if as_json:
        builds = [build.model_dump() for build in state.builds]
        tools = [vars(toolchain) for toolchain in state.toolchains]
        text.as_json({**vars(state), "builds": builds, "toolchains": tools})
        return
    share = f"{state.held / GIB:.2f} of {state.limit / GIB:g} GiB"
    print(f"{share} in {state.directory}" + (f", behind it {state.server}" if state.server else ""))
    if not state.builds:
        print("No build has used the cache yet.")
    else:
        rows = [
            ("toolchain", "entries"),
            *((t.digest[:12], str(t.entries)) for t in state.toolchains),
        ]
        text.table(rows)
        print()
        heads = ("finished", "recipe", "toolchain", "hits", "of", "share", "faults")
        text.table([heads, *map(_row, state.builds)])
    _show_faults(state)
    for log in state.logs:
        text.tell(f"  execution log: {log.stem}")


def show_why(found: "CacheComparison", *, as_json: bool) -> None:
    """Print what made actions differ, causes before consequences."""
    if as_json:
        text.as_json({**vars(found), "changes": [vars(change) for change in found.changes]})
        return
    causes = [change for change in found.changes if not change.follows]
    print(
        f"{found.same} actions are the same, {len(found.changes)} differ, {len(causes)} by themselves."
    )
    print(f"Only the first build has {found.only_first} more, only the second {found.only_second}.")
    for change in causes[:EXPLAINED]:
        print(f"\n{change.mnemonic} {change.name}\n  {change.what}")
    if len(causes) > EXPLAINED:
        print(f"\nand {len(causes) - EXPLAINED} more; --json lists them all")
    for part in found.toolchains:
        print(f"The last two builds had another toolchain: {part} changed.")


def _row(build: "CachedBuild") -> tuple[str, ...]:
    use = build.use
    finished = time.strftime("%Y-%m-%d %H:%M", time.localtime(build.finished))
    share = f"{100 * use.hits / use.lookups:.0f} %" if use.lookups else "-"
    faults = str(sum(use.faults.values()))
    hits = (str(use.hits), str(use.lookups))
    return (finished, build.recipe, use.toolchain[:12], *hits, share, faults)


def _show_faults(state: "CacheState") -> None:
    """Say what went wrong in the builds that are listed."""
    faults: Counter[str] = Counter()
    for build in state.builds:
        faults.update(build.use.faults)
    for what, count in faults.most_common():
        text.tell(f"  {count}x {what}; it became a miss")
