"""All pages of the site, written where their bytes changed."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tfwright.documents.nightly import NightlyFile
from tfwright.nightly import retention, units
from tfwright.nightly.pages import feed, overview, words
from tfwright.nightly.pages.overview import OverviewRow
from tfwright.nightly.state import State
from tfwright.tools import batch as batches
from tfwright.tools.render import renderer

RECIPES = "recipes"
BADGES = "badges"
BUILDS_SHOWN = 120
"""Builds on the page of one recipe."""


def write_pages(
    nightly: NightlyFile, state: State, site: Path, now: dt.datetime, yanked: Mapping[str, str]
) -> int:
    """Write the first page, a page for each target, feed, badges; return how many changed.

    `yanked` holds the reason for each yanked wheel, by file name.
    """
    everything = overview.rows(nightly, state, yanked, now)
    listed = [row for row in everything if row.listed]
    with batches.below(site) as batch:
        for row in everything:
            name = row.target.name
            history = _history(nightly, state, site, row, now)
            batch.add(site / RECIPES / f"{name}.html", history.encode())
            batch.add(site / BADGES / f"{name}.svg", feed.badge(row))
        batch.add(site / "feed.xml", feed.atom(nightly, state, now))
        batch.add(site / "latest.json", feed.latest(listed, now))
        # The first page comes last: whoever reads it finds what it links.
        first = _first_page(nightly, state, listed, now)
        batch.add(site / "index.html", first.encode())
        count = batch.place()
    _remove_others(site, {row.target.name for row in everything})
    return count


def _remove_others(site: Path, names: Collection[str]) -> None:
    """Remove pages and badges of targets that neither nightly.toml nor a build names."""
    # They would go on to say how the target once stood.
    for path in (*site.glob(f"{RECIPES}/*.html"), *site.glob(f"{BADGES}/*.svg")):
        if path.stem not in names:
            path.unlink()


def _first_page(
    nightly: NightlyFile, state: State, rows: Sequence[OverviewRow], now: dt.datetime
) -> str:
    """Return the page with a line for each target that nightly.toml lists."""
    said, tone = overview.sentence(rows)
    values = {
        "title": nightly.title,
        "rows": rows,
        "said": said,
        "tone": tone,
        "now": now,
        "last": state.last_night(),
        "next": units.next_start(nightly.directory, now),
        "url": nightly.url or "",
        "stale_nights": nightly.notices.stale_nights,
        "words": words,
    }
    return renderer("nightly_index.html.j2")(values)


def _history(
    nightly: NightlyFile, state: State, site: Path, row: OverviewRow, now: dt.datetime
) -> str:
    """Return the page of one target: its nights and its builds."""
    name = row.target.name
    builds = row.builds[-BUILDS_SHOWN:]
    days = dt.timedelta(days=nightly.retention.hidden_days)
    values = {
        "title": nightly.title,
        "row": row,
        "builds": list(reversed(builds)),
        "nights": list(reversed(state.history_of(name, BUILDS_SHOWN))),
        "deletion": {build.id: build.hidden + days for build in builds if build.hidden},
        "indexed": any(build.listed for build in row.builds),
        "yanked": row.yanked,
        "kept": retention.kept_by_file(builds, site),
        "url": nightly.url or "",
        "now": now,
        "words": words,
    }
    return renderer("nightly_recipe.html.j2")(values)
