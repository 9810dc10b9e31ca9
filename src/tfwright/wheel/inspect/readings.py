"""What is read off a wheel without running it: that it is what it says, and keeps its floor."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tfwright.documents.recipe import VerifyTable
from tfwright.wheel import archive, record, tags
from tfwright.wheel.inspect import floor
from tfwright.wheel.inspect.inspection import WheelContents
from tfwright.wheel.inspect.library import Library


class Reading(NamedTuple):
    """Something that was read off the wheel."""

    name: str
    faults: Sequence[str]
    """Everything in which it is not as it should be."""
    detail: str
    """What is said if there are none."""


def read(
    path: Path, wheel: zipfile.ZipFile, found: WheelContents, table: VerifyTable, python: str
) -> Iterator[Reading]:
    """Judge what was found in a wheel; its size is left out, since sealing changes that."""
    members = f"{len(archive.files(wheel))} files as listed"
    yield Reading("RECORD", record.faults(wheel, found.entries), members)
    yield Reading("tags", tags.faults(path, wheel, python), f"fit CPython {python} here")
    yield from _floor(table, found.libraries)


def _floor(table: VerifyTable, libraries: Sequence[Library]) -> Iterator[Reading]:
    """Read off the libraries what the wheel asks of a machine, and brings for its GPU."""
    # Before the floors: a library that cannot be read keeps none of them.
    if libraries:
        yield Reading("libraries", floor.unreadable(libraries), f"{len(libraries)} read")
    if table.glibc:
        faults = floor.glibc_faults(libraries, table.glibc)
        yield Reading("glibc", faults, f"{table.glibc} is enough")
    if table.cpu:
        faults = floor.cpu_faults(libraries, table.cpu)
        yield Reading("cpu", faults, f"{table.cpu} is enough")
    if table.macos:
        faults = floor.macos_faults(libraries, table.macos)
        yield Reading("macos", faults, f"{table.macos} is enough")
    if table.architectures:
        faults = floor.architecture_faults(libraries, table.architectures)
        yield Reading("architectures", faults, ", ".join(table.architectures))
