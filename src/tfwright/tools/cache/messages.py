"""Bazel's cache messages as protocol buffers: which files the result of an action consists of.

The messages are those of the Remote Execution API, version 2.
https://github.com/bazelbuild/remote-apis, remote_execution.proto
https://protobuf.dev/programming-guides/encoding/
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; groups (3 and 4) are gone from the format that Bazel writes."""
LONGEST_VARINT = 10
"""Bytes of a 64-bit number, seven bits in each."""
OUTPUT_FILES, OUTPUT_DIRECTORIES, EXIT_CODE, STDOUT, STDERR = 2, 3, 4, 6, 8
LINKS = (10, 11, 12)
"""Fields of an ActionResult."""
PATH, DIGEST, TREE_DIGEST = 1, 2, 3
"""Fields of what an ActionResult lists."""
ROOT, CHILDREN = 1, 2
"""Fields of a Tree: directories."""
FILES, FOLDERS, SYMLINKS = 1, 2, 3
"""Fields of such a directory; the first field of each entry is its name."""
SHA256 = re.compile(r"[0-9a-f]{64}")
Value = int | bytes


class MalformedMessageError(ValueError):
    """Bytes that are not a protocol buffer message of the expected kind."""


@dataclass(frozen=True)
class Blob:
    """Content of the cache, known by its digest."""

    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class ActionResult:
    """What a successful action made."""

    blobs: tuple[Blob, ...]
    """Files, standard output and standard error."""
    trees: tuple[Blob, ...]
    """Lists of the files of whole directories."""


def parse_action_result(payload: bytes) -> ActionResult:
    """Read an entry of the action cache.

    Raises MalformedMessageError if it is none, if the action failed, or if a path leads out of
    the build: Bazel before 0.26 would write there.
    """
    blobs: list[Blob] = []
    trees: list[Blob] = []
    for number, value in fields(payload):
        if number == OUTPUT_FILES:
            blobs.append(_listed_blob(value, DIGEST))
        elif number == OUTPUT_DIRECTORIES:
            trees.append(_listed_blob(value, TREE_DIGEST))
        elif number in {STDOUT, STDERR}:
            blobs.append(_parse_digest(value))
        elif number in LINKS:
            _check_path(value)
        elif number == EXIT_CODE and value != 0:
            raise MalformedMessageError("the action failed")
    return ActionResult(tuple(blobs), tuple(trees))


def tree_blobs(tree: bytes) -> Iterator[Blob]:
    """Yield the files of a directory.

    Raises MalformedMessageError if it is not a Tree, or if a name leads out of the build.
    """
    for number, directory in fields(tree):
        if number not in {ROOT, CHILDREN}:
            continue
        for kind, node in fields(as_bytes(directory)):
            if kind == FILES:
                yield _listed_blob(node, DIGEST)
            elif kind in {FOLDERS, SYMLINKS}:
                _check_path(node)


def output_entry(blob: Blob) -> bytes:
    """Return the entry of an action that printed a blob and made nothing else."""
    digest = (
        encode_field(1, blob.sha256.encode())
        + _encode_varint(2 << 3 | VARINT)
        + _encode_varint(blob.size)
    )
    return encode_field(STDOUT, digest)


def _listed_blob(value: Value, digest: int) -> Blob:
    """Return the blob of a file or directory that a result lists."""
    _check_path(value)
    for number, inner in fields(as_bytes(value)):
        if number == digest:
            return _parse_digest(inner)
    raise MalformedMessageError("an output has no digest")


def _check_path(value: Value) -> None:
    """Refuse a path that is absolute or climbs."""
    for number, inner in fields(as_bytes(value)):
        if number == PATH:
            path = PurePosixPath(decode_text(inner))
            if path.is_absolute() or ".." in path.parts:
                raise MalformedMessageError(f"the path {str(path)!r} leads out of the build")


def _parse_digest(value: Value) -> Blob:
    """Read a Digest message. The digest becomes a file name, so nothing but hex passes."""
    known = dict(fields(as_bytes(value)))
    sha256, size = decode_text(known.get(1, b"")), known.get(2, 0)
    if not SHA256.fullmatch(sha256) or not isinstance(size, int):
        raise MalformedMessageError("a digest is not SHA-256")
    return Blob(sha256, size)


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield each field's number and value: a number for integers, bytes for all else.

    Raises MalformedMessageError where the message is cut off or not a message.
    """
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = _read_varint(message, at)
        elif kind in {FIXED32, FIXED64}:
            size = 4 if kind == FIXED32 else 8
        else:
            raise MalformedMessageError(f"{kind} is not a wire type")
        if at + size > len(message):
            raise MalformedMessageError(f"field {number} is cut off")
        yield number, message[at : at + size]
        at += size


def decode_text(value: Value) -> str:
    """Return a string field. Raises MalformedMessageError if it is not UTF-8 text."""
    try:
        return as_bytes(value).decode("utf-8")
    except UnicodeDecodeError as fault:
        raise MalformedMessageError("a string field is not UTF-8") from fault


def as_bytes(value: Value) -> bytes:
    """Return a field of bytes. Raises MalformedMessageError if it is a number."""
    if isinstance(value, int):
        raise MalformedMessageError("a number stands where bytes were expected")
    return value


def encode_field(number: int, value: bytes) -> bytes:
    """Return a field of bytes, encoded."""
    return _encode_varint(number << 3 | BYTES) + _encode_varint(len(value)) + value


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position after it."""
    value = 0
    for index, byte in enumerate(message[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 the highest bit says that another byte follows
            return value, at + index + 1
    raise MalformedMessageError("a number is cut off")


def _encode_varint(value: int) -> bytes:
    """Return a number as a varint."""
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
