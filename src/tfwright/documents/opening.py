"""Opening files that people or strangers name: never waiting for one that is none."""

import errno
import io
import os
import stat
from pathlib import Path


def plain(path: Path) -> io.BufferedReader:
    """Open a file for reading.

    Raises OSError for a directory, named pipe or socket as for a file that is missing.
    """
    # Without O_NONBLOCK, a named pipe keeps us waiting for somebody who writes.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode) or stat.S_ISFIFO(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.ENXIO, "Is a named pipe, and no file", str(path))
    return os.fdopen(descriptor, "rb")
