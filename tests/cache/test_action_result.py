"""What is read of Bazel's entries, which another host or a server may have written."""

import hashlib

import pytest

from tfwright.tools.cache import action_result, wire
from tfwright.tools.cache.action_result import ActionResult, Blob
from tfwright.tools.cache.wire import MalformedMessageError

SHA256 = hashlib.sha256(b"content").hexdigest()
DIGEST = wire.field(1, SHA256.encode()) + wire.integer(2, 7)


def named(name: str, digest: bytes = b"", field: int = 2) -> bytes:
    """Return an entry with a name or path, and a digest where it has one."""
    listed = wire.field(1, name.encode())
    return listed + (wire.field(field, digest) if digest else b"")


def test_files_folders_and_what_was_printed_are_the_blobs_of_a_result() -> None:
    payload = (
        wire.field(2, named("a.o", DIGEST))
        + wire.field(3, named("folder", DIGEST, 3))
        + wire.field(12, named("link"))
        + wire.integer(4, 0)
        + wire.field(6, DIGEST)
        + wire.field(5, b"what is printed, where it is short")
    )
    blob = Blob(SHA256, 7)
    assert action_result.read(payload) == ActionResult((blob, blob), (blob,))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (wire.field(2, named("../a", DIGEST)), "leads out of the build"),
        (wire.field(3, named("/etc", DIGEST, 3)), "leads out of the build"),
        (wire.field(10, named("a/../../b")), "leads out of the build"),
        (wire.field(2, named("a.o")), "an output has no digest"),
        (wire.field(6, wire.field(1, b"../../x")), "a digest is not SHA-256"),
        (wire.integer(4, 1), "the action failed"),
    ],
)
def test_a_result_that_cannot_be_used_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(MalformedMessageError, match=message):
        action_result.read(payload)


def tree(*entries: tuple[int, bytes]) -> bytes:
    """Return a Tree whose root has some entries, by their field."""
    return wire.field(1, b"".join(wire.field(kind, node) for kind, node in entries))


def test_the_files_of_all_directories_of_a_tree_are_listed() -> None:
    child = wire.field(2, wire.field(1, named("b", DIGEST)))
    found = tree((1, named("a", DIGEST)), (2, named("sub", DIGEST)), (3, named("l")))
    unknown = wire.field(9, b"of a newer Bazel")
    listed = action_result.tree_blobs(found + child + unknown)
    assert list(listed) == [Blob(SHA256, 7)] * 2


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_name_in_a_tree_that_leads_out_of_the_build_is_refused(kind: int) -> None:
    with pytest.raises(MalformedMessageError, match="leads out of the build"):
        list(action_result.tree_blobs(tree((kind, named("../x", DIGEST)))))
