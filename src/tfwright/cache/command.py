"""The command cache, and the build cache as people read it."""

import time
from collections import Counter
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, task
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.tools.cache.usage import CacheState


@task(help=JSON)
def cache(_: Context) -> Shown:
    """Show what the build cache holds, how large it is, and what it did for the last builds."""
    from tfwright.documents import host_file
    from tfwright.tools.cache import usage

    return Answer(usage.cache_state(host_file.read()), show_cache)


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
