"""What is kept, what the index hides, and what is deleted after that.

A build is hidden first: pip no longer finds it, and its files stay for some days. They go earlier
only if the next build would not have enough room. The last good build of a target, what a pointer
names, and what holds a file ``keep`` are never touched.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

from tfwright.documents.nightly import NightlyFile, RetentionTable
from tfwright.index.write import EXTRAS, PACKAGES
from tfwright.nightly import builds, gates
from tfwright.nightly.state import KeptBuild, State
from tfwright.tools import files


def hide(nightly: NightlyFile, state: State, folder: Path, today: dt.date) -> int:
    """Mark the builds that are too many or too large as hidden; return how many were new."""
    kept = state.builds()
    safe = protected(kept, folder, state, gated=nightly.reproduce)
    sizes = {item.id: builds.size(folder / "builds" / item.id) for item in kept}
    surplus = set(too_many(kept, safe, nightly.retention))
    surplus |= set(too_large(kept, safe, sizes, nightly.retention))
    count = 0
    for item in kept:
        wanted = item.id in surplus
        # Hidden while the clock was wrong, it would stay until that day comes.
        ahead = item.hidden is not None and item.hidden > today
        if wanted == (item.hidden is not None) and not ahead:
            continue
        # A raised limit brings a hidden build back.
        state.mark_build(item.id, hidden=today if wanted else None, deleted=None)
        count += wanted and not ahead
    return count


def expire(
    nightly: NightlyFile, state: State, folder: Path, today: dt.date, missing: int = 0
) -> int:
    """Mark what has been hidden long enough as deleted; return how many builds that are.

    While `missing` bytes are wanted, builds go before their day, the longest hidden first. Their
    files stay until `sweep`: the site must first be made without them.
    """
    days = dt.timedelta(days=nightly.retention.hidden_days)
    kept = state.builds()
    # Asked again: a pointer may have moved back to a build since it was hidden.
    safe = protected(kept, folder, state, gated=nightly.reproduce)
    hidden = [(item.hidden, item) for item in kept if item.hidden and item.id not in safe]
    count = 0
    for since, item in sorted(hidden, key=lambda pair: pair[0]):
        if today - since < days and missing <= 0:
            break
        missing -= builds.size(folder / "builds" / item.id)
        state.mark_build(item.id, hidden=since, deleted=today)
        count += 1
    return count


def sweep(state: State, folder: Path) -> None:
    """Remove the files of builds that are deleted in the state, also those that a kill has left.

    The site that is in place names none of them.
    """
    here = _names(folder / "builds")
    wheels = _names(folder / PACKAGES)
    # Builds with equal bytes share a name in the index.
    listed = {item.wheel for item in state.builds() if item.listed}
    for identifier, wheel in state.gone():
        if identifier in here:
            builds.discard(folder / "builds" / identifier, folder.parent / builds.WORK)
        if wheel in wheels and wheel not in listed:
            for suffix in (*EXTRAS, ".metadata", ""):
                files.remove(folder / PACKAGES / f"{wheel}{suffix}")


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def protected(kept: Sequence[KeptBuild], folder: Path, state: State, *, gated: bool) -> set[str]:
    """Return the identifiers of the builds that may never go."""
    reproduced = gates.reproductions(state)
    safe = set()
    for own in gates.by_target(kept).values():
        named = gates.pointed(own, reproduced, gated=gated)
        safe |= {build.id for build in named.values()}
    return safe | kept_by_file(kept, folder)


def kept_by_file(kept: Sequence[KeptBuild], folder: Path) -> set[str]:
    """Return the identifiers of the builds that a person protected with a file ``keep``."""
    home = folder / "builds"
    return {item.id for item in kept if (home / item.id / builds.KEEP).exists()}


def too_many(kept: Sequence[KeptBuild], safe: Collection[str], limits: RetentionTable) -> list[str]:
    """Return the builds beyond the count of their target, oldest first."""
    by_target = defaultdict(list)
    for item in kept:
        # Apart, or a recipe that fails every night would hide all its wheels but the last one.
        by_target[item.target, item.listed].append(item.id)
    surplus = []
    for own in by_target.values():
        # The builds are oldest first, so the newest ones are at the end.
        surplus += [build for build in own[: -limits.count] if build not in safe]
    return surplus


def too_large(
    kept: Sequence[KeptBuild], safe: Collection[str], sizes: dict[str, int], limits: RetentionTable
) -> list[str]:
    """Return the oldest builds, until the rest is within the limit of bytes."""
    total = sum(sizes.values())
    surplus = []
    for item in kept:
        if total <= limits.size:
            break
        if item.id not in safe:
            surplus.append(item.id)
            total -= sizes[item.id]
    return surplus
