"""Times that others wrote: of a commit, of a file, of a line in a log."""

import datetime as dt

FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)


def utc(seconds: float) -> dt.datetime:
    """Return a time that is given in seconds since 1970.

    git and file systems hold times that no calendar has: they become the first or the last one.
    """
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return LAST if seconds > 0 else FIRST
