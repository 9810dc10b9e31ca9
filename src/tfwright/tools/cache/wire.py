"""Protocol buffers as bytes: the fields of a message, without a schema.

https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator
from typing import BinaryIO

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; groups (3 and 4) are gone from the format that Bazel writes."""
LONGEST_VARINT = 10
"""Bytes of a 64-bit number, seven bits in each."""


class MalformedMessageError(ValueError):
    """Bytes that are not a protocol buffer message of the expected kind."""


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield each field's number and value: a number for integers, bytes for all else.

    Raises MalformedMessageError where the message is cut off or not a message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        size, at = _size(message, at, kind)
        if at + size > len(message):
            raise MalformedMessageError(f"field {number} is cut off")
        yield number, message[at : at + size]
        at += size


def inner(value: int | bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message that is a field of another one; raises as `fields`."""
    return fields(content(value))


def delimited(stream: BinaryIO) -> bytes:
    """Return the next message of a stream in which each follows its length; empty at the end.

    Raises MalformedMessageError where the stream is cut off.
    """
    head = bytearray()
    while byte := stream.read(1):
        head += byte
        if byte[0] < 0x80 or len(head) == LONGEST_VARINT:  # noqa: PLR2004 its last byte
            break
    if not head:
        return b""
    size, _ = _varint(bytes(head), 0)
    message = stream.read(size)
    if len(message) < size:
        raise MalformedMessageError("the last message is cut off")
    return message


def text(value: int | bytes) -> str:
    """Return a string field. Raises MalformedMessageError if it is not UTF-8 text."""
    try:
        return content(value).decode("utf-8")
    except UnicodeDecodeError as fault:
        raise MalformedMessageError("a string field is not UTF-8") from fault


def content(value: int | bytes) -> bytes:
    """Return a field of bytes. Raises MalformedMessageError if it is a number."""
    if isinstance(value, int):
        raise MalformedMessageError("a number stands where bytes were expected")
    return value


def number(value: int | bytes) -> int:
    """Return an integer field. Raises MalformedMessageError if it is bytes."""
    if isinstance(value, bytes):
        raise MalformedMessageError("bytes stand where a number was expected")
    return value


def field(number: int, value: bytes) -> bytes:
    """Return a field of bytes, encoded."""
    return _encoded(number << 3 | BYTES) + _encoded(len(value)) + value


def integer(number: int, value: int) -> bytes:
    """Return an integer field, encoded."""
    return _encoded(number << 3 | VARINT) + _encoded(value)


def _size(message: bytes, at: int, kind: int) -> tuple[int, int]:
    """Return how many bytes a value takes, and where it begins."""
    if kind == BYTES:
        return _varint(message, at)
    if kind in {FIXED32, FIXED64}:
        return (4 if kind == FIXED32 else 8), at
    raise MalformedMessageError(f"{kind} is not a wire type")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position after it."""
    value = 0
    for index, byte in enumerate(message[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 the highest bit says that another byte follows
            return value, at + index + 1
    raise MalformedMessageError("a number is cut off")


def _encoded(value: int) -> bytes:
    """Return a number as a varint."""
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
