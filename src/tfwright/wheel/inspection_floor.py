"""What a wheel may ask of the machine that it is used on, at most, and must bring for it."""

from collections.abc import Sequence

from tfwright.wheel import elf
from tfwright.wheel.inspection import Library


def unreadable(libraries: Sequence[Library]) -> list[str]:
    """Name the libraries about which nothing can be said."""
    return [f"{library.path} cannot be read: {library.fault}" for library in libraries if library.fault]


def glibc_faults(libraries: Sequence[Library], floor: str) -> list[str]:
    """Name the libraries that need a newer glibc than `floor`, with a symbol that only the newer one has."""
    needs = [(library.path, library.elf.requires["GLIBC"]) for library in libraries if library.elf and "GLIBC" in library.elf.requires]
    beyond = [(path, need) for path, need in needs if elf.numbers(need.version) > elf.numbers(floor)]
    beyond.sort(key=lambda one: elf.numbers(one[1].version), reverse=True)
    return [f"{path} needs glibc {need.version} ({need.symbol or 'its loader'}), the floor is {floor}" for path, need in beyond]


def architecture_faults(libraries: Sequence[Library], wanted: Sequence[str]) -> list[str]:
    """Name the libraries with GPU code that have none for an architecture that is wanted, as ``sm_70`` or ``compute_70``."""
    coded = {library.path: library.elf.architectures for library in libraries if library.elf and library.elf.architectures}
    if wanted and not coded:
        return [f"no library holds GPU code, wanted is {', '.join(wanted)}"]
    missing = {path: [name for name in wanted if name not in there] for path, there in coded.items()}
    return [f"{path} holds no code for {', '.join(names)}, only for {', '.join(coded[path])}" for path, names in missing.items() if names]
