"""The pages of a build host: static HTML that needs no server, no JavaScript and no network.

Here is how they write sizes, times and dates.
"""

import datetime as dt

from tfwright.terminal import text

size, duration = text.as_size, text.as_duration


def change(before: float, now: float, least: float = 0) -> str:
    """Return how a number changed, as ``+3.1 %``; nothing if it did not, or began at 0.

    A change by less than `least` is noise.
    """
    if not before or abs(now - before) * 1000 < before or abs(now - before) < least:
        return ""
    return f"{(now - before) / before:+.1%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")


def day(moment: dt.datetime | dt.date | None) -> str:
    """Return a date, ISO 8601."""
    return f"{moment:%Y-%m-%d}" if moment else ""


def clock(moment: dt.datetime) -> str:
    """Return a time of day in UTC."""
    return f"{moment.astimezone(dt.UTC):%H:%M}"


def minute(moment: dt.datetime | None) -> str:
    """Return a date and time in UTC."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC" if moment else ""
