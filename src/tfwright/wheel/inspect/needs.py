"""What a wheel needs of the machine that it is used on: in all, and against what a recipe allows.

A library that could not be read keeps no floor: `unreadable` names it, and it is refused there.
"""

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfwright.documents.recipe import VerifyTable
from tfwright.printable import first_of
from tfwright.wheel import archive, record
from tfwright.wheel.binary import cpu, elf
from tfwright.wheel.inspect import tags
from tfwright.wheel.inspect.library import Library

if TYPE_CHECKING:
    from tfwright.wheel.inspect.inspection import Inspection, WheelContents


VALUE = r"[\w.,+ -]{1,400}"
"""What `of_machine` returns, and documents may hold, of a need."""


@dataclass(frozen=True)
class WheelNeed:
    """The most that any library of a wheel needs of one thing."""

    version: str
    """Of glibc, libstdc++ or macOS; of the CPU its level."""
    library: str
    symbol: str = ""
    """What in the library needs it."""
    decided: str = ""
    """How that was found out, where it is not written in the library."""


@dataclass(frozen=True)
class Summary:
    """A wheel's libraries together."""

    needs: dict[str, WheelNeed]
    """By ``GLIBC``, ``GLIBCXX``, ``CXXABI``, ``macOS`` and ``CPU``."""
    strings: tuple[str, ...]
    """The std::string of the interface that most of TensorFlow's exports are in."""
    architectures: tuple[str, ...]
    gpu_bytes: dict[str, int]
    """Bytes of GPU code by architecture, in the order of `architectures`."""
    nccl: tuple[str, ...]
    tensorflow: int
    """Exports in TensorFlow's namespace."""


def summarize(libraries: Sequence[Library]) -> Summary:
    """Put together what the libraries of a wheel say."""
    parts = [part for library in libraries for part in library.parts]
    newest: dict[str, WheelNeed] = {}
    for name, need in _needs(libraries):
        if name not in newest or _age(name, need) > _age(name, newest[name]):
            newest[name] = need
    architectures = elf.ordered(name for part in parts for name in part.architectures)
    # The library with TensorFlow's own exports decides how users must build their own operations.
    interface = max(parts, key=lambda part: part.symbols.tensorflow, default=None)
    return Summary(
        needs=newest,
        strings=interface.symbols.strings if interface else (),
        architectures=architectures,
        gpu_bytes={
            name: sum(part.gpu_bytes.get(name, 0) for part in parts) for name in architectures
        },
        nccl=tuple(sorted({library.nccl for library in libraries if library.nccl})),
        tensorflow=sum(part.symbols.tensorflow for part in parts),
    )


def of_machine(report: "Inspection") -> dict[str, str]:
    """Return what a machine must have for a wheel: ``glibc``, ``cpu``, ``gpu``, ``cuda`` ..."""
    summary = report.summary
    if summary is None:
        return {}
    # Only what a reader compares with a machine.
    found = {name.lower(): need.version for name, need in summary.needs.items()}
    shown = ("glibc", "glibcxx", "cpu", "macos")
    wanted = {name: found[name] for name in shown if name in found}
    wanted["gpu"] = ",".join(summary.architectures)
    # Releases before 2.0 do not state it, and are linked with it.
    linked = re.search(r"libcudart\.so\.(\d+\.\d+)", " ".join(report.nvidia))
    cuda = dict(report.stated).get("cuda_version", linked[1] if linked else "")
    # In wheels for Windows it is as in the names of CUDA's libraries: cudart64_112.dll.
    wanted["cuda"] = re.sub(r"^64_(\d+)(\d)$", r"\1.\2", cuda)
    # A wheel may state anything, and documents that name one strange value are refused whole.
    return {name: value for name, value in wanted.items() if re.fullmatch(VALUE, value)}


def _needs(libraries: Sequence[Library]) -> Iterator[tuple[str, WheelNeed]]:
    """Return everything that each library needs."""
    for library in libraries:
        for part in library.macho:
            yield "macOS", WheelNeed(part.minimum, library.path)
        for family, requirement in library.elf.requires.items() if library.elf else ():
            yield (family, WheelNeed(requirement.version, library.path, requirement.symbol))
        for found in [part.cpu for part in library.parts if part.cpu]:
            # The first use is of the highest level: it is what the wheel cannot do without.
            use = found.needs[0] if found.needs else cpu.Use("", "", "")
            yield ("CPU", WheelNeed(found.level, library.path, use.function, use.decided))


def _age(name: str, need: WheelNeed) -> tuple[int, ...]:
    """Return what makes two needs of the same thing compare."""
    if name == "CPU":
        return (cpu.LEVELS.index(need.version),)
    return elf.numbers(need.version)


class Reading(NamedTuple):
    """Something that was read off the wheel."""

    name: str
    faults: Sequence[str]
    """Everything in which it is not as it should be."""
    detail: str
    """What is said if there are none."""


def readings(
    path: Path, wheel: zipfile.ZipFile, found: "WheelContents", table: VerifyTable, python: str
) -> Iterator[Reading]:
    """Judge what was found in a wheel; its size is left out, since sealing changes that."""
    members = f"{len(archive.files(wheel))} files as listed"
    yield Reading("RECORD", record.faults(wheel, found.entries), members)
    yield Reading("tags", tags.misfits(path, wheel, python), f"fit CPython {python} here")
    # Before the floors: a library that cannot be read keeps none of them.
    if found.libraries:
        yield Reading("libraries", unreadable(found.libraries), f"{len(found.libraries)} read")
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


def unreadable(libraries: Sequence[Library]) -> list[str]:
    """Name the libraries about which nothing can be said, once for all with the same fault."""
    alike = defaultdict[str, list[str]](list)
    for library in libraries:
        if library.fault:
            alike[library.fault].append(library.path)
    return [f"{first_of(paths)} cannot be read: {fault}" for fault, paths in alike.items()]


def glibc_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need a newer glibc than `floor`, the newest first.

    Each with a symbol that only the newer glibc has.
    """
    # A library that needs no version of glibc at all runs with each.
    needs = [need for name, need in _needs(libraries) if name == "GLIBC"]
    return [
        f"{need.library} needs glibc {need.version} ({need.symbol or 'its loader'}), "
        f"the floor is {floor}"
        for need in sorted(needs, key=lambda need: elf.numbers(need.version), reverse=True)
        if elf.numbers(need.version) > elf.numbers(floor)
    ]


def cpu_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need more of an x86-64 CPU than `floor`, one of `cpu.LEVELS`.

    Each with a function that does. A library of which that is unknown is named too.
    """

    def beyond(uses: Sequence[cpu.Use]) -> Iterator[cpu.Use]:
        for use in uses:
            if cpu.LEVELS.index(cpu.EXTENSIONS[use.extension]) > cpu.LEVELS.index(floor):
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
    faults = []
    for library in libraries:
        for part in library.macho:
            # Old linkers wrote no minimum, and a library that says nothing proves
            # nothing.
            if not part.minimum:
                faults.append(
                    f"{library.path} ({part.machine}) cannot be judged: "
                    f"it does not say which macOS it needs; the floor is {floor}"
                )
            elif elf.numbers(part.minimum) > elf.numbers(floor):
                faults.append(f"{library.path} needs macOS {part.minimum}, the floor is {floor}")
    return faults


def architecture_faults(libraries: Sequence[Library], wanted: Sequence[str]) -> list[str]:
    """Name the libraries with GPU code that do not hold exactly what is `wanted`.

    `wanted` are architectures as ``sm_70`` or ``compute_70``. Code of a kind that is not in the
    list at all, such as PTX next to a list of ``sm_``, is left alone.
    """
    coded = {}
    for library in libraries:
        for part in library.parts:
            if part.architectures:
                coded[f"{library.path} ({part.machine})"] = part.architectures
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
