"""What the libraries of a wheel need of the machine that it is used on."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfwright.facts.compatibility import LEVELS, is_older, version_numbers
from tfwright.printable import first_of
from tfwright.wheel.binary import cpu, fatbin
from tfwright.wheel.inspect import cuda
from tfwright.wheel.inspect.library import Library


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
    gpu: Mapping[str, int]
    """Bytes of GPU code by architecture, SASS first, oldest first; of its own libraries only."""
    nccl: tuple[str, ...]
    tensorflow: int
    """Exports in TensorFlow's namespace."""


def summarize(libraries: Sequence[Library]) -> Summary:
    """Put together what the libraries of a wheel say."""
    parts = [part for library in libraries for part in library.parts]
    newest: dict[str, WheelNeed] = {}
    for name, need in all_needs(libraries):
        if name not in newest or _sort_key(name, need) > _sort_key(name, newest[name]):
            newest[name] = need
    # A TensorRT that is packed into it runs on GPUs that TensorFlow's own operations do not run on.
    others = [library for library in libraries if not any(map(cuda.NVIDIA.match, library.names))]
    gpu = Counter[str]()
    for part in (part for library in others or libraries for part in library.parts):
        gpu.update(part.gpu)
    # The library with TensorFlow's own exports decides how users must build their own operations.
    interface = max(parts, key=lambda part: part.symbols.tensorflow, default=None)
    return Summary(
        needs=newest,
        strings=interface.symbols.strings if interface else (),
        gpu=fatbin.sort_architectures(gpu),
        nccl=tuple(sorted({library.nccl for library in libraries if library.nccl})),
        tensorflow=sum(part.symbols.tensorflow for part in parts),
    )


def all_needs(libraries: Sequence[Library]) -> Iterator[tuple[str, WheelNeed]]:
    """Return everything that each library needs."""
    for library in libraries:
        for part in library.parts:
            for name, requirement in part.requires.items():
                yield name, WheelNeed(requirement.version, library.path, requirement.symbol)
            if part.cpu:
                # The first use is of the highest level: it is what the wheel cannot do without.
                use = part.cpu.needs[0] if part.cpu.needs else cpu.Use("", "", "")
                yield "CPU", WheelNeed(part.cpu.level, library.path, use.function, use.decided)


def beyond(libraries: Sequence[Library], name: str, version: str) -> list[WheelNeed]:
    """Return what needs a newer system than a version, of ``GLIBC`` or ``macOS``; newest first."""
    found = [
        need
        for own, need in all_needs(libraries)
        if own == name and is_older(version, need.version)
    ]
    return sorted(found, key=lambda need: version_numbers(need.version), reverse=True)


def _sort_key(name: str, need: WheelNeed) -> tuple[int, ...]:
    """Return what makes two needs of the same thing compare."""
    return (LEVELS.index(need.version),) if name == "CPU" else version_numbers(need.version)


def unreadable_libraries(libraries: Sequence[Library]) -> list[str]:
    """Name the libraries about which nothing can be said, once for all with the same fault."""
    alike = defaultdict[str, list[str]](list)
    for library in libraries:
        if library.fault:
            alike[library.fault].append(library.path)
    return [f"{first_of(paths)} cannot be read: {fault}" for fault, paths in alike.items()]
