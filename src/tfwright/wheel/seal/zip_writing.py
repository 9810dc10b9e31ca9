"""A zip archive of compressed members, without the fields that zip programs add of their own.

Layout and numbers: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 to 4.5. The 64-bit fields stand only
where a number needs them.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from tfwright.wheel.binary.elf_image import Content

Moment = tuple[int, int, int, int, int, int]
"""Year, month, day, hour, minute, second."""

COMPRESSOR = "deflate"
"""The package that compresses the members; its version shows in the bytes."""
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
        year, month, day, hour, minute, second = moment
        # As MS-DOS has them, in steps of two seconds.
        self._moment = (
            hour << 11 | minute << 5 | second // 2,
            (year - 1980) << 9 | month << 5 | day,
        )
        self._stream = stream
        self._at = 0
        self._directory: list[bytes] = []

    def add(self, member: ZipMember, content: "Iterable[Content]") -> None:
        """Write a member, given its compressed bytes."""
        self._directory.append(self._header(member, self._at))
        self._put(self._header(member, None))
        for part in content:
            self._put(part)

    def _header(self, member: ZipMember, offset: int | None) -> bytes:
        """Return a member's line in the directory; without an offset, what is before its bytes."""
        numbers = [member.size, member.packed, *([] if offset is None else [offset])]
        # Only what does not fit is in the 64-bit field, always in this order.
        large = [number for number in numbers if number >= LARGEST_PLAIN]
        shown = [FULL_32 if number >= LARGEST_PLAIN else number for number in numbers]
        if offset is None and large:
            # Before the bytes this field must have both sizes, even if one of them fits.
            large, shown = numbers, [FULL_32, FULL_32]
        extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
        version = WIDE if large else PLAIN
        name = member.name.encode()
        fields = struct.pack(
            "<HHHHHIIIHH",
            version,
            # Without the flag readers take a name for code page 437 (APPNOTE, appendix D).
            0 if member.name.isascii() else UTF_8,
            member.method,
            *self._moment,
            member.crc,
            shown[1],
            shown[0],
            len(name),
            len(extra),
        )
        if offset is None:
            return b"PK\3\4" + fields + name + extra
        made_by = struct.pack("<4sBB", b"PK\1\2", version, UNIX)
        # No comment, on the first disk, binary content, the mode in the upper half of the field.
        rest = struct.pack("<HHHII", 0, 0, 0, member.mode << 16, shown[2])
        return made_by + fields + rest + name + extra

    def finish(self) -> None:
        """Write the directory of all members, which ends the archive."""
        # The directory comes last, so that the stream need not seek back to any header.
        start, count = self._at, len(self._directory)
        for entry in self._directory:
            self._put(entry)
        size = self._at - start
        # FULL_16 itself already means "see the 64-bit record", so it cannot be a count.
        if count >= FULL_16 or max(start, size) >= LARGEST_PLAIN:
            # 44 bytes follow: made by, needed version, two disk numbers, two counts, size, place.
            fields = (44, UNIX << 8 | WIDE, WIDE, 0, 0, count, count, size, start)
            self._put(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", *fields))
            # The locator: where the 64-bit record begins, for readers that come from the end.
            self._put(struct.pack("<4sIQI", b"PK\6\7", 0, start + size, 1))
            count, size, start = FULL_16, FULL_32, FULL_32
        self._put(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, size, start, 0))

    def _put(self, content: "Content") -> None:
        self._stream.write(content)
        self._at += len(content)
