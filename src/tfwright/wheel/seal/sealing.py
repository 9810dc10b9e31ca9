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
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import IO

from tfwright import __version__
from tfwright.documents import filesystem
from tfwright.errors import WheelError
from tfwright.tools import files
from tfwright.wheel import archive, record
from tfwright.wheel.binary.elf_image import Content
from tfwright.wheel.seal.build_record import Sealer
from tfwright.wheel.seal.zip_writing import COMPRESSOR, Moment, ZipMember, ZipWriter

LEVEL = 6
"""Of libdeflate.

For the 1.8 GB of tensorflow 2.20, level 8 takes 2.7 times as long to save one byte in a hundred.
"""
EARLIEST = dt.datetime(1980, 1, 1, tzinfo=dt.UTC)
"""Zip cannot say an earlier time."""
LATEST = dt.datetime(2107, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
"""Zip cannot say a later one."""


@cache
def sealer() -> Sealer:
    """Return what seals wheels here, as a build record names it."""
    return Sealer(version=__version__, deflate=metadata.version(COMPRESSOR))


@dataclass(frozen=True)
class Packed:
    """A member whose compressed bytes wait for their place in the archive."""

    member: ZipMember
    entry: record.RecordEntry
    offset: int
    """Where in the spool they begin."""


class Spool:
    """A scratch file that several threads append compressed members to."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Begin where the stream is."""
        self._stream = stream
        self._lock = threading.Lock()

    def pack(self, name: str, content: Content, mode: int) -> Packed:
        """Keep the smaller of a file's content and its compressed form."""
        import deflate

        # Images and archives in a wheel grow when they are packed again.
        compressed = deflate.deflate_compress(content, LEVEL)
        smaller = len(compressed) < len(content)
        body: Content = compressed if smaller else content
        member = ZipMember(
            name=name,
            method=zipfile.ZIP_DEFLATED if smaller else zipfile.ZIP_STORED,
            crc=deflate.crc32(content),
            packed=len(body),
            size=len(content),
            mode=stat.S_IFREG | mode,
        )
        entry = record.entry(name, content)
        with self._lock:
            offset = self._stream.tell()
            self._stream.write(body)
        return Packed(member, entry, offset)

    def pack_member(self, wheel: zipfile.ZipFile, member: zipfile.ZipInfo) -> Packed:
        """Compress one file; of its mode, only whether it can be executed is kept."""
        # The umask of the building machine decides the other bits.
        mode = 0o755 if member.external_attr >> 16 & 0o111 else 0o644
        with archive.unpacked(wheel, member) as content:
            return self.pack(member.filename, content, mode)

    def parts(self, packed: Packed) -> Iterator[bytes]:
        """Yield the bytes of a member; nothing may be appended meanwhile."""
        self._stream.seek(packed.offset)
        return files.pieces(self._stream.read, packed.member.packed)


def seal(
    wheel: zipfile.ZipFile,
    target: IO[bytes],
    epoch: int,
    additions: Mapping[str, bytes] | None = None,
) -> None:
    """Write the files of `wheel` to `target`, dated `epoch` (seconds).

    `additions` are files by their paths in the ``.dist-info`` directory; they take the place of
    what was there under that name. Raises WheelError if RECORD is not true.
    """
    folder = archive.metadata_directory(wheel)
    listing = f"{folder}/RECORD"
    with tempfile.TemporaryFile() as stream, ThreadPoolExecutor(os.cpu_count()) as workers:
        spool = Spool(stream)
        # On all processors: libdeflate compresses without Python's global lock. The largest go
        # first, so that none is left for one processor at the end.
        members = sorted(archive.files(wheel), key=lambda member: -member.file_size)
        packing = workers.map(lambda member: spool.pack_member(wheel, member), members)
        packed = {part.member.name: part for part in packing}
        # RECORD's own line has no digest, so its entry from the packing would not agree with it.
        known = {name: part.entry for name, part in packed.items() if name != listing}
        # Before anything is written: sealing would make a false RECORD true.
        if found := record.faults(wheel, known):
            raise WheelError(
                f"The wheel does not hold what its RECORD says: {found[0]}",
                remedy="Correct by a patch what packs the wheel: pip could not use it either.",
                where=wheel.filename,
                lines=found,
            )
        for name, content in (additions or {}).items():
            packed[f"{folder}/{name}"] = spool.pack(f"{folder}/{name}", content, 0o644)
        # PEP 427 asks for dist-info at the physical end of the archive.
        order = sorted(
            packed.keys() - {listing}, key=lambda name: (name.startswith(f"{folder}/"), name)
        )
        parts = [packed[name] for name in order]
        # RECORD lists itself, too, but cannot hold its own digest.
        lines = [*(part.entry for part in parts), record.RecordEntry(listing, "", "")]
        parts.append(spool.pack(listing, record.render(lines).encode(), 0o644))
        writer = ZipWriter(target, moment(epoch))
        for part in parts:
            writer.add(part.member, spool.parts(part))
        writer.finish()


def moment(epoch: int) -> Moment:
    """Return a time as zip says it: UTC, within its years, in steps of two seconds."""
    # In UTC: zip has no time zone, and the host's must not show.
    when = min(max(filesystem.utc(epoch), EARLIEST), LATEST)
    return (when.year, when.month, when.day, when.hour, when.minute, when.second // 2 * 2)
