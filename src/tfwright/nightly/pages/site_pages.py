"""All pages of the site, written where their bytes changed."""

import datetime as dt
from pathlib import Path

from tfwright.documents.nightly import NightlyFile
from tfwright.nightly import retention, units
from tfwright.nightly.pages import feed, overview, words
from tfwright.nightly.pages.overview import OverviewRow
from tfwright.nightly.state import State
from tfwright.tools import batch as batches
from tfwright.tools.batch import FileBatch
from tfwright.tools.render import renderer

RECIPES = "recipes"
BADGES = "badges"
BUILDS_SHOWN = 120
"""Builds on the page of one recipe."""


def write_pages(
    nightly: NightlyFile, state: State, site: Path, now: dt.datetime
) -> int:
    """Write the first page, a page for each target, feed, badges; return how many changed."""
    with batches.below(site) as batch:
        names = _stage(nightly, state, site, now, batch)
        count = batch.place()
    # What neither nightly.toml nor a build names would go on to say how it once stood.
    for page in (*site.glob(f"{RECIPES}/*.html"), *site.glob(f"{BADGES}/*.svg")):
        if page.stem not in names:
            page.unlink()
    return count


def _stage(
    nightly: NightlyFile,
    state: State,
    site: Path,
    now: dt.datetime,
    batch: FileBatch,
) -> set[str]:
    """Add every page to the batch; return the targets that have one."""
    everything = overview.rows(nightly, state, now)
    for row in everything:
        name = row.target.name
        page = _history(nightly, state, site, row, now)
        batch.add(site / RECIPES / f"{name}.html", page.encode())
        batch.add(site / BADGES / f"{name}.svg", feed.badge(row))
    batch.add(site / "feed.xml", feed.atom(nightly, state, now))
    rows = [row for row in everything if row.listed]
    batch.add(site / "latest.json", feed.latest(rows, now))
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
    # The first page comes last: whoever reads it finds what it links.
    batch.add(
        site / "index.html", renderer("nightly_index.html.j2")(values).encode()
    )
    return {row.target.name for row in everything}


def _history(
    nightly: NightlyFile,
    state: State,
    site: Path,
    row: OverviewRow,
    now: dt.datetime,
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
        "deletion": {
            build.id: build.hidden + days for build in builds if build.hidden
        },
        "kept": retention.kept_by_file(builds, site),
        "url": nightly.url or "",
        "now": now,
        "words": words,
    }
    return renderer("nightly_recipe.html.j2")(values)
