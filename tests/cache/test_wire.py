"""Protocol buffers that are cut off, or are something else."""

import io

import pytest

from tfwright.tools.cache import wire
from tfwright.tools.cache.wire import MalformedMessageError


def test_fields_of_every_kind_are_read() -> None:
    message = (
        wire.integer(1, 300)
        + wire.field(2, b"text")
        + b"\x1d\1\2\3\4"  # field 3, of four bytes
        + b"\x21\1\2\3\4\5\6\7\x08"  # field 4, of eight
    )
    assert list(wire.fields(message)) == [
        (1, 300),
        (2, b"text"),
        (3, b"\1\2\3\4"),
        (4, b"\1\2\3\4\5\6\7\x08"),
    ]


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (wire.field(2, b"text")[:-1], "field 2 is cut off"),
        (b"\x21\1\2", "field 4 is cut off"),
        (b"\x0b", "3 is not a wire type"),
        (b"\xff" * 20, "a number is cut off"),
    ],
)
def test_what_is_not_a_message_is_refused(message: bytes, complaint: str) -> None:
    with pytest.raises(MalformedMessageError, match=complaint):
        list(wire.fields(message))


def test_a_field_of_another_kind_than_expected_is_refused() -> None:
    with pytest.raises(MalformedMessageError, match="bytes were expected"):
        wire.content(3)
    with pytest.raises(MalformedMessageError, match="a number was expected"):
        wire.number(b"3")
    with pytest.raises(MalformedMessageError, match="not UTF-8"):
        wire.text(b"\xff")


def test_a_stream_ends_after_its_last_whole_message() -> None:
    stream = io.BytesIO(b"\x03abc\x02de")
    assert [wire.delimited(stream) for _ in range(3)] == [b"abc", b"de", b""]


@pytest.mark.parametrize("cut", [b"\x03ab", b"\x80", b"\xff" * 11])
def test_a_stream_that_is_cut_off_is_refused(cut: bytes) -> None:
    with pytest.raises(MalformedMessageError, match="is cut off"):
        wire.delimited(io.BytesIO(cut))
