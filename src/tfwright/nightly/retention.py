"""What is kept, what the index hides, and what is deleted after that.

A build is hidden first: pip no longer finds it, and its files stay for some days. They go earlier
only if the next build would not have enough room. The last good build of a target, what a pointer
names, and what holds a file ``keep`` are never touched.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence

from tfwright.documents.nightly import NightlyFile
from tfwright.index.write import EXTRAS, PACKAGES
from tfwright.nightly import builds, status
from tfwright.nightly.state import KeptBuild, State
from tfwright.tools import files, trees


def hide(nightly: NightlyFile, state: State, today: dt.date) -> int:
    """Mark the builds that are too many or too large as hidden; return how many were new."""
    kept = state.builds()
    home = nightly.builds
    sizes = {item.id: trees.size(home / item.id) for item in kept}
    safe, limits = _protected_builds(nightly, state, kept), nightly.retention
    by_target = defaultdict(list)
    for item in kept:
        # Apart, or a recipe that fails every night would hide all its wheels but the last one.
        by_target[item.target, item.listed].append(item.id)
    surplus = {name for own in by_target.values() for name in own[: -limits.count]}
    total = sum(sizes.values())
    for item in kept:
        if total <= limits.size:
            break
        if item.id not in safe:
            surplus.add(item.id)
            total -= sizes[item.id]
    count = 0
    for item in kept:
        wanted = item.id in surplus and item.id not in safe
        # Hidden while the clock was wrong, it would stay until that day comes.
        ahead = item.hidden is not None and item.hidden > today
        if ahead or wanted != (item.hidden is not None):
            # A raised limit brings a hidden build back.
            state.mark_build(item.id, hidden=today if wanted else None, deleted=None)
            count += wanted and not ahead
    return count


def expire(nightly: NightlyFile, state: State, today: dt.date, missing: int = 0) -> int:
    """Mark what has been hidden long enough as deleted; return how many builds that are.

    While `missing` bytes are wanted, builds go before their day, the longest hidden first. Their
    files stay until `sweep`: the site must first be made without them.
    """
    days = dt.timedelta(days=nightly.retention.hidden_days)
    kept = state.builds()
    # Asked again: a pointer may have moved back to a build since it was hidden.
    safe = _protected_builds(nightly, state, kept)
    hidden = [(item.hidden, item.id) for item in kept if item.hidden and item.id not in safe]
    count = 0
    for since, identifier in sorted(hidden, key=lambda pair: pair[0]):
        if today - since < days and missing <= 0:
            break
        missing -= trees.size(nightly.builds / identifier)
        state.mark_build(identifier, hidden=since, deleted=today)
        count += 1
    return count


def sweep(nightly: NightlyFile, state: State) -> list[str]:
    """Remove the files of builds that are deleted in the state, also those that a kill has left.

    The site that is in place names none of them. Forgets the builds whose wheels somebody removed,
    and returns their identifiers: a recipe without a wheel must not count as built.
    """
    packages = nightly.site / PACKAGES
    build_names = {path.name for path in nightly.builds.glob("*")}
    wheels = {path.name for path in packages.glob("*")}
    kept = state.builds()
    # Builds with equal bytes share a name in the index.
    listed = {item.wheel for item in kept if item.listed}
    for identifier, wheel in state.deleted():
        if identifier in build_names:
            # A kill leaves nothing half-deleted where users look; `WORK` is cleared at each start.
            discarded = nightly.directory / builds.WORK / f"deleted-{identifier}"
            discarded.parent.mkdir(exist_ok=True)
            (nightly.builds / identifier).rename(discarded)
            files.remove(discarded)
            files.remove(nightly.directory / builds.PRIVATE / identifier)
        if wheel in wheels and wheel not in listed:
            for suffix in (*EXTRAS, ".metadata", ""):
                files.remove(packages / f"{wheel}{suffix}")
    present = build_names | wheels
    lost = [item.id for item in kept if item.listed and not present & {item.id, item.wheel}]
    for identifier in lost:
        state.forget(identifier)
    return lost


def _protected_builds(nightly: NightlyFile, state: State, kept: Sequence[KeptBuild]) -> set[str]:
    """Return the identifiers of the builds that may never go."""
    pointers = status.pointers(nightly, state, kept)
    named = {build.id for own in pointers.values() for build in own.values()}
    return named | kept_by_file(nightly, kept)


def kept_by_file(nightly: NightlyFile, kept: Sequence[KeptBuild]) -> set[str]:
    """Return the identifiers of the builds that a person protected with a file ``keep``."""
    return {item.id for item in kept if (nightly.builds / item.id / builds.KEEP).exists()}
