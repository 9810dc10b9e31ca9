"""In what two wheels differ: in which files, in what of them, and in how they are packed."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tfwright.tools import files
from tfwright.wheel import archive
from tfwright.wheel.binary import elf_image, macho
from tfwright.wheel.binary.elf_image import Content
from tfwright.wheel.compare import code, text
from tfwright.wheel.compare.code import compare_bytes, first_names
from tfwright.wheel.compare.text import TextFinding

GROUPS = ("path", "metadata", "source", "code", "other", "order", "time", "mode", "compression")
"""What is installed first, then how it is packed."""
LARGEST_TEXT = 16 * 1024**2
"""Bytes of a file that is compared as a text."""
METADATA = ".dist-info/"
"""How the place of a wheel's own description is called here, whatever its project and version."""
RECORD = f"{METADATA}RECORD"

Members = dict[str, zipfile.ZipInfo]
"""The files of a wheel by where they are installed."""


@dataclass(frozen=True)
class Difference:
    """One thing in which two wheels differ."""

    group: str
    """One of `GROUPS`."""
    member: str
    """The file, by the place where it is installed; empty for what concerns many."""
    what: str
    lines: tuple[str, ...] = ()
    """What shows it."""


@dataclass(frozen=True)
class Side:
    """One of the wheels."""

    file: str
    sha256: str
    size: int
    """Bytes."""
    members: int
    unpacked: int
    """Bytes."""


@dataclass(frozen=True)
class Comparison:
    """Two wheels, and in what they differ."""

    first: Side
    second: Side
    differences: tuple[Difference, ...] = ()

    @property
    def same(self) -> bool:
        """Whether they are the same bytes."""
        return self.first.sha256 == self.second.sha256


@dataclass(frozen=True)
class OpenWheel:
    """A wheel that is open, with its files."""

    wheel: zipfile.ZipFile
    members: Members
    folder: str
    """Of its own description."""


def compare(first: Path, second: Path) -> Comparison:
    """Compare two wheels, whoever made them; nothing of them is run.

    Raises WheelError where one is missing, or would not be unpacked either.
    """
    with ExitStack() as stack:
        one, two = (_open_side(path, stack) for path in (first, second))
        before, after = _describe_side(first, one), _describe_side(second, two)
        # Nearly always so for a reproduced wheel, and hashing is all that it takes.
        if before.sha256 == after.sha256:
            return Comparison(before, after)
        differences = _differences(one, two)
        # Sorting is stable: within a group, the largest files stay first.
        ranked = sorted(differences, key=lambda difference: GROUPS.index(difference.group))
    # Two zlibs give one content other bytes, and nothing that the archive says differs then.
    again = Difference(
        "compression", "", "only the archives differ: the same files, packed into other bytes"
    )
    return Comparison(before, after, tuple(ranked) or (again,))


def _describe_side(path: Path, opened: OpenWheel) -> Side:
    members = opened.members.values()
    unpacked = sum(member.file_size for member in members)
    return Side(path.name, files.sha256(path), path.stat().st_size, len(members), unpacked)


def _open_side(path: Path, stack: ExitStack) -> OpenWheel:
    """Open a wheel until the stack is left, and list its files by where pip would install them."""
    archive.check_exists(path)
    wheel = stack.enter_context(archive.open_wheel(path))
    folder = archive.metadata_directory(wheel)
    members = Members()
    for member in archive.files(wheel):
        place = _installed_path(member.filename, folder)
        # "x.data/purelib/a.py" and "a.py" are one place for pip; keep both to be compared.
        members[member.filename if place in members else place] = member
    return OpenWheel(wheel, members, folder)


def _installed_path(name: str, folder: str) -> str:
    """Return where a file is installed, so that projects of different names can be compared."""
    data = folder.removesuffix(".dist-info") + ".data/"
    # PEP 427: pip moves what is in .data/purelib and .data/platlib to the top.
    for prefix, place in (
        (f"{data}purelib/", ""),
        (f"{data}platlib/", ""),
        (f"{folder}/", METADATA),
        (data, ".data/"),
    ):
        if name.startswith(prefix):
            return place + name.removeprefix(prefix)
    return name


def _differences(one: OpenWheel, two: OpenWheel) -> Iterator[Difference]:
    """Return all differences, in no order."""
    common = [place for place in one.members if place in two.members]
    changed = [place for place in common if not _has_same_bytes(one, two, place)]
    if one.folder != two.folder:
        names = f"{one.folder}, then {two.folder}"
        yield Difference("path", "", "they have different names", (names,))
    for there, other, side in ((one, two, "first"), (two, one, "second")):
        sizes = {
            place: member.file_size
            for place, member in there.members.items()
            if place not in other.members
        }
        if sizes:
            missing = sorted(sizes, key=lambda place: (-sizes[place], place))
            lines = first_names(f"{place} ({sizes[place]:,} bytes)" for place in missing)
            yield Difference("path", "", f"files only in the {side} ({len(sizes):,})", lines)
    # RECORD differs wherever a file or its name does.
    renamed = one.folder != two.folder or one.members.keys() != two.members.keys()
    if renamed or changed != [RECORD]:
        changed = [place for place in changed if place != RECORD]
    # The largest first: in a wheel of TensorFlow, its library is what a reader asks about.
    for place in sorted(changed, key=lambda place: -two.members[place].file_size):
        with (
            archive.member_content(one.wheel, one.members[place]) as first,
            archive.member_content(two.wheel, two.members[place]) as second,
        ):
            yield content_difference(place, first, second)
    pairs = {place: (one.members[place], two.members[place]) for place in common}
    others = [place for place in two.members if place in one.members]
    for number, (before, after) in enumerate(zip(common, others, strict=True), 1):
        if before != after:
            what = f"the files lie in another order from number {number:,} on"
            yield Difference("order", "", what, (f"{before}, then {after}",))
            # Where one file is moved, every later one is at another place, too.
            break
    for attribute in _ATTRIBUTES:
        rows = [(place, *map(attribute.read, both)) for place, both in pairs.items()]
        apart = [f"{row[0]}: {row[1]}, then {row[2]}" for row in rows if row[1] != row[2]]
        if apart:
            what = f"{len(apart):,} of {len(common):,} files {attribute.what}"
            yield Difference(attribute.group, "", what, first_names(apart))


def _has_same_bytes(one: OpenWheel, two: OpenWheel, place: str) -> bool:
    """Say whether a file has the same bytes in both.

    Equal checksums prove nothing, so the bytes are read: packed, if they are packed alike.
    """
    before, after = one.members[place], two.members[place]
    if (before.file_size, before.CRC) != (after.file_size, after.CRC):
        return False
    # Packed bytes are a quarter of the unpacked ones, and need no unpacking.
    packings = {(member.compress_type, member.compress_size) for member in (before, after)}
    if len(packings) == 1 and not compare_bytes(
        archive.packed_bytes(one.wheel, before), archive.packed_bytes(two.wheel, after)
    ):
        return True
    with one.wheel.open(before) as opened, two.wheel.open(after) as other:
        size = before.file_size
        return not compare_bytes(files.chunks(opened.read, size), files.chunks(other.read, size))


def content_difference(place: str, first: Content, second: Content) -> Difference:
    """Say how two files differ, by what their name and their first bytes say that they are."""
    heads = {bytes(first[:4]), bytes(second[:4])}
    found = None
    # A Mach-O file may be universal in one wheel and thin in the other; Java's classes begin alike.
    libraries = heads == {elf_image.MAGIC} or heads <= set(macho.MAGICS)
    if libraries and not place.endswith(".class"):
        group = "code"
        try:
            found = code.compare_libraries(first, second)
        # Hostile bytes can make a parser fail with any exception.
        except Exception as fault:  # noqa: BLE001 see above
            what, lines = _compare_contents(first, second)
            why = f"it is not a sound library: {fault or type(fault).__name__}"
            found = TextFinding(what, (*lines, why))
    else:
        source = "source" if place.endswith((".py", ".pyi", ".pyc")) else "other"
        group = "metadata" if place.startswith(METADATA) else source
        if max(len(first), len(second)) <= LARGEST_TEXT:
            compare = (
                text.compare_programs if place.endswith((".py", ".pyi")) else text.compare_texts
            )
            found = compare(bytes(first), bytes(second))
    return Difference(group, place, *(found or _compare_contents(first, second)))


def _compare_contents(first: Content, second: Content) -> TextFinding:
    """Compare two files about which nothing else is known."""
    whole = code.compare_stretches(first, second, range(len(first)), range(len(second)))
    return whole or TextFinding("the same bytes")


def _mode(member: zipfile.ZipInfo) -> str:
    # The system says how the upper half of the attributes is to be read: Unix has its modes there.
    mode = f"{member.external_attr >> 16:o}, made on system {member.create_system}"
    # The lower half holds MS-DOS's attributes, which most programs leave at zero.
    attributes = member.external_attr & 0xFFFF
    return f"{mode}, {attributes:#x}" if attributes else mode


def _fields(member: zipfile.ZipInfo) -> str:
    extra, comment = len(member.extra), len(member.comment)
    return f"flags {member.flag_bits:#x}, {extra} bytes of extra fields, {comment} of comment"


_METHODS = {
    zipfile.ZIP_STORED: "stored",
    zipfile.ZIP_DEFLATED: "deflated",
    zipfile.ZIP_BZIP2: "bzip2",
    zipfile.ZIP_LZMA: "lzma",
}


class Attribute(NamedTuple):
    """Something that an archive says of each of its files."""

    group: str
    what: str
    """How files are called that differ in it."""
    read: Callable[[zipfile.ZipInfo], str]


_ATTRIBUTES = (
    Attribute(
        "time",
        "are dated otherwise",
        lambda member: "{:04}-{:02}-{:02} {:02}:{:02}:{:02}".format(*member.date_time),
    ),
    Attribute("mode", "have another mode", _mode),
    Attribute("mode", "have other fields in the archive", _fields),
    Attribute(
        "compression",
        "are compressed by another method",
        lambda member: _METHODS.get(member.compress_type, f"method {member.compress_type}"),
    ),
)
