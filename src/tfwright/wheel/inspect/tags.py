"""A wheel's tags: whether they are true of what is in it, and which Python on this machine fits."""

import functools
import re
import zipfile
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags, parse_tag, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tfwright.facts.compatibility import version_numbers
from tfwright.wheel import archive
from tfwright.wheel.inspect import needs
from tfwright.wheel.inspect.library import Library

MOST = 1_000
"""Tags that the lines of WHEEL may stand for: ``a.b-c.d-e.f`` are eight."""
LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""The glibc that the first manylinux tags promise (PEP 513, 571, 599).

Later ones say it themselves (PEP 600).
"""
UNIVERSAL = {
    "universal2": {"x86_64", "arm64"},
    "universal": {"x86_64", "i386", "ppc", "ppc64"},
    "intel": {"x86_64", "i386"},
    "fat64": {"x86_64", "ppc64"},
    "fat32": {"x86_64", "i386", "ppc"},
}
"""macOS wheels for more than one machine: packaging.tags.mac_platforms."""
_MACHINES = r"_[a-z]\w*"
_POSSIBLE = re.compile(
    rf"any|win32|win_(amd64|arm64|arm32)|linux{_MACHINES}"
    rf"|manylinux(1|2010|2014|_\d+_\d+){_MACHINES}|musllinux_\d+_\d+{_MACHINES}"
    rf"|macosx_(10_\d+(?!_arm64)|\d+_0){_MACHINES}"
    rf"|(android|ios|emscripten|pyodide|wasi|freebsd|openbsd|netbsd|solaris|aix)_\w+"
)
"""Platform tags that some installer takes: PEP 425, 600, 656, 730, 738, 783; packaging.tags."""
EXAMPLES = {
    "macosx": "macosx_12_0_arm64",
    "manylinux": "manylinux_2_17_x86_64",
    "musllinux": "musllinux_1_2_x86_64",
}
"""What a tag of each kind is like."""
_SYSTEM = re.compile(r"^(linux|(many|musl)linux(\d+|_\d+_\d+)|macosx_\d+_\d+)_")
"""What stands before the machine in a platform tag."""


def tags_in_name(path: Path) -> frozenset[Tag]:
    """Return the tags in a wheel's name; none where it is not a valid wheel name."""
    try:
        return parse_wheel_filename(path.name)[-1]
    except InvalidWheelFilename:
        return frozenset()


def stated_tags(wheel: zipfile.ZipFile) -> frozenset[Tag]:
    """Return the tags that the file WHEEL states.

    Empty if the wheel has no such file, or a line in it is not a tag. Raises WheelError if the file
    is too long to be read.
    """
    lines = archive.headers(wheel, "WHEEL").get_all("Tag") or []
    # A line of a few kilobytes can stand for millions of tags: count before expanding.
    counts = [prod(part.count(".") + 1 for part in line.split("-")) for line in lines]
    if sum(counts) > MOST:
        return frozenset()
    try:
        return frozenset(tag for line in lines for tag in parse_tag(line))
    except ValueError:
        return frozenset()


def tags_text(tags: frozenset[Tag]) -> str:
    """Return tags as a reader knows them."""
    return ", ".join(sorted(map(str, tags))) or "nothing"


def _tag_difference(stated: frozenset[Tag], promised: frozenset[Tag]) -> list[str]:
    # pip chooses by the name alone, and repacking tools read the file: the two must agree.
    if stated == promised:
        return []
    return [f"the file WHEEL says {tags_text(stated)}, the name says {tags_text(promised)}"]


def misfits(
    path: Path, wheel: zipfile.ZipFile, libraries: Sequence[Library], python: str
) -> list[str]:
    """Say in what the tags of a wheel differ from its content, and from CPython `python` here.

    Raises WheelError where its file WHEEL cannot be read.
    """
    try:
        promised = parse_wheel_filename(path.name)[-1]
    except InvalidWheelFilename as fault:
        return [str(fault)]
    found = _tag_difference(stated_tags(wheel), promised)
    found += [fault for library in libraries for fault in _library_faults(promised, library)]
    # The target Python is another one than the Python that runs tfwright.
    if not promised & supported_tags(python):
        found.append(f"{tags_text(promised)} is not for CPython {python} on this machine")
    return found


@functools.cache
def interfaces(python: str) -> set[tuple[str, str]]:
    """Return the interpreters with their interfaces that CPython `python` installs wheels of."""
    return {(tag.interpreter, tag.abi) for tag in supported_tags(python, ["any"])}


def supported_tags(python: str, platforms: Sequence[str] = ()) -> frozenset[Tag]:
    """Return the tags that CPython `python` (as ``3.6.15``) installs, by default on this host."""
    major, minor = map(int, python.split(".")[:2])
    interpreter = f"cp{major}{minor}"
    # platform_tags() describes this machine, whatever Python the wheel is for.
    platforms = list(platforms or platform_tags())
    # Up to 3.7 the ABI says how Python's allocator was built (PEP 3149), in 2.7 also how wide a
    # character is.
    letters = [""]
    if (major, minor) < (3, 8):
        letters = ["mu", "m"] if major == 2 else ["m", ""]  # noqa: PLR2004 Python's own version
    abis = [interpreter + letter for letter in letters]
    exact = cpython_tags((major, minor), abis, platforms)
    compatible = compatible_tags((major, minor), interpreter, platforms)
    return frozenset([*exact, *compatible])


def promised_glibc(platform: str) -> str:
    """Return the glibc that a platform tag promises to be enough; empty where it promises none."""
    part = re.match(r"(manylinux\d+)_|manylinux_(\d+)_(\d+)_", platform)
    if not part:
        return ""
    return LEGACY.get(part[1], "0") if part[1] else f"{part[2]}.{part[3]}"


def promised_macos(platform: str) -> str:
    """Return the same for macOS."""
    part = re.match(r"macosx_(\d+)_(\d+)_", platform)
    return f"{part[1]}.{part[2]}" if part else ""


def impossible_tags(promised: frozenset[Tag]) -> Iterator[str]:
    """Say which tags no installer takes, whatever the machine."""
    for platform in sorted({tag.platform for tag in promised}):
        if not _POSSIBLE.fullmatch(platform):
            example = EXAMPLES.get(platform.partition("_")[0])
            why = f"a tag is like {example}" if example else "no installer knows it"
            yield f"pip takes no wheel for the platform {platform}: {why}"
    for tag in sorted(promised, key=str):
        abi = re.match(r"cp(\d+)", tag.abi)
        if abi and tag.interpreter.startswith("cp") and tag.interpreter != f"cp{abi[1]}":
            yield f"pip takes no wheel for {tag}: the interface {tag.abi} is another Python's"


def faults(path: Path, stated: frozenset[Tag], found: Sequence[Library]) -> list[str]:
    """Say in what the tags in a wheel's name are not true of its libraries, or of no machine."""
    promised = tags_in_name(path)
    if not promised:
        return []
    return [
        *impossible_tags(promised),
        *(fault for library in found for fault in _library_faults(promised, library)),
        *broken_promises(path, stated, found),
    ]


def broken_promises(path: Path, stated: frozenset[Tag], found: Sequence[Library]) -> list[str]:
    """Say what is not as the name says, and keeps no pip and no newer system from the wheel."""
    lines = _tag_difference(stated, tags_in_name(path))
    platforms = sorted({tag.platform for tag in tags_in_name(path)})
    for what, name, promise in (
        ("glibc", "GLIBC", promised_glibc),
        ("macOS", "macOS", promised_macos),
    ):
        # linux_x86_64 promises no glibc at all.
        promises = [(version, platform) for platform in platforms if (version := promise(platform))]
        # Of several platform tags the oldest counts: pip may choose the wheel for any of them.
        oldest = min(promises, key=lambda pair: version_numbers(pair[0]), default=None)
        if oldest and (beyond := needs.beyond(found, name, oldest[0])):
            newest, (version, platform) = beyond[0], oldest
            library = f"{newest.library} ({newest.symbol})" if newest.symbol else newest.library
            others = f" ({len(beyond)} libraries need more than that)" if len(beyond) > 1 else ""
            lines.append(
                f"{library} needs {what} {newest.version}, "
                f"and the tag {platform} promises {version}{others}"
            )
    return lines


def _library_faults(promised: frozenset[Tag], library: Library) -> Iterator[str]:
    """Compare a library's machine, and the Python in an extension module's name, with the tags."""
    # Of a library for Windows it is not read.
    machines = {part.machine for part in library.parts if part.machine}
    for platform in sorted({tag.platform for tag in promised}):
        if platform == "any":
            yield f"{library.path} is machine code, and the tag says any machine"
            continue
        machine = _SYSTEM.sub("", platform)
        if machines and not UNIVERSAL.get(machine, {machine}) <= machines:
            # universal2 promises two machines, so the library has to have a part for each.
            yield f"{library.path} is for {', '.join(sorted(machines))}, and the tag is {platform}"
    # PEP 3149: only this very Python imports a module that is named so.
    module = re.search(r"\.cpython-(\d+)", library.path)
    if not module:
        return
    interpreters = {tag.interpreter for tag in promised}
    if interpreters.isdisjoint({f"cp{module[1]}", f"py{module[1][0]}"}):
        yield f"{library.path} is for CPython {module[1]}, and the tags are {tags_text(promised)}"
