"""What is read of Bazel's entries, which another host or a server may have written."""

import pytest
from tests.cache.builds import digest, sha256

from tfwright.tools.cache import messages
from tfwright.tools.cache.messages import ActionResult, Blob, MalformedMessageError, encode_field

CONTENT = b"content"
BLOB = Blob(sha256(CONTENT), len(CONTENT))


def named(name: str, digest: bytes = b"", number: int = 2) -> bytes:
    """Return an entry with a name or path, and a digest where it has one."""
    return encode_field(1, name.encode()) + (encode_field(number, digest) if digest else b"")


def test_fields_of_every_kind_are_read() -> None:
    message = (
        b"\x08\xac\x02"  # field 1, a number
        + encode_field(2, b"text")
        + b"\x1d\1\2\3\4"  # field 3, of four bytes
        + b"\x21\1\2\3\4\5\6\7\x08"  # field 4, of eight
    )
    assert list(messages.fields(message)) == [
        (1, 300),
        (2, b"text"),
        (3, b"\1\2\3\4"),
        (4, b"\1\2\3\4\5\6\7\x08"),
    ]


@pytest.mark.parametrize(
    "message", [encode_field(2, b"text")[:-1], b"\x21\1\2", b"\x0b", b"\xff" * 20]
)
def test_what_is_not_a_message_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        list(messages.fields(message))


@pytest.mark.parametrize("value", [3, b"\xff"])
def test_a_field_of_another_kind_than_expected_is_refused(value: int | bytes) -> None:
    with pytest.raises(MalformedMessageError):
        messages.decode_text(value)


def test_files_folders_and_what_was_printed_are_the_blobs_of_a_result() -> None:
    payload = (
        encode_field(2, named("a.o", digest(CONTENT)))
        + encode_field(3, named("folder", digest(CONTENT), 3))
        + encode_field(12, named("link"))
        + b"\x20\x00"  # exit code 0
        + encode_field(6, digest(CONTENT))
        + encode_field(5, b"what is printed, where it is short")
    )
    assert messages.parse_action_result(payload) == ActionResult((BLOB, BLOB), (BLOB,))


def test_a_pointer_is_an_entry_of_one_blob() -> None:
    large = Blob(BLOB.sha256, 3_000_000)
    assert messages.parse_action_result(messages.output_entry(large)) == ActionResult((large,), ())


@pytest.mark.parametrize(
    "payload",
    [
        encode_field(2, named("../a", digest(CONTENT))),
        encode_field(3, named("/etc", digest(CONTENT), 3)),
        encode_field(10, named("a/../../b")),
        encode_field(2, named("a.o")),
        encode_field(6, encode_field(1, b"../../x")),
        encode_field(6, encode_field(1, BLOB.sha256.encode()) + encode_field(2, b"size")),
        b"\x20\x01",  # exit code 1
    ],
)
def test_a_result_that_cannot_be_used_is_refused(payload: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        messages.parse_action_result(payload)


def tree(*entries: tuple[int, bytes]) -> bytes:
    """Return a Tree whose root has some entries, by their field."""
    return encode_field(1, b"".join(encode_field(kind, node) for kind, node in entries))


def test_the_files_of_all_directories_of_a_tree_are_listed() -> None:
    child = encode_field(2, encode_field(1, named("b", digest(CONTENT))))
    found = tree((1, named("a", digest(CONTENT))), (2, named("sub", b"d")), (3, named("l")))
    unknown = encode_field(9, b"of a newer Bazel")
    assert list(messages.tree_blobs(found + child + unknown)) == [BLOB, BLOB]


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_name_in_a_tree_that_leads_out_of_the_build_is_refused(kind: int) -> None:
    with pytest.raises(MalformedMessageError):
        list(messages.tree_blobs(tree((kind, named("../x", digest(CONTENT))))))
