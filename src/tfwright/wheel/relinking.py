"""A wheel whose macOS libraries look for other libraries, or elsewhere, than the linker wrote.

Its RECORD follows the change.
"""

import mmap
import shutil
import struct
import tempfile
import zipfile
from collections import Counter
from typing import IO

from tfwright.errors import Evidence, WheelError
from tfwright.wheel import archive, record
from tfwright.wheel.binary import load_commands, macho
from tfwright.wheel.binary.load_commands import WantedCommands


def relink(wheel: zipfile.ZipFile, target: IO[bytes], wanted: WantedCommands) -> Counter[str]:
    """Write `wheel` to `target`, a seekable file, as `wanted`.

    Return each change with the number of libraries that it was made in.

    A line of RECORD follows its file only if it was true before: a false one stays to be found.
    Raises WheelError as `load_commands.rewrite` does, and for a library that is not a sound Mach-O
    file.
    """
    place = f"{archive.metadata_directory(wheel)}/RECORD"
    listed = {entry.path: entry for entry in record.read(wheel)}
    changes = Counter[str]()
    # Stored, not compressed: the seal packs every member again.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as relinked:
        for member in archive.files(wheel):
            if member.filename != place:
                name = member.filename
                made = _copy(wheel, member, relinked, wanted)
                changes.update(made)
                if made and listed.get(name) == record.describe(wheel, member):
                    listed[name] = record.describe(relinked, relinked.getinfo(name))
        # Last, since it lists the digests of all the others.
        if place in wheel.namelist():
            relinked.writestr(_header(wheel.getinfo(place)), record.render(listed.values()))
    return changes


def _copy(
    wheel: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    relinked: zipfile.ZipFile,
    wanted: WantedCommands,
) -> tuple[str, ...]:
    """Copy a member, rewritten if it is a macOS library; return the changes."""
    # zipfile's own streams cannot be written to in the middle.
    with tempfile.TemporaryFile() as copy:
        with wheel.open(member) as source:
            shutil.copyfileobj(source, copy, record.CHUNK)
        changes = _rewritten(copy, wanted, member.filename)
        copy.seek(0)
        with relinked.open(_header(member), "w") as made:
            shutil.copyfileobj(copy, made, record.CHUNK)
    return changes


def _rewritten(library: IO[bytes], wanted: WantedCommands, name: str) -> tuple[str, ...]:
    """Rewrite a file if it begins as a macOS library does; Java's classes do too."""
    library.seek(0)
    if library.read(4) not in macho.MAGICS or name.endswith(".class"):
        return ()
    # The map reads the file, not what Python still holds in its buffer.
    library.flush()
    try:
        with mmap.mmap(library.fileno(), 0) as content:
            # In place and mapped: a library of a gigabyte is not read to change some
            # hundred bytes.
            return load_commands.rewrite(content, wanted, name)
    except (ValueError, struct.error, OverflowError) as fault:
        raise WheelError(
            f"{name} cannot be relinked: {fault}",
            remedy="Correct by a patch how this library is made: it is not a sound one.",
            evidence=Evidence(where=name),
        ) from fault


def _header(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return a header for the new wheel."""
    header = zipfile.ZipInfo(member.filename, member.date_time)
    # zipfile chooses 64-bit fields by the size that is known before it writes.
    header.file_size = member.file_size
    header.create_system = member.create_system
    header.external_attr = member.external_attr
    return header
