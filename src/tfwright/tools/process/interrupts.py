"""Ctrl-C and SIGTERM while a program is being started."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred() -> Iterator[Callable[[], None]]:
    """Hold signals that end this process back until the block calls what it is given, or ends.

    Python calls functions around a fork, such as one that locks logging in the parent. What a
    handler raises in one of them is printed and lost, and the lock stays held for good.
    """
    # Handlers run in the main thread alone, so a fork of another one is not disturbed.
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    arrived: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.signal(number, note) for number in NUMBERS}

    def release() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler or signal.SIG_DFL)
        while arrived:
            signal.raise_signal(arrived.pop())

    try:
        yield release
    finally:
        release()
