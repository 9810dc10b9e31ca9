"""Reading logs from where they lie: files, packed ones, and what comes through a pipe."""

import gzip
import os
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Diagnosis
from tfwright.diagnosis.sketch import LogStream
from tfwright.errors import RecipeError
from tfwright.progress import SILENCE, Listener, Progress

_GZIP = b"\x1f\x8b"
_LONG = 64 << 20
"""Bytes from which on progress is reported."""


def diagnose(name: str, listener: Listener = SILENCE) -> Diagnosis:
    """Say what the log `name` shows; ``-`` is standard input.

    Raises RecipeError if it cannot be read.
    """
    with _opened(name) as raw:
        watched = _Watched(name, raw, listener)
        found = reader.read(watched)
        watched.end()
    return found


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """Open a log, and explain what can be wrong with it while it is read."""
    try:
        if name == "-":
            yield sys.stdin.buffer
        else:
            with Path(name).open("rb") as raw:
                yield raw
    except (OSError, EOFError, zlib.error) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise RecipeError(
            f"{name} cannot be read: {why}",
            remedy="Name a log, plain or packed with gzip, or - for standard input.",
        ) from fault


def _unpacked(raw: IO[bytes]) -> LogStream:
    """Return the text of a log that may be packed."""
    start = raw.peek(2)[:2] if hasattr(raw, "peek") else b""
    return gzip.GzipFile(fileobj=raw) if start == _GZIP else raw


class _Watched:
    """A log that reports how far it was read, once that takes a while."""

    def __init__(self, name: str, raw: IO[bytes], listener: Listener) -> None:
        self.name = name
        self.raw = raw
        self.listener = listener
        self.text = _unpacked(raw)
        self.size = os.fstat(raw.fileno()).st_size if raw.seekable() else None
        self.done, self.begun = 0, time.monotonic()

    def read(self, size: int, /) -> bytes:
        return self._count(self.text.read(size))

    def readline(self, size: int, /) -> bytes:
        return self._count(self.text.readline(size))

    def _count(self, data: bytes) -> bytes:
        if self.done <= _LONG < self.done + len(data):
            self.listener.started("diagnose", self.name)
        self.done += len(data)
        if self.done > _LONG:
            # Of a packed log only the packed size is known, so that is what is counted.
            self.listener.progress(
                Progress(self.raw.tell() if self.size is not None else self.done, self.size, "B")
            )
        return data

    def end(self) -> None:
        if self.done > _LONG:
            self.listener.finished("diagnose", time.monotonic() - self.begun)
