"""What a wheel may ask of the machine that it is used on, at most, and must bring for it."""

from collections.abc import Sequence

from tfwright.wheel.binary import cpu, elf
from tfwright.wheel.inspect.library import Library


def unreadable(libraries: Sequence[Library]) -> list[str]:
    """Name the libraries about which nothing can be said."""
    return [
        f"{library.path} cannot be read: {library.fault}" for library in libraries if library.fault
    ]


def glibc_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need a newer glibc than `floor`, with a symbol that only the newer one has."""
    needs = [
        (library.path, library.elf.requires["GLIBC"])
        for library in libraries
        if library.elf and "GLIBC" in library.elf.requires
    ]
    beyond = [
        (path, need) for path, need in needs if elf.numbers(need.version) > elf.numbers(floor)
    ]
    beyond.sort(key=lambda one: elf.numbers(one[1].version), reverse=True)
    return [
        f"{path} needs glibc {need.version} ({need.symbol or 'its loader'}), the floor is {floor}"
        for path, need in beyond
    ]


def cpu_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need more of an x86-64 CPU than `floor`, one of `cpu.LEVELS`, with a function that uses it."""
    allowed = cpu.LEVELS.index(floor)
    found = [
        (library.path, use)
        for library in libraries
        for part in library.parts
        if part.cpu
        for use in part.cpu.needs
    ]
    beyond = [
        (path, use)
        for path, use in found
        if cpu.LEVELS.index(cpu.EXTENSIONS[use.extension]) > allowed
    ]
    return [
        f"{path} needs {use.extension} ({use.function or 'functions without names'}; {use.decided}), the floor is {floor}"
        for path, use in beyond
    ]


def macos_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that say that they need a newer macOS than `floor`."""
    found = [(library.path, part.minimum) for library in libraries for part in library.macho]
    beyond = [
        (path, minimum) for path, minimum in found if elf.numbers(minimum) > elf.numbers(floor)
    ]
    return [f"{path} needs macOS {minimum}, the floor is {floor}" for path, minimum in beyond]


def architecture_faults(libraries: Sequence[Library], wanted: Sequence[str]) -> list[str]:
    """Name the libraries with GPU code that have none for an architecture that is wanted, as ``sm_70`` or ``compute_70``."""
    coded = {
        library.path: part.architectures
        for library in libraries
        for part in library.parts
        if part.architectures
    }
    if wanted and not coded:
        return [f"no library holds GPU code, wanted is {', '.join(wanted)}"]
    missing = {
        path: [name for name in wanted if name not in there] for path, there in coded.items()
    }
    return [
        f"{path} holds no code for {', '.join(names)}, only for {', '.join(coded[path])}"
        for path, names in missing.items()
        if names
    ]
