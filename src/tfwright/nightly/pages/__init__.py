"""The pages of a build host: static HTML that needs no server, no JavaScript and no network.

Here is how they write sizes, times and dates.
"""

import datetime as dt


def size(count: float) -> str:
    """Return bytes in the unit that gives two to four digits."""
    units = iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    while count >= 1000 and unit != "GB":  # noqa: PLR2004 the next unit begins
        count, unit = count / 1000, next(units)
    whole = unit == "B" or count >= 100  # noqa: PLR2004 three digits are enough
    return f"{count:.0f} {unit}" if whole else f"{count:.1f} {unit}"


def change(before: float, now: float, least: float = 0) -> str:
    """Return how a number changed, as ``+3.1 %``; nothing if it did not, or began at 0.

    A change by less than `least` is noise.
    """
    if not before or abs(now - before) * 1000 < before or abs(now - before) < least:
        return ""
    return f"{(now - before) / before:+.1%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """Return a time span in one or two units."""
    if seconds < 60:  # noqa: PLR2004 a minute
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"  # noqa: PLR2004
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 10:  # noqa: PLR2004 seconds still matter
        return f"{minutes} min {rest:02} s"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours else f"{minutes} min"


def day(moment: dt.datetime | dt.date | None) -> str:
    """Return a date, ISO 8601."""
    return f"{moment:%Y-%m-%d}" if moment else ""


def clock(moment: dt.datetime) -> str:
    """Return a time of day in UTC."""
    return f"{moment.astimezone(dt.UTC):%H:%M}"


def minute(moment: dt.datetime | None) -> str:
    """Return a date and time in UTC."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC" if moment else ""
