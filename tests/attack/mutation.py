"""A mutation fuzzer: damaged forms of sound content, each decided by its own chance."""

import random
from collections.abc import Callable

INTERESTING = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63,
    2**64 - 1,
)
"""Numbers at the edge of what a field can say."""
WORDS = (
    b"\x1b]52;c;cm0=\x07",
    b"../../../etc/passwd",
    b"--output=/x",
    b"\0",
    b"\xff\xfe",
    b"\xe2\x80\xae",
    b"9" * 5000,
    b"[" * 5000,
    b"a." * 5000,
    b"\r",
    b"\n",
    b'"""',
    b"{{ 7 * 7 }}",
    b"file:///etc/passwd",
    b"ext::sh -c id",
)
"""Texts that mean something to a terminal, a path, a shell, a parser or git."""


def numbers(content: bytearray, luck: random.Random) -> None:
    """Overwrite fields with numbers at the edge."""
    for _ in range(luck.randint(1, 8)):
        place, width = (luck.randrange(len(content) or 1), luck.choice((1, 2, 4, 8)))
        number = luck.choice(INTERESTING) if luck.random() < 0.7 else luck.getrandbits(64)
        field = number & (1 << 8 * width) - 1
        content[place : place + width] = field.to_bytes(width, luck.choice(("little", "big")))


def words(content: bytearray, luck: random.Random) -> None:
    """Put texts in that mean something to whoever reads them."""
    for _ in range(luck.randint(1, 3)):
        place = luck.randrange(len(content) or 1)
        end = place + luck.choice((0, 0, 1, 20))
        content[place:end] = luck.choice(WORDS)


def cut(content: bytearray, luck: random.Random) -> None:
    """End too early."""
    del content[luck.randrange(len(content) or 1) :]


def repeat(content: bytearray, luck: random.Random) -> None:
    """Hold a part many times."""
    place = luck.randrange(len(content) or 1)
    content[place:place] = content[place : place + luck.choice((16, 64, 1024))] * luck.choice(
        (1, 9)
    )


def swap(content: bytearray, luck: random.Random) -> None:
    """Move a part elsewhere."""
    place, to = (luck.randrange(len(content) or 1) for _ in range(2))
    part = content[place : place + 64]
    del content[place : place + 64]
    content[to:to] = part


def nothing(content: bytearray, luck: random.Random) -> None:  # noqa: ARG001 as the others
    """Be empty."""
    content.clear()


MUTATIONS: dict[str, Callable[[bytearray, random.Random], None]] = {
    "numbers": numbers,
    "words": words,
    "cut": cut,
    "repeat": repeat,
    "swap": swap,
    "empty": nothing,
}


def damaged(content: bytes, luck: random.Random) -> tuple[str, bytes]:
    """Return which damages were done, and the damaged content."""
    made, names = bytearray(content), []
    for _ in range(luck.choice((1, 1, 1, 2, 3))):
        usual = [name for name in MUTATIONS if name != "empty"]
        name = luck.choice(usual) if luck.random() < 0.99 else "empty"
        MUTATIONS[name](made, luck)
        names.append(name)
    return " and ".join(dict.fromkeys(names)), bytes(made)
