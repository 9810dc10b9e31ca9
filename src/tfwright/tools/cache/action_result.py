"""Bazel's entries in the action cache: which blobs an action's result consists of.

The messages are those of the Remote Execution API, version 2, and of its draft v1test, which
Bazel before 0.17 speaks; the fields read here have the same numbers in both.
https://github.com/bazelbuild/remote-apis, remote_execution.proto
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tfwright.tools.cache import wire
from tfwright.tools.cache.wire import MalformedMessageError

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


def read(payload: bytes) -> ActionResult:
    """Read an entry of the action cache.

    Raises MalformedMessageError if it is none, if the action failed, or if a path leads out of
    the build: Bazel before 0.26 would write there.
    """
    blobs: list[Blob] = []
    trees: list[Blob] = []
    for number, value in wire.fields(payload):
        if number == OUTPUT_FILES:
            blobs.append(_listed(value, DIGEST))
        elif number == OUTPUT_DIRECTORIES:
            trees.append(_listed(value, TREE_DIGEST))
        elif number in {STDOUT, STDERR}:
            blobs.append(_digest(value))
        elif number in LINKS:
            _path(value)
        elif number == EXIT_CODE and value != 0:
            raise MalformedMessageError("the action failed")
    return ActionResult(tuple(blobs), tuple(trees))


def pointing_to(blob: Blob) -> bytes:
    """Return an entry of an action that printed a blob and made nothing else."""
    digest = wire.field(1, blob.sha256.encode()) + wire.integer(2, blob.size)
    return wire.field(STDOUT, digest)


def tree_blobs(tree: bytes) -> Iterator[Blob]:
    """Yield the files of a directory.

    Raises MalformedMessageError if it is not a Tree, or if a name leads out of the build.
    """
    for number, directory in wire.fields(tree):
        if number not in {ROOT, CHILDREN}:
            continue
        for kind, node in wire.inner(directory):
            if kind == FILES:
                yield _listed(node, DIGEST)
            elif kind in {FOLDERS, SYMLINKS}:
                _path(node)


def _listed(value: int | bytes, digest: int) -> Blob:
    """Return the blob of a file or directory that a result lists."""
    _path(value)
    for number, inner in wire.inner(value):
        if number == digest:
            return _digest(inner)
    raise MalformedMessageError("an output has no digest")


def _path(value: int | bytes) -> None:
    """Refuse a path that is absolute or climbs."""
    for number, inner in wire.inner(value):
        if number == PATH:
            path = PurePosixPath(wire.text(inner))
            if path.is_absolute() or ".." in path.parts:
                raise MalformedMessageError(f"the path {str(path)!r} leads out of the build")


def _digest(value: int | bytes) -> Blob:
    """Read a Digest message. The digest becomes a file name, so nothing but hex passes."""
    sha256, size = "", 0
    for number, inner in wire.inner(value):
        if number == 1:
            sha256 = wire.text(inner)
        elif number == 2:  # noqa: PLR2004 the second of its two fields
            size = wire.number(inner)
    if not SHA256.fullmatch(sha256):
        raise MalformedMessageError("a digest is not SHA-256")
    return Blob(sha256, size)
