"""What is kept, what the index hides, and what is deleted after that.

A build is hidden first: pip no longer finds it, and its files stay for some days. The last good
build of a target, what a pointer names, and what holds a file ``keep`` are never touched.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

from tfwright.documents.nightly import NightlyFile, RetentionTable
from tfwright.nightly import builds, gates
from tfwright.nightly.index.write import EXTRAS, PACKAGES
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


def delete(
    nightly: NightlyFile, state: State, folder: Path, today: dt.date
) -> int:
    """Delete what has been hidden long enough; return how many builds went."""
    days = dt.timedelta(days=nightly.retention.hidden_days)
    kept = state.builds()
    # Asked again: a pointer may have moved back to a build since it was hidden.
    safe = protected(kept, folder, state, gated=nightly.reproduce)
    count = 0
    for item in kept:
        if item.hidden and today - item.hidden >= days and item.id not in safe:
            _delete(item, kept, state, folder, today)
            count += 1
    return count


def _delete(
    item: KeptBuild,
    kept: Sequence[KeptBuild],
    state: State,
    folder: Path,
    today: dt.date,
) -> None:
    """Delete one build: the note first, so that a kill in between leaves only waste."""
    state.mark_build(item.id, hidden=item.hidden, deleted=today)
    builds.discard(folder / "builds" / item.id, folder.parent / builds.WORK)
    same = [
        other for other in kept if other.wheel == item.wheel and other is not item
    ]
    # Builds with equal bytes share a name in the index.
    if item.listed and not same:
        for suffix in ("", ".metadata", *EXTRAS):
            files.remove(folder / PACKAGES / f"{item.wheel}{suffix}")


def sweep(state: State, folder: Path) -> int:
    """Remove the directories of builds that are deleted in the state; return how many there were.

    A kill between the note and the deletion leaves such a directory.
    """
    count = 0
    for item in state.gone():
        if (folder / "builds" / item.id).exists():
            builds.discard(
                folder / "builds" / item.id, folder.parent / builds.WORK
            )
            count += 1
    return count


def protected(
    kept: Sequence[KeptBuild], folder: Path, state: State, *, gated: bool
) -> set[str]:
    """Return the identifiers of the builds that may never go."""
    by_target = defaultdict(list)
    for item in kept:
        if item.listed:
            by_target[item.target].append(item)
    reproduced = gates.reproductions(state)
    safe = set()
    for own in by_target.values():
        named = gates.pointed(own, reproduced, gated=gated)
        safe |= {build.id for build in named.values()}
    return safe | kept_by_file(kept, folder)


def kept_by_file(kept: Sequence[KeptBuild], folder: Path) -> set[str]:
    """Return the identifiers of the builds that a person protected with a file ``keep``."""
    home = folder / "builds"
    return {item.id for item in kept if (home / item.id / builds.KEEP).exists()}


def too_many(
    kept: Sequence[KeptBuild], safe: Collection[str], limits: RetentionTable
) -> list[str]:
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
    kept: Sequence[KeptBuild],
    safe: Collection[str],
    sizes: dict[str, int],
    limits: RetentionTable,
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
