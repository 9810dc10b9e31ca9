"""What programs read: an Atom feed, ``latest.json``, and a badge as SVG."""

import datetime as dt
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import NamedTuple

from tfwright.documents.nightly import NightlyFile
from tfwright.nightly.pages import words
from tfwright.nightly.pages.overview import OverviewRow
from tfwright.nightly.state import State

ATOM = "http://www.w3.org/2005/Atom"
SVG = "http://www.w3.org/2000/svg"
ENTRIES = 50
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold; a log can."""
COLOURS = {"good": "#1a7f42", "warn": "#8a6d00", "bad": "#c0292b", "dim": "#656c76"}


def atom(nightly: NightlyFile, state: State, now: dt.datetime) -> bytes:
    """Return the feed: each notice that was raised, newest first."""
    home = nightly.url or "urn:tfwright:nightly"
    feed = ET.Element("feed", xmlns=ATOM)
    _text(feed, "title", nightly.title)
    _text(feed, "id", home)
    author = ET.SubElement(feed, "author")
    _text(author, "name", "tfwright")
    if nightly.url:
        ET.SubElement(feed, "link", rel="self", href=f"{nightly.url}feed.xml")
        ET.SubElement(feed, "link", href=nightly.url)
    events = _events(state)
    # The time of the last event: a night without an event leaves the feed unchanged.
    _text(feed, "updated", events[0].at if events else _stamp(now))
    for event in events:
        _add_entry(feed, event, nightly.url)
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


class _Event(NamedTuple):
    """The opening or the closing of a thread of notices."""

    at: str
    """Time in ISO 8601."""
    thread: str
    target: str
    """Empty for the build host itself."""
    kind: str


def _add_entry(feed: ET.Element, event: _Event, url: str | None) -> None:
    at, thread, target, kind = event
    entry = ET.SubElement(feed, "entry")
    named = target or "the build host"
    _text(entry, "title", f"{named}: {kind}")
    _text(entry, "id", f"urn:tfwright:{thread.replace(' ', ':')}:{at}:{kind}")
    _text(entry, "updated", at)
    if url:
        place = f"recipes/{target}.html" if target else ""
        ET.SubElement(entry, "link", href=f"{url}{place}")
    _text(entry, "summary", f"{named} is {kind} since {at[:10]}.")


def _events(state: State) -> list[_Event]:
    """Return the openings and closings of threads, newest first."""
    found = []
    for thread, target, opened, closed in state.database.execute(
        "select thread, target, opened, closed from thread"
    ):
        # A thread is named after its target and its kind; the build host's own has no target.
        kind = thread.removeprefix(target or "build-host").split()[0]
        found.append(_Event(opened, thread, target, kind))
        if closed:
            found.append(_Event(closed, thread, target, "fixed"))
    return sorted(found, reverse=True)[:ENTRIES]


def latest(found: Sequence[OverviewRow], now: dt.datetime) -> bytes:
    """Return ``latest.json``: how each target stands, for programs."""
    listed = []
    for row in found:
        standing, kept = row.standing, row.kept
        entry: dict[str, object] = {
            "name": row.target.name,
            "state": standing.word,
            "fine": standing.fine,
            "since": standing.since.isoformat() if standing.since else None,
            "last-good": standing.last_good.isoformat() if standing.last_good else None,
            "detail": standing.detail,
        }
        if kept:
            entry["wheel"] = {
                "filename": kept.wheel,
                "version": kept.version,
                "sha256": kept.sha256,
                "size": kept.size,
                "build": kept.id,
                "tested": kept.tested,
            }
        listed.append(entry)
    page = {"format": 1, "made": _stamp(now), "targets": listed}
    return (json.dumps(page, indent=1) + "\n").encode()


def badge(row: OverviewRow) -> bytes:
    """Return a badge that says how a target stands."""
    left, right = "tfwright", _said(row)
    # Text of 11 pixels in a proportional font: 6.6 pixels a character are enough.
    widths = [round(len(text) * 6.6) + 12 for text in (left, right)]
    total = sum(widths)
    svg = ET.Element(
        "svg", xmlns=SVG, width=str(total), height="20", role="img", viewBox=f"0 0 {total} 20"
    )
    _text(svg, "title", f"{row.target.name}: {right}")
    _rectangle(svg, 0, widths[0], "#3d434b")
    _rectangle(svg, widths[0], widths[1], COLOURS[row.tone])
    style = {"fill": "#fff", "font-family": "Verdana,sans-serif", "font-size": "11"}
    group = ET.SubElement(svg, "g", {**style, "text-anchor": "middle"})
    _label(group, widths[0] / 2, left)
    _label(group, widths[0] + widths[1] / 2, right)
    return bytes(ET.tostring(svg, encoding="utf-8"))


def _said(row: OverviewRow) -> str:
    if row.standing.fine and row.standing.since:
        days = f"{row.days} day{'' if row.days == 1 else 's'}"
        return f"good since {days}"
    since = f" since {words.day(row.standing.since)}" if row.standing.since else ""
    return f"{row.standing.word}{since}"


def _label(group: ET.Element, middle: float, text: str) -> None:
    label = ET.SubElement(group, "text", x=f"{middle:.1f}", y="14")
    label.text = text


def _rectangle(svg: ET.Element, left: int, width: int, colour: str) -> None:
    ET.SubElement(svg, "rect", x=str(left), width=str(width), height="20", fill=colour)


def _text(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def _stamp(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")
