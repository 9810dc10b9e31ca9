"""A wheel's zip archive, opened only if nothing in it could harm whoever unpacks it."""

import errno
import lzma
import mmap
import os
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tfwright.errors import HostError, RecipeError, WheelError
from tfwright.tools.process import capacity
from tfwright.wheel.binary.elf_image import Content

if TYPE_CHECKING:
    from email.message import Message

LARGEST = 16 * 1024**3
"""Bytes that a wheel may unpack to; a TensorFlow with debug symbols takes a few GiB."""
ALWAYS, TIMES = 512 * 1024**2, 100
"""Bytes that any wheel may unpack to, and how many times its own size a larger one may.

Deflate packs zeros into a thousandth. The libraries of a TensorFlow shrink to a quarter.
"""
SMALL = 64 * 1024**2
"""Bytes, packed and unpacked twice, that fit into memory without asking how much there is."""
CHUNK = 1024 * 1024
"""Bytes that are read at once."""
BUILD_RECORD = "tfwright.json"
"""The file in ``.dist-info`` that wheels of tfwright have."""
LARGEST_HEADERS = 4 * 1024**2
"""Bytes of METADATA or WHEEL; the README in METADATA is most of it."""
MOST_HEADERS = 5_000
"""Lines of them before the first empty one; the METADATA of a TensorFlow has a hundred."""

_LENGTHS = 26
"""Where the lengths of name and extra field stand in a member's own header."""
_HEADER = 30
"""Bytes of that header before the name."""

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
)
"""What zipfile raises over a damaged archive, wherever it notices.

It raises OSError, too: with EINVAL for a place before the beginning of the file, and without a
number for what bzip2 cannot unpack.
"""


def check_exists(path: Path) -> None:
    """Raise RecipeError if a path that a user gave is not a file."""
    if not path.is_file():
        remedy = "Give the path of a .whl file."
        # What pip calls a package.
        if re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?==[\w.+-]+", str(path)):
            remedy = f"pip download --no-deps '{path}'   # then give the path of the .whl file"
        raise RecipeError(f"The wheel {path} does not exist", remedy=remedy)


@contextmanager
def open_wheel(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the wheel at `path` for reading.

    Raises WheelError if it is not a whole zip archive, also when that shows only later, in the
    block, or if it has a member that `fault` objects to. Raises HostError if what is unpacked in
    the block does not fit on the disk.
    """
    try:
        with zipfile.ZipFile(path) as wheel:
            found = fault(wheel)
            if found:
                raise _refusal(path, found)
            yield wheel
    except (*BROKEN, OSError) as bad:
        number = bad.errno if isinstance(bad, OSError) else None
        # A full disk must not be reported as a damaged wheel.
        if number in {errno.ENOSPC, errno.EDQUOT}:
            raise HostError(
                f"{path.name} does not fit into {tempfile.gettempdir()}, where it is unpacked: "
                f"{os.strerror(number)}",
                remedy="Make room there, or set TMPDIR to a directory on a larger disk.",
                where=path,
            ) from bad
        if number not in {errno.EINVAL, None}:
            raise
        raise _refusal(path, f"it is not a whole zip archive ({bad})") from bad


def _refusal(path: Path, why: str) -> WheelError:
    remedy = "Build the wheel again; if it comes from elsewhere, do not trust it."
    return WheelError(f"{path.name} is not unpacked: {why}", remedy=remedy, where=path)


def fault(wheel: zipfile.ZipFile) -> str | None:
    """Say the first thing that makes an archive unsafe to unpack; None if there is nothing."""
    # Wheels are unpacked by others with less care: the names are judged before anything is read.
    members = wheel.infolist()
    return next(chain(_name_faults(members), _size_faults(members)), None)


def _name_faults(members: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    for member in members:
        name = member.filename
        path = PurePosixPath(name)
        if not path.parts:
            yield f"{name!r} is not a name for a file"
        # A backslash separates directories on Windows; a control character could steer a terminal.
        if path.is_absolute() or ".." in path.parts or "\\" in name or not name.isprintable():
            yield f"{name!r} would leave the directory"
        # 0: made by a program that stores no kind of file, as zip programs on Windows do.
        if stat.S_IFMT(member.external_attr >> 16) not in {0, stat.S_IFREG, stat.S_IFDIR}:
            yield f"{name} is a link or a device"
        if member.flag_bits & 1:
            yield f"{name} is encrypted"
    # Unpackers disagree which of two files with one name wins.
    seen = Counter(member.filename for member in members)
    yield from (f"{name} is in it twice" for name, times in seen.items() if times > 1)


def _size_faults(members: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    # Members that share bytes are a way to make a small archive unpack to petabytes.
    placed = sorted(members, key=lambda member: member.header_offset)
    if placed and placed[0].header_offset < 0:
        yield f"{placed[0].filename} begins before the file does"
    for before, member in pairwise(placed):
        # At the earliest: a name and an extra field make it longer.
        if member.header_offset < before.header_offset + _HEADER + before.compress_size:
            yield f"{member.filename} shares bytes with {before.filename}"
    # The sizes are the archive's own claim; zipfile stops reading a member where its claim ends.
    total = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if total > LARGEST:
        yield f"it would unpack to {total:,} bytes"
    if total > max(ALWAYS, TIMES * packed):
        yield f"it would unpack to {total:,} bytes, {total // max(packed, 1):,} times its size"


def files(wheel: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the members that are files."""
    return [member for member in wheel.infolist() if not member.is_dir()]


def packed_bytes(wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the bytes of a member as they are packed. Raises EOFError if the archive ends before.

    They are read by their place, and not through the archive's stream, which threads share.
    """
    assert wheel.fp  # noqa: S101 the wheel is open
    file = wheel.fp.fileno()
    # The directory repeats both lengths, but the extra field may differ in size there.
    header = os.pread(file, _HEADER, member.header_offset)
    place = member.header_offset + _HEADER + sum(struct.unpack_from("<HH", header, _LENGTHS))
    end = place + member.compress_size
    while place < end:
        part = os.pread(file, min(CHUNK, end - place), place)
        if not part:
            raise EOFError(f"{member.filename} is cut off")
        yield part
        place += len(part)


def append_packed(
    target: zipfile.ZipFile, member: zipfile.ZipInfo, parts: Iterable[Content]
) -> None:
    """Write a member that is packed already, as `member` says; zipfile would pack it once more."""
    stream = target.fp
    assert stream  # noqa: S101 the archive is open
    member.header_offset = stream.tell()
    stream.write(member.FileHeader())
    for part in parts:
        stream.write(part)
    # What zipfile writes the directory from, and where.
    target.filelist.append(member)
    target.start_dir = stream.tell()


@contextmanager
def member_content(wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[Content]:
    """Give the bytes of a member: in memory where they fit there, else mapped from a copy on disk.

    Raises what `open_wheel` turns into WheelError where the member is damaged.
    """
    if wheel.filename is None:
        # An archive in memory has no file descriptor, by which parts could be read.
        yield wheel.read(member)
        return
    # libdeflate unpacks these two methods only; zipfile reads the others in parts.
    known = member.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    # With memory left for whoever reads it. To ask how much there is takes longer than to unpack a
    # small file.
    needed = 2 * (member.file_size + member.compress_size)
    if not member.file_size or (known and (needed < SMALL or needed < capacity.available_memory())):
        yield _inflate(wheel, member)
        return
    # Mapped: memory that the system can take back when it runs short.
    with tempfile.TemporaryFile() as copy:
        with wheel.open(member) as source:
            shutil.copyfileobj(source, copy, CHUNK)
        copy.flush()
        with mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def _inflate(wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytearray:
    """Unpack a member with libdeflate, in a fifth of the time that zlib takes."""
    import deflate

    # zipfile looks at the member's own header, which may say something else than the directory.
    wheel.open(member).close()
    content = bytearray()
    for part in packed_bytes(wheel, member):
        content += part
    try:
        if member.compress_type == zipfile.ZIP_DEFLATED:
            content = deflate.deflate_decompress(content, member.file_size)
    except deflate.DeflateError as fault:
        raise zipfile.BadZipFile(f"{member.filename!r} cannot be unpacked: {fault}") from fault
    if len(content) != member.file_size or deflate.crc32(content) != member.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {member.filename!r}")
    return content


def metadata_directory(wheel: zipfile.ZipFile) -> str:
    """Return the name of the wheel's ``.dist-info`` directory.

    Raises WheelError unless there is exactly one.
    """
    tops = {member.filename.partition("/")[0] for member in files(wheel)}
    found = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(found) != 1:
        raise WheelError(
            f"The wheel has {len(found)} .dist-info directories instead of one",
            remedy="Make the wheel again: pip installs none with another number of them.",
            where=wheel.filename,
            lines=found[:20],
        )
    return found[0]


def text(wheel: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Return a small file of the wheel; empty if the wheel does not have it.

    Raises WheelError where it has more than `limit` bytes: what it says is then not read.
    """
    try:
        member = wheel.getinfo(name)
    except KeyError:
        return b""
    if member.file_size > limit:
        raise WheelError(
            f"{name} has {member.file_size:,} bytes, more than the {limit:,} that are read",
            remedy="Do not trust this wheel: no tool that builds wheels writes so much there.",
            where=wheel.filename,
        )
    return wheel.read(member)


def headers(wheel: zipfile.ZipFile, name: str) -> "Message[str, str]":
    """Return the headers of METADATA or WHEEL in ``.dist-info``; none where it is missing.

    Raises WheelError where there are so many that they are meant to keep their reader busy.
    """
    # Few commands read them.
    import email.parser
    import email.policy

    place = f"{metadata_directory(wheel)}/{name}"
    content = text(wheel, place, LARGEST_HEADERS)
    # The body is the README: a megabyte of it would be parsed for nothing.
    head = content.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    # A bare carriage return ends a line for the mail parser too.
    lines = max(head.count(b"\n"), head.count(b"\r"))
    if lines > MOST_HEADERS:
        raise WheelError(
            f"{place} has {lines:,} lines of headers, more than the {MOST_HEADERS:,} that are read",
            remedy="Do not trust this wheel: no tool that builds wheels writes so many.",
        )
    # compat32 hands values out as they stand; newer policies parse and fold them.
    parser = email.parser.Parser(policy=email.policy.compat32)
    return parser.parsestr(head.decode("utf-8", "replace"), headersonly=True)
