"""Whether a wheel's tags are true: what its libraries need, against what the tags promise."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tfwright.wheel import tags
from tfwright.wheel.binary import elf
from tfwright.wheel.inspect.library import Library

LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""The glibc that the first manylinux tags promise (PEP 513, 571, 599).

Later ones say it themselves (PEP 600).
"""
UNIVERSAL = {"universal2": {"x86_64", "arm64"}, "intel": {"x86_64", "i386"}}
"""macOS wheels for more than one machine."""


def named(path: Path) -> frozenset[Tag]:
    """Return the tags in a wheel's name; none where it is not a valid wheel name."""
    try:
        return parse_wheel_filename(path.name)[-1]
    except InvalidWheelFilename:
        return frozenset()


def faults(path: Path, stated: frozenset[Tag], found: Sequence[Library]) -> list[str]:
    """Say in what the tags in a wheel's name are not true."""
    promised = named(path)
    if not promised:
        return []
    differing = []
    # pip chooses by the name alone, and repacking tools read the file: the two must
    # agree.
    if stated != promised:
        differing.append(
            f"the file WHEEL says {tags.said(stated)}, the name says {tags.said(promised)}"
        )
    for library in found:
        differing += _library_faults(promised, library)
    platforms = sorted({tag.platform for tag in promised})
    return [
        *differing,
        *_excess("glibc", _glibc_promises(platforms), _glibc_needs(found)),
        *_excess("macOS", _macos_promises(platforms), _macos_needs(found)),
    ]


def _library_faults(promised: frozenset[Tag], library: Library) -> Iterator[str]:
    """Compare a library's machine, and the Python in an extension module's name, with the tags."""
    machines = {library.elf.machine} if library.elf else {part.machine for part in library.macho}
    for platform in sorted({tag.platform for tag in promised}):
        if platform == "any":
            yield f"{library.path} is machine code, and the tag says any machine"
        elif machines and not _machines(platform) <= machines:
            # universal2 promises two machines, so the library has to have a part for each.
            yield f"{library.path} is for {', '.join(sorted(machines))}, and the tag is {platform}"
    # PEP 3149: only this very Python imports a module that is named so.
    module = re.search(r"\.cpython-(\d+)", library.path)
    if not module:
        return
    interpreters = {tag.interpreter for tag in promised}
    if interpreters.isdisjoint({f"cp{module[1]}", f"py{module[1][0]}"}):
        yield f"{library.path} is for CPython {module[1]}, and the tags are {tags.said(promised)}"


def _machines(platform: str) -> set[str]:
    """Return the machines of a platform tag, as ``manylinux_2_17_x86_64``."""
    machine = re.sub(r"^(linux|(many|musl)linux(\d+|_\d+_\d+)|macosx_\d+_\d+)_", "", platform)
    return UNIVERSAL.get(machine, {machine})


def _excess(
    what: str, promises: Sequence[tuple[str, str]], needs: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Compare the oldest system that a tag promises with the newest that a library needs."""
    if not promises or not needs:
        return
    # Of several platform tags the oldest counts: pip may choose the wheel for any of
    # them.
    version, platform = min(promises, key=_age)
    beyond = [need for need in needs if elf.numbers(need[0]) > elf.numbers(version)]
    if beyond:
        newest, library = max(beyond, key=_age)
        others = f" ({len(beyond)} libraries need more than that)" if len(beyond) > 1 else ""
        yield f"{library} needs {what} {newest}, and the tag {platform} promises {version}{others}"


def _age(pair: tuple[str, str]) -> tuple[int, ...]:
    return elf.numbers(pair[0])


def _glibc_promises(platforms: Sequence[str]) -> list[tuple[str, str]]:
    """Return the glibc that each tag promises to be enough."""
    promises = []
    for platform in platforms:
        # linux_x86_64 promises no glibc at all.
        if part := re.match(r"(manylinux\d+)_|manylinux_(\d+)_(\d+)_", platform):
            glibc = LEGACY.get(part[1], "0") if part[1] else f"{part[2]}.{part[3]}"
            promises.append((glibc, platform))
    return promises


def _macos_promises(platforms: Sequence[str]) -> list[tuple[str, str]]:
    """Return the macOS that each tag promises to be enough."""
    promises = []
    for platform in platforms:
        part = re.match(r"macosx_(\d+)_(\d+)_", platform)
        if part:
            promises.append((f"{part[1]}.{part[2]}", platform))
    return promises


def _glibc_needs(found: Sequence[Library]) -> list[tuple[str, str]]:
    """Return the glibc that each library needs."""
    return [
        (need.version, f"{library.path} ({need.symbol})")
        for library in found
        if library.elf and (need := library.elf.requires.get("GLIBC"))
    ]


def _macos_needs(found: Sequence[Library]) -> list[tuple[str, str]]:
    """Return the macOS that each library needs."""
    return [(part.minimum, library.path) for library in found for part in library.macho]
