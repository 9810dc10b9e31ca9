"""A wheel in canonical bytes: what is in it decides them, and nothing else.

Members lie in one order (dist-info last, RECORD at the very end), with the time of the commit, one
of two modes, and no fields of a particular zip program. They are compressed by libdeflate, which is
its own single implementation: zlib, zlib-ng and the zlibs of systems compress differently from each
other, and which of them Python was linked with would show in the digest. How many processors work
on it does not.
"""

import datetime as dt
import os
import stat
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import metadata
from typing import IO, NamedTuple

from tfwright import __version__
from tfwright.documents import filesystem
from tfwright.errors import WheelError
from tfwright.wheel import archive, record
from tfwright.wheel.binary.elf_image import Content
from tfwright.wheel.seal.build_record import Sealer

LEVEL = 6
"""Of libdeflate.

For the 1.8 GB of tensorflow 2.20, level 8 takes 2.7 times as long to save one byte in a hundred.
"""
EARLIEST = dt.datetime(1980, 1, 1, tzinfo=dt.UTC)
LATEST = dt.datetime(2107, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
"""The times that zip can say."""
Moment = tuple[int, int, int, int, int, int]
"""Year, month, day, hour, minute, second."""


@cache
def this_sealer() -> Sealer:
    """Return what seals wheels here, as a build record names it."""
    return Sealer(version=__version__, deflate=metadata.version("deflate"))


class Packed(NamedTuple):
    """A file as the archive holds it."""

    member: zipfile.ZipInfo
    entry: record.RecordEntry
    body: Content


def pack(name: str, content: Content, mode: int, moment: Moment) -> Packed:
    """Keep the smaller of a file's content and its compressed form."""
    import deflate

    member = zipfile.ZipInfo(name, moment)
    body: Content = deflate.deflate_compress(content, LEVEL)
    # Images and archives in a wheel grow when they are packed again.
    if len(body) < len(content):
        member.compress_type = zipfile.ZIP_DEFLATED
    else:
        # A copy: the content may be mapped from a file that is closed soon.
        body = bytes(content)
    member.CRC = deflate.crc32(content)
    member.compress_size, member.file_size = len(body), len(content)
    member.external_attr = (stat.S_IFREG | mode) << 16
    return Packed(member, record.entry(name, content), body)


def pack_member(wheel: zipfile.ZipFile, member: zipfile.ZipInfo, moment: Moment) -> Packed:
    """Compress one file; of its mode, only whether it can be executed is kept."""
    # The umask of the building machine decides the other bits.
    mode = 0o755 if member.external_attr >> 16 & 0o111 else 0o644
    with archive.member_content(wheel, member) as content:
        return pack(member.filename, content, mode, moment)


def seal(
    wheel: zipfile.ZipFile, target: IO[bytes], epoch: int, additions: Mapping[str, bytes]
) -> None:
    """Write the files of `wheel` to `target`, dated `epoch` (seconds).

    `additions` are files by their paths in the ``.dist-info`` directory; they take the place of
    what was there under that name. Raises WheelError if RECORD is not true; what was written until
    then is to be thrown away.
    """
    folder = archive.metadata_directory(wheel)
    listing = f"{folder}/RECORD"
    # In UTC: zip has no time zone, and the host's must not show.
    when = min(max(filesystem.utc(epoch), EARLIEST), LATEST)
    moment = (when.year, when.month, when.day, when.hour, when.minute, when.second)
    added = {f"{folder}/{name}": content for name, content in additions.items()}
    kept = [one for one in archive.files(wheel) if one.filename not in {listing, *added}]

    with ThreadPoolExecutor(os.cpu_count()) as workers, zipfile.ZipFile(target, "w") as sealed:
        # On all processors: libdeflate compresses without Python's global lock. The largest go
        # first, so that none is left for one processor at the end.
        kept.sort(key=lambda member: -member.file_size)
        packing = {
            member.filename: workers.submit(pack_member, wheel, member, moment) for member in kept
        }
        lines = []
        # PEP 427 asks for dist-info at the physical end of the archive.
        for name in sorted(
            {*packing, *added}, key=lambda name: (name.startswith(f"{folder}/"), name)
        ):
            if name in added:
                packed = pack(name, added[name], 0o644, moment)
            else:
                # Taken out: its memory is needed.
                packed = packing.pop(name).result()
            archive.append_packed(sealed, packed.member, [packed.body])
            lines.append(packed.entry)
        known = {line.path: line for line in lines if line.path not in added}
        # Sealing must not make a false RECORD true.
        if found := record.faults(wheel, known):
            raise WheelError(
                f"The wheel does not hold what its RECORD says: {found[0]}",
                remedy="Correct by a patch what packs the wheel: pip could not use it either.",
                where=wheel.filename,
                lines=found,
            )
        # RECORD lists itself, too, but cannot hold its own digest.
        lines.append(record.RecordEntry(listing, "", ""))
        packed = pack(listing, record.render(lines).encode(), 0o644, moment)
        archive.append_packed(sealed, packed.member, [packed.body])
