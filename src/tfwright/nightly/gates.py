"""Which builds passed which gates, and so which of them the pointers name."""

from collections import defaultdict
from collections.abc import Iterable

from tfwright.nightly.state import KeptBuild, State


def reproductions(state: State) -> set[str]:
    """Return the identifiers of the builds that were built again to the same bytes."""
    rows = state.database.execute(
        "select kind from checked where kind like 'reproduced:%' and passed"
    )
    return {kind.partition(":")[2] for (kind,) in rows}


def by_target(kept: Iterable[KeptBuild]) -> dict[str, list[KeptBuild]]:
    """Group the builds that have a wheel in the index."""
    grouped = defaultdict[str, list[KeptBuild]](list)
    for build in kept:
        if build.listed:
            grouped[build.target].append(build)
    return dict(grouped)


def pointed(own: list[KeptBuild], reproduced: set[str], *, gated: bool) -> dict[str, KeptBuild]:
    """Return what each pointer of a target names; `gated` asks for a reproduction of `stable`."""
    found = {}
    # Oldest first, so that a later build replaces an earlier one.
    for build in own:
        found["nightly"] = build
        if build.good:
            found["last-good"] = build
        if build.tested == "passed" and (not gated or build.id in reproduced):
            found["stable"] = build
    return found
