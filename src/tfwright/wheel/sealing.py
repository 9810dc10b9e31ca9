"""A wheel in canonical bytes: what is in it decides them, and nothing else.

Members lie in one order (dist-info last, RECORD at the very end), with the time of the commit, one
of two modes, and no fields of a particular zip program. They are stored, not compressed: zlib,
zlib-ng and their versions compress differently, and which of them Python was linked with would
show in the digest. The price is size; a file system, a web server or a mirror can compress again.
"""

import datetime as dt
import shutil
import stat
import zipfile
from typing import IO

from tfwright.wheel import archive, record

EARLIEST = dt.datetime(1980, 1, 1, tzinfo=dt.UTC)
"""Zip cannot say an earlier time."""
LATEST = dt.datetime(2107, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
"""Zip cannot say a later one."""

Moment = tuple[int, int, int, int, int, int]


def seal(wheel: zipfile.ZipFile, target: IO[bytes], epoch: int) -> None:
    """Write the files of `wheel` to `target`, a seekable file, dated `epoch` (seconds)."""
    metadata = archive.metadata_directory(wheel)
    place = f"{metadata}/RECORD"
    members = sorted(archive.files(wheel), key=lambda member: (member.filename.startswith(f"{metadata}/"), member.filename))
    content = [member for member in members if member.filename != place]
    lines = [*(record.describe(wheel, member) for member in content), record.Entry(place, "", "")]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as sealed:
        for member in content:
            with wheel.open(member) as source, sealed.open(_canonical(member, epoch), "w") as copy:
                shutil.copyfileobj(source, copy, record.CHUNK)
        sealed.writestr(_canonical(zipfile.ZipInfo(place), epoch), record.render(lines))


def _canonical(member: zipfile.ZipInfo, epoch: int) -> zipfile.ZipInfo:
    """Return the header of a member, with its name, its size and whether it can be executed."""
    executable = member.external_attr >> 16 & 0o111
    header = zipfile.ZipInfo(member.filename, moment(epoch))
    # Known beforehand, so that zip needs its 64-bit fields only where a file is that large.
    header.file_size = member.file_size
    header.create_system = 3  # Unix, whose modes these are
    header.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    return header


def moment(epoch: int) -> Moment:
    """Return a time as zip says it: UTC, within its years, in steps of two seconds."""
    try:
        when = min(max(dt.datetime.fromtimestamp(epoch, dt.UTC), EARLIEST), LATEST)
    except (OverflowError, ValueError, OSError):
        when = LATEST if epoch > 0 else EARLIEST
    return when.year, when.month, when.day, when.hour, when.minute, when.second // 2 * 2
