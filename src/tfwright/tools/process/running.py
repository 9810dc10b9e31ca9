"""Whether a process is there."""

import os


def is_running(process: int) -> bool:
    """Say whether a process of this number exists, of whatever user."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        # The process exists, and belongs to another user.
        return True
    return True
