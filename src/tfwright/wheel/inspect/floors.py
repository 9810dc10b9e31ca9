"""A wheel against what a recipe allows it to need.

A library that could not be read keeps no floor: it is named and refused before.
"""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tfwright.documents.recipe import VerifyTable
from tfwright.facts.compatibility import is_above
from tfwright.wheel import archive, record
from tfwright.wheel.binary import cpu
from tfwright.wheel.inspect import needs, tags
from tfwright.wheel.inspect.inspection import WheelContents
from tfwright.wheel.inspect.library import Library


class Reading(NamedTuple):
    """Something that was read off the wheel."""

    name: str
    faults: Sequence[str]
    """Everything in which it is not as it should be."""
    detail: str
    """What is said if there are none."""


def readings(
    path: Path, wheel: zipfile.ZipFile, found: WheelContents, table: VerifyTable, python: str
) -> Iterator[Reading]:
    """Judge what was found in a wheel; its size is left out, since sealing changes that."""
    members = f"{len(archive.files(wheel))} files as listed"
    yield Reading("RECORD", record.faults(wheel, found.entries), members)
    misfits = tags.misfits(path, wheel, found.libraries, python)
    yield Reading("tags", misfits, f"fit CPython {python} here")
    # Before the floors: a library that cannot be read keeps none of them.
    if found.libraries:
        faults = needs.unreadable_libraries(found.libraries)
        yield Reading("libraries", faults, f"{len(found.libraries)} read")
    for name, floor, faults_of in (
        ("glibc", table.glibc, glibc_faults),
        ("cpu", table.cpu, cpu_faults),
        ("macos", table.macos, macos_faults),
    ):
        if floor:
            yield Reading(name, faults_of(found.libraries, floor), f"{floor} is enough")
    if table.architectures:
        faults = architecture_faults(found.libraries, table.architectures)
        yield Reading("architectures", faults, ", ".join(table.architectures))


def glibc_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need a newer glibc than `floor`, the newest first.

    Each with a symbol that only the newer glibc has.
    """
    # A library that needs no version of glibc at all runs with each.
    return [
        f"{need.library} needs glibc {need.version} ({need.symbol or 'its loader'}), "
        f"the floor is {floor}"
        for need in needs.beyond(libraries, "GLIBC", floor)
    ]


def cpu_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need more of an x86-64 CPU than `floor`, one of CpuLevel.

    Each with a function that does. A library of which that is unknown is named too.
    """

    def beyond(uses: Sequence[cpu.Use]) -> Iterator[cpu.Use]:
        for use in uses:
            if is_above(cpu.EXTENSIONS[use.extension], floor):
                yield use

    faults = []
    for library in libraries:
        for found in (part.cpu for part in library.parts if part.cpu):
            for use in beyond(found.needs):
                why = f"{use.function or 'functions without names'}; {use.decided}"
                faults.append(f"{library.path} needs {use.extension} ({why}), the floor is {floor}")
            faults += [
                f"{library.path} cannot be judged: it asks the CPU what it has, and "
                f"{use.decided} use {use.extension}; the floor is {floor}"
                for use in beyond(found.unknown)
            ]
    return faults


def macos_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need a newer macOS than `floor`, or do not say which one."""
    # Old linkers wrote no minimum, and a library that says nothing proves nothing.
    silent = [
        f"{library.path} ({part.machine}) cannot be judged: it does not say which macOS it needs; "
        f"the floor is {floor}"
        for library in libraries
        for part in library.parts
        if part.system == "macOS" and not part.requires
    ]
    return silent + [
        f"{need.library} needs macOS {need.version}, the floor is {floor}"
        for need in needs.beyond(libraries, "macOS", floor)
    ]


def architecture_faults(libraries: Sequence[Library], wanted: Sequence[str]) -> list[str]:
    """Name the libraries with GPU code that do not hold exactly what is `wanted`.

    `wanted` are architectures as ``sm_70`` or ``compute_70``. Code of a kind that is not in the
    list at all, such as PTX next to a list of ``sm_``, is left alone.
    """
    coded = {}
    for library in libraries:
        for part in library.parts:
            if part.gpu:
                coded[f"{library.path} ({part.machine})"] = part.gpu
    if wanted and not coded:
        return [f"no library holds GPU code, wanted is {', '.join(wanted)}"]
    # A list of sm_ says nothing of PTX, which many builds hold in addition.
    kinds = {name.partition("_")[0] for name in wanted}
    faults = []
    for path, present in coded.items():
        missing = [name for name in wanted if name not in present]
        extra = [name for name in present if name not in wanted and name.partition("_")[0] in kinds]
        if missing:
            faults.append(
                f"{path} holds no code for {', '.join(missing)}, only for {', '.join(present)}"
            )
        if extra:
            faults.append(
                f"{path} holds code for {', '.join(extra)} as well, "
                f"and verify.architectures lists only {', '.join(wanted)}"
            )
    return faults
