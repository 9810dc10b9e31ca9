"""A zip archive of compressed members, without the fields that zip programs add of their own.

Layout and numbers: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 to 4.5. The 64-bit fields stand only
where a number needs them.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

Moment = tuple[int, int, int, int, int, int]
"""Year, month, day, hour, minute, second."""

UNIX = 3
"""The system whose modes the members have."""
PLAIN, WIDE = 20, 45
"""Versions of the format: with directories and deflate, with 64-bit fields."""
FULL_16, FULL_32 = 0xFFFF, 0xFFFFFFFF
"""What stands where the number is in a 64-bit field."""
LARGEST_PLAIN = FULL_32
"""From here on a number is written in a 64-bit field."""
UTF_8 = 0x800
"""The flag of a name that is not ASCII."""


@dataclass(frozen=True)
class ZipMember:
    """What the archive says of one file."""

    name: str
    method: int
    """``zipfile.ZIP_STORED`` or ``zipfile.ZIP_DEFLATED``."""
    crc: int
    packed: int
    """Bytes in the archive."""
    size: int
    """Bytes of the file."""
    mode: int
    """As ``st_mode``."""


class ZipWriter:
    """Writes an archive to a stream, seekable or not, member by member, all with one time."""

    def __init__(self, stream: IO[bytes], moment: Moment) -> None:
        """Begin with an empty archive."""
        self._stream = stream
        self._moment = _packed(moment)
        self._at = 0
        self._directory: list[bytes] = []

    def add(self, member: ZipMember, content: Iterable[bytes]) -> None:
        """Write a member, given its compressed bytes."""
        self._directory.append(_directory_entry(member, self._moment, self._at))
        self._put(_local_header(member, self._moment))
        for part in content:
            self._put(part)

    def finish(self) -> None:
        """Write the directory of all members, which ends the archive."""
        # The directory comes last, so that the stream need not seek back to any header.
        start, count = self._at, len(self._directory)
        for entry in self._directory:
            self._put(entry)
        for record in _ending(count, start, self._at - start):
            self._put(record)

    def _put(self, content: bytes) -> None:
        self._stream.write(content)
        self._at += len(content)


def _packed(moment: Moment) -> tuple[int, int]:
    """Return a time and a date as MS-DOS has them, in steps of two seconds."""
    year, month, day, hour, minute, second = moment
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day


def _local_header(member: ZipMember, moment: tuple[int, int]) -> bytes:
    """Return what stands before a member's bytes; a 64-bit field has to hold both sizes."""
    wide = max(member.size, member.packed) >= LARGEST_PLAIN
    sizes = (member.packed, member.size)
    extra = b""
    if wide:
        # Unlike the directory's entry, this field must have both sizes, even if one of
        # them fits.
        sizes = (FULL_32, FULL_32)
        extra = _wide_field([member.size, member.packed])
    fields = _common(member, moment, wide=wide, sizes=sizes, extra=extra)
    return struct.pack("<4s", b"PK\3\4") + fields + _name(member) + extra


def _directory_entry(member: ZipMember, moment: tuple[int, int], offset: int) -> bytes:
    """Return a member's line in the directory."""
    numbers = (member.size, member.packed, offset)
    # Only what does not fit is in the field, always in this order.
    large = [number for number in numbers if number >= LARGEST_PLAIN]
    size, packed, place = (FULL_32 if number >= LARGEST_PLAIN else number for number in numbers)
    extra = _wide_field(large) if large else b""
    fields = _common(member, moment, wide=bool(large), sizes=(packed, size), extra=extra)
    made_by = struct.pack("<4sBB", b"PK\1\2", WIDE if large else PLAIN, UNIX)
    # No comment, on the first disk, binary content, the mode in the upper half of the
    # attributes.
    rest = struct.pack("<HHHII", 0, 0, 0, member.mode << 16, place)
    return made_by + fields + rest + _name(member) + extra


def _common(
    member: ZipMember, moment: tuple[int, int], *, wide: bool, sizes: tuple[int, int], extra: bytes
) -> bytes:
    """Return the fields that the local header and the directory share."""
    # Without the flag readers take a name for code page 437 (APPNOTE, appendix D).
    version = WIDE if wide else PLAIN
    flags = 0 if member.name.isascii() else UTF_8
    return struct.pack(
        "<HHHHHIIIHH",
        version,
        flags,
        member.method,
        *moment,
        member.crc,
        *sizes,
        len(_name(member)),
        len(extra),
    )


def _name(member: ZipMember) -> bytes:
    return member.name.encode()


def _wide_field(numbers: list[int]) -> bytes:
    """Return the extra field that holds the numbers which are too large for their own."""
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


def _ending(count: int, start: int, size: int) -> Iterator[bytes]:
    """Yield the records that say where the directory is, in 64 bits only if that is needed."""
    # FULL_16 itself already means "see the 64-bit record", so it cannot be a count.
    wide = count >= FULL_16 or max(start, size) >= LARGEST_PLAIN
    if wide:
        # 44 bytes follow: made by, needed version, two disk numbers, two counts, size, place.
        fields = (44, UNIX << 8 | WIDE, WIDE, 0, 0, count, count, size, start)
        yield struct.pack("<4sQHHIIQQQQ", b"PK\6\6", *fields)
        # The locator: where the 64-bit record begins, for readers that come from the
        # end of the file.
        yield struct.pack("<4sIQI", b"PK\6\7", 0, start + size, 1)
    number, length, place = count, size, start
    if wide:
        number = FULL_16
        length = FULL_32
        place = FULL_32
    yield struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, number, number, length, place, 0)
