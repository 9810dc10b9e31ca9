"""What a wheel may ask of the machine that it is used on, at most, and must bring for it.

A library that could not be read keeps no floor: `unreadable` names it, and it is refused there.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tfwright.printable import first_of
from tfwright.wheel.binary import cpu, elf
from tfwright.wheel.binary.cpu import Use
from tfwright.wheel.inspect.library import Library


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
    beyond = []
    for library in libraries:
        # A library that needs no version of glibc at all runs with each.
        need = library.elf.requires.get("GLIBC") if library.elf else None
        if need and elf.numbers(need.version) > elf.numbers(floor):
            beyond.append((library.path, need))
    beyond.sort(key=lambda pair: elf.numbers(pair[1].version), reverse=True)
    return [
        f"{path} needs glibc {need.version} ({need.symbol or 'its loader'}), the floor is {floor}"
        for path, need in beyond
    ]


def cpu_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need more of an x86-64 CPU than `floor`, one of `cpu.LEVELS`.

    Each with a function that does. A library of which that is unknown is named too.
    """
    faults = []
    for library in libraries:
        for found in (part.cpu for part in library.parts if part.cpu):
            for use in _beyond(found.needs, floor):
                why = f"{use.function or 'functions without names'}; {use.decided}"
                faults.append(f"{library.path} needs {use.extension} ({why}), the floor is {floor}")
            faults += [
                f"{library.path} cannot be judged: it asks the CPU what it has, and "
                f"{use.decided} use {use.extension}; the floor is {floor}"
                for use in _beyond(found.unknown, floor)
            ]
    return faults


def _beyond(uses: Sequence[Use], floor: str) -> Iterator[Use]:
    """Return the extensions that a CPU of the floor does not have."""
    for use in uses:
        if cpu.LEVELS.index(cpu.EXTENSIONS[use.extension]) > cpu.LEVELS.index(floor):
            yield use


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
