"""Sizes, times and dates as the pages write them."""

import datetime as dt

MINUTE, HOUR = 60, 3600


def size(count: float) -> str:
    """Return bytes in the unit that gives two to four digits."""
    if count < 1000:  # noqa: PLR2004 below the first unit
        return f"{count:.0f} B"
    unit = "B"
    for unit in ("kB", "MB", "GB"):  # noqa: B007 the last one is used
        count /= 1000
        if count < 1000:  # noqa: PLR2004 the next unit begins
            break
    return f"{count:.0f} {unit}" if count >= 100 else f"{count:.1f} {unit}"  # noqa: PLR2004


def change(before: float, now: float) -> str:
    """Return how a number changed, as ``+3.1 %``; nothing if it did not, or began at 0."""
    if not before or abs(now - before) * 1000 < before:
        return ""
    return f"{(now - before) / before:+.1%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """Return a time span in one or two units."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"  # noqa: PLR2004
    minutes, rest = divmod(round(seconds), MINUTE)
    if minutes < 10:  # noqa: PLR2004 seconds still matter
        return f"{minutes} min {rest:02} s"
    if seconds < HOUR:
        return f"{minutes} min"
    hours, rest = divmod(minutes, MINUTE)
    return f"{hours} h {rest:02} min"


def day(moment: dt.datetime | dt.date | None) -> str:
    """Return a date, ISO 8601."""
    return f"{moment:%Y-%m-%d}" if moment else ""


def minute(moment: dt.datetime | None) -> str:
    """Return a date and time in UTC."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC" if moment else ""


def days_since(moment: dt.datetime | None, now: dt.datetime) -> int:
    """Return the whole days between a moment and now."""
    return max(0, (now - moment).days) if moment else 0
