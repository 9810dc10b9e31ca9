"""Archives that others made, unpacked as data: nothing is run, nothing leaves its directory."""

import lzma
import os
import re
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, Self, cast

from tfwright.errors import FullDiskError, SupplyError
from tfwright.tools import disk
from tfwright.tools.process.capacity import GIB

# The filters of PEP 706 came with 3.11.4; Debian 12 has 3.11.2.
if sys.version_info >= (3, 11, 4):
    import tarfile as tarfile  # noqa: PLC0414 a test of its filters imports it from here
else:
    from backports import tarfile as tarfile  # type: ignore[no-redef] # noqa: PLC0414 the same

MOST_MEMBERS = 500_000
"""CUDA 12 has some thirty thousand."""
LONGEST_PATH = 1024
"""Characters of a member's path below the directory; the system resolves 4,096 in all."""
LONGEST_NAME = 64 * 1024
"""Bytes of a header that only holds a long name; tarfile reads it into memory, whatever it says."""
MOST_EXTENDED = 5 * 10**9
"""Sum of the squares of the sizes of all headers in POSIX's extended form: tarfile before Python
3.11.10 takes quadratic time for them (CVE-2024-6232), here some ten seconds."""
KEPT_FREE = 1 * GIB
"""Bytes that are left on the disk."""
_HEADER = 1 << 18
"""Bytes within which the script of a makeself archive ends."""
_DEB = b"!<arch>\n"
_AR_HEADER = 60
"""Bytes before each member of an ar archive; the name is in the first 16, the size in 10 from 48
on."""
_WINDOW = 128 << 20
"""Bytes of memory that a zstd stream may ask for: what dpkg's highest level needs."""
_SCRIPT_LINES = re.compile(rb'^skip="([0-9]{1,9})"|^offset=`head -n ([0-9]{1,9}) ', re.MULTILINE)
_SIZES = re.compile(rb'^filesizes="([0-9]{1,15})[ "]', re.MULTILINE)
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    OverflowError,
)
"""What the readers of a damaged archive raise."""
_LONG_NAMES = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
_EXTENDED = {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE}
Wanted = Callable[[PurePosixPath], bool]


def unpack(archive: Path, into: Path, wanted: Wanted = lambda _: True) -> None:
    """Unpack the members of an archive that are `wanted` into a directory.

    It may be a tar in any compression that Python has, a zip or a wheel, a Debian package, or a
    shell script with a tar behind it as makeself writes it, which is what NVIDIA's ``.run`` files
    are; neither that script nor those of a package are run. Raises SupplyError if it is none of
    these, is damaged or reaches outside of the directory, HostError if the disk is too full for it.
    """
    try:
        with as_supply_error(str(archive)):
            space = _Space(into, archive)
            if zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive) as packed:
                    if len(packed.infolist()) > MOST_MEMBERS:
                        raise ValueError("it has too many members")
                    for member in packed.infolist():
                        path = PurePosixPath(member.filename)
                        # zipfile asks for the last character of a name before it looks for any.
                        if not path.parts and not member.filename.endswith("/"):
                            raise ValueError("a member has no name")
                        # zipfile would silently write such a member elsewhere inside of `into`.
                        climbs = path.is_absolute() or ".." in path.parts
                        if climbs or "\\" in member.filename:
                            raise ValueError(f"{member.filename!r} reaches outside of the archive")
                        if wanted(path):
                            space.reserve(member.file_size)
                            packed.extract(member, into)
                return
            with archive.open("rb") as stream:
                packaged = stream.peek(len(_DEB))[: len(_DEB)] == _DEB
                content = _data_of_package(stream) if packaged else _tar_stream(stream)
                _untar(content, into, wanted, space, packaged=packaged)
    except OSError as fault:
        # write() raises without a name.
        raise disk.host_error(fault, None if fault.filename else into) from fault


@contextmanager
def as_supply_error(named: str) -> Iterator[None]:
    """Turn what the readers of a damaged archive raise into a SupplyError that names it."""
    try:
        yield
    except (*BROKEN, OSError) as fault:
        # A fault of the disk has a number; one that gzip or bz2 finds in its data has none.
        if isinstance(fault, OSError) and fault.errno is not None:
            raise
        raise SupplyError(
            f"{named} cannot be unpacked: {fault}",
            remedy="Download it again; if its checksum is the right one, report this.",
        ) from fault


class _Header(tarfile.TarInfo):
    """A header of a tar, refused where it asks for memory or time that no archive needs."""

    def _proc_member(self, archive: "Tar") -> Self:
        """Read on behind this header, as tarfile does for each. Raises ReadError.

        It is the method that tarfile lets subclasses replace; newer Pythons do not call `frombuf`.
        """
        # A negative size leads back, for ever.
        if self.size < 0:
            raise tarfile.ReadError("a member has a negative size")
        if self.type in _LONG_NAMES and self.size > LONGEST_NAME:
            raise tarfile.ReadError(f"a name has {self.size:,} bytes")
        if self.type in _EXTENDED:
            archive.extended -= self.size**2
        if archive.extended < 0:
            raise tarfile.ReadError("the extended headers are too large")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


class Tar(tarfile.TarFile):
    """A tar file of a stranger; `as_supply_error` knows what is raised for a damaged one."""

    tarinfo = _Header
    extended = MOST_EXTENDED
    """What its extended headers may still take."""


def plain_files(archive: Path) -> Iterator[tuple[str, int, Callable[[], IO[bytes]]]]:
    """Yield the plain files of a zip or tar file: name, size in bytes, and a way to open each.

    A file that does not begin as either has none. `as_supply_error` knows what is raised for a
    damaged one.
    """
    # The content decides: a file that is kept under its checksum has no ending.
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                yield entry.filename, entry.file_size, partial(zipped.open, entry)
        return
    try:
        packed = Tar.open(archive)
    except BROKEN:
        return
    with packed:
        for member in members(packed):
            if member.isfile():
                opened = cast("Callable[[], IO[bytes]]", partial(packed.extractfile, member))
                yield member.name, member.size, opened


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar. Raises ReadError if they have no end."""
    for number, member in enumerate(tar):
        # An extended header can replace the size that its member has.
        if member.size < 0 or number > MOST_MEMBERS:
            raise tarfile.ReadError("its members do not come to an end")
        yield member


class _Space:
    """What may still be unpacked."""

    def __init__(self, into: Path, archive: Path) -> None:
        self.into, self.archive = into, archive
        self.left = shutil.disk_usage(into).free - KEPT_FREE

    def reserve(self, size: int) -> None:
        """Count a member of so many bytes."""
        self.left -= size
        # Before a member is written: a bomb must not fill the disk first.
        if self.left < 0:
            raise FullDiskError(
                f"{self.archive.name} has no room in {self.into}, where tfwright leaves "
                f"{KEPT_FREE // GIB} GiB free",
                place=self.into,
            )


def _data_of_package(stream: BufferedReader) -> IO[bytes]:
    """Return the files of a Debian package, which are the member data.tar of an ar archive."""
    stream.seek(len(_DEB))
    while len(header := stream.read(_AR_HEADER)) == _AR_HEADER:
        digits = header[48:58].strip()
        # int() takes "-60" too, which would lead back to this header for ever.
        if not re.fullmatch(rb"[0-9]+", digits):
            raise ValueError("a member of the Debian package has no size")
        name = header[:16].decode("ascii").strip()
        size = int(digits)
        if name.startswith("data.tar"):
            part = _Part(stream, size)
            # A tar that is streamed needs only `read`.
            return _Zstd(part) if ".zst" in name else part  # type: ignore[return-value]
        # Members begin at even places.
        stream.seek(size + size % 2, 1)
    raise ValueError("it is a Debian package without files")


def _tar_stream(stream: BufferedReader) -> IO[bytes]:
    """Return what is to be read as tar: of a makeself archive what stands behind its script."""
    head = stream.peek(_HEADER)[:2] and stream.read(_HEADER)
    start = 0
    # The script says how many lines it has: old versions in `head -n`, newer ones in `skip`.
    if head.startswith(b"#!") and (count := _SCRIPT_LINES.search(head)):
        start = sum(map(len, head.splitlines(keepends=True)[: int(count[1] or count[2])]))
    size = _SIZES.search(head[:start])
    stream.seek(start)
    # A tar that is streamed needs only `read`.
    return _Part(stream, int(size[1])) if size else stream  # type: ignore[return-value]


class _Part:
    """The first bytes of a stream."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self.stream, self.left = stream, size

    def read(self, size: int) -> bytes:
        read = self.stream.read(min(size, self.left))
        self.left -= len(read)
        return read


class _Zstd:
    """What a stream holds that was compressed by zstd, as Ubuntu's packages are since 21.10.

    Python reads this compression itself only from 3.14 on.
    """

    def __init__(self, stream: _Part) -> None:
        import zstandard

        self.damaged = zstandard.ZstdError
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        # It needs only `read`, as a streamed tar does.
        self.reader = decompressor.stream_reader(stream)  # type: ignore[arg-type]

    def read(self, size: int) -> bytes:
        try:
            return self.reader.read(size)
        except self.damaged as fault:
            raise ValueError(str(fault)) from fault


def _untar(stream: IO[bytes], into: Path, wanted: Wanted, space: _Space, *, packaged: bool) -> None:
    # "r|*": read once from front to back, since the part of a stream cannot seek.
    with Tar.open(fileobj=stream, mode="r|*") as tar:
        for member in members(tar):
            # Debian's packages have links to absolute paths, into /etc.
            to_the_host = packaged and member.issym() and member.linkname.startswith("/")
            if wanted(PurePosixPath(member.name)) and not to_the_host:
                space.reserve(member.size)
                # The filter of Pythons before 3.11.13 takes a path that is longer than the system
                # resolves as it is written, and a chain of links in it then leads out
                # (CVE-2025-4517). Links make a real path longer than its name, so that the
                # directory counts as it is.
                real = os.path.realpath(into / PurePosixPath(member.name).parent)
                grown = len(real) - len(os.path.realpath(into))
                if max(len(member.name), len(member.linkname), grown) > LONGEST_PATH:
                    raise ValueError(f"{member.name[:60]!r} has a path that is too long")
                # The filter refuses absolute names, "..", devices, and links that lead out.
                tar.extract(member, into, filter="data")
