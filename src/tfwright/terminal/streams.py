"""The standard streams: any of them may be closed, lose its reader, have no room or lack letters.

Commands write to them from many places and know nothing of all this. So the streams themselves end
the program, in the way that users know from other tools.
"""

import errno
import io
import os
import select
import signal
import sys
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

READER_GONE_STATUS = 128 + signal.SIGPIPE
"""As shells report a program that SIGPIPE ended: ``invoke recipes | head -1``."""
NOT_WRITTEN_STATUS = 3
"""A fault of the host, as `errors.HostError`."""


def make_safe() -> None:
    """Replace the streams of this process; a second call changes nothing."""
    open_closed_descriptors()
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 to the end
    sys.stdout = _safe_stream(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _safe_stream(sys.stderr, sys.__stderr__, 2)


def open_closed_descriptors() -> None:
    """Lead closed standard streams to /dev/null.

    The next file that is opened would get the free number, and what programs print would be
    written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 standard error
        # Children inherit it, as they do an open one.
        os.set_inheritable(descriptor, True)  # noqa: FBT003 it takes no keywords
    os.close(descriptor)


def _safe_stream(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 the same
    # What a test put in its place stays.
    if stream is not original:
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(number)),
        encoding=stream.encoding,
        # A table with "…" must not end a command under an ASCII locale.
        errors="backslashreplace",
        # A fault must show while a command runs, not when Python ends.
        line_buffering=True,
    )


class _Descriptor(io.FileIO):
    """A standard stream that ends the program at the first fault, and discards what comes later."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self._lost = False

    def write(self, data: "ReadableBuffer", /) -> int:
        if self._lost:
            return memoryview(data).nbytes
        try:
            # None: another program made the pipe or terminal non-blocking, and it is full.
            while (written := super().write(data)) is None:
                select.select((), (self.fileno(),), ())
        except OSError as fault:
            # Also what Python flushes at exit must not fail a second time.
            self._lost = True
            _exit(self.fileno(), fault)
        return written


def _exit(number: int, fault: OSError) -> NoReturn:
    """End the program; SystemExit, since no handler of errors may go on without its output."""
    if fault.errno == errno.EPIPE:
        raise SystemExit(READER_GONE_STATUS)
    if number == 1:
        from tfwright.errors import HostError
        from tfwright.terminal import console

        console.show_error(
            HostError(
                f"Standard output could not be written: {fault.strerror}",
                remedy="Make room where it leads to, or send it elsewhere.",
            )
        )
    raise SystemExit(NOT_WRITTEN_STATUS)
