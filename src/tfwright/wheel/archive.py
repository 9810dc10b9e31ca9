"""A wheel's zip archive, opened only if nothing in it could harm whoever unpacks it."""

import errno
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from tfwright.errors import Evidence, WheelError

LARGEST = 16 * 1024**3
"""Bytes that a wheel may unpack to; a TensorFlow with debug symbols takes a few GiB."""

_LENGTHS = 26
"""Where the lengths of name and extra field stand in a member's own header."""

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
)
"""What zipfile raises over an archive that is damaged, wherever it notices; and OSError, with EINVAL, over a place before its beginning."""


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the wheel at `path` for reading.

    Raises WheelError if it is no whole zip archive, also when that shows only later, in the block,
    or if it has a member that `fault` objects to.
    """
    try:
        with zipfile.ZipFile(path) as wheel:
            found = fault(wheel)
            if found:
                raise _refused(path, found)
            yield wheel
    except (*BROKEN, OSError) as bad:
        if isinstance(bad, OSError) and bad.errno != errno.EINVAL:
            raise
        raise _refused(path, f"it is no whole zip archive ({bad})") from bad


def _refused(path: Path, why: str) -> WheelError:
    remedy = "Build the wheel again; if it comes from elsewhere, do not trust it."
    return WheelError(
        f"{path.name} is not unpacked: {why}", remedy=remedy, evidence=Evidence(where=str(path))
    )


def fault(wheel: zipfile.ZipFile) -> str | None:
    """Say the first thing that makes an archive unsafe to unpack; None if there is none."""
    seen = set[str]()
    for member in wheel.infolist():
        if found := _fault_of(member):
            return found
        if member.filename in seen:
            return f"{member.filename} is in it twice"
        seen.add(member.filename)
    total = sum(member.file_size for member in wheel.infolist())
    return f"it would unpack to {total:,} bytes" if total > LARGEST else None


def _fault_of(member: zipfile.ZipInfo) -> str | None:
    """Say what is wrong with one member on its own."""
    path = PurePosixPath(member.filename)
    if not path.parts:
        return f"{member.filename!r} is no name for a file"
    if (
        path.is_absolute()
        or ".." in path.parts
        or "\\" in member.filename
        or not member.filename.isprintable()
    ):
        return f"{member.filename!r} would leave the directory"
    if stat.S_IFMT(member.external_attr >> 16) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return f"{member.filename} is a link or a device"
    return f"{member.filename} is encrypted" if member.flag_bits & 1 else None


def files(wheel: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the members that are files."""
    return [member for member in wheel.infolist() if not member.is_dir()]


def packed(wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Return the archive's own stream, where the bytes of a member begin as they are packed."""
    stream = wheel.fp
    assert stream  # noqa: S101 the wheel is open
    stream.seek(member.header_offset + _LENGTHS)
    name, extra = struct.unpack("<HH", stream.read(4))
    stream.seek(name + extra, os.SEEK_CUR)
    return stream


def metadata_directory(wheel: zipfile.ZipFile) -> str:
    """Return the name of the wheel's ``.dist-info`` directory; raise WheelError unless there is exactly one."""
    tops = {member.filename.partition("/")[0] for member in files(wheel)}
    found = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(found) != 1:
        what = f"A wheel has one .dist-info directory; this one has {len(found)}"
        raise WheelError(
            what,
            remedy="Look at what build_pip_package put together.",
            evidence=Evidence(where=str(wheel.filename), lines=found),
        )
    return found[0]
