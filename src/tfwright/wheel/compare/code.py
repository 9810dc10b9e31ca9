"""How two libraries differ: in which sections and functions, and in what their users see."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tfwright.wheel.binary import elf, elf_image, machine_code, macho
from tfwright.wheel.binary.elf_image import Content, ElfImage, piece
from tfwright.wheel.binary.machine_code import Code
from tfwright.wheel.binary.macho import Slice
from tfwright.wheel.compare.difference import Apart, Cursor, only, sample, tell_apart
from tfwright.wheel.compare.text import TextFinding

BUILD_ID = ".note.gnu.build-id"
DEBUG = re.compile(r"\.z?debug_|__DWARF,")
FOLLOWING = re.compile(
    r"\.(gnu\.(hash|version)|hash|dynsym|dynstr|symtab|strtab|shstrtab|rela?\b|got|plt"
    r"|eh_frame|dynamic|init|fini)|__LINKEDIT"
)
"""Sections that follow from what the others hold: tables of names and places."""
CODE = (".text", macho.CODE)
TEXTS = re.compile(r"\.rodata|\.comment|__cstring|__const")
LARGEST_TEXTS = 32 * 1024**2
"""Bytes of a section whose texts are taken out of it."""
_TEXT = re.compile(rb"[\t\x20-\x7e]{6,}")
_AROUND = 160
_NOTE = 16
"""Bytes of a note before the build id."""


class Region(NamedTuple):
    """A named stretch of a library."""

    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Image:
    """One machine's part of a library."""

    content: Content
    regions: dict[str, Region]
    facts: set[str]
    """What the loader reads."""
    exports: set[str]
    """The names that others can use."""
    code: Callable[[], Code | None]
    identity: str = ""
    """Build id or UUID."""

    def text_at(self, name: str, offset: int) -> str:
        """Return the text around a place in a section; empty where there is none."""
        region = self.regions[name]
        first = max(offset - _AROUND, 0)
        start = region.offset + first
        # Some bytes around the place: the first byte that differs is in the middle of a text.
        window = bytes(self.content[start : start + min(2 * _AROUND, region.size - first)])
        for run in _TEXT.finditer(window):
            if run.start() <= offset - first < run.end():
                return run[0].decode("ascii")
        return ""

    def texts(self, name: str) -> set[str]:
        """Return all texts in a section."""
        region = self.regions[name]
        runs = _TEXT.finditer(self.content, region.offset, region.offset + region.size)
        return {run[0].decode("ascii")[:_AROUND] for run in runs}


def libraries(one: Content, two: Content) -> TextFinding:
    """Compare two libraries of the same kind. Raises ValueError where one is damaged."""
    before, after = _images(one), _images(two)
    lines = list(only(set(before), set(after), "machines"))
    leading = dict[str, None]()
    for machine in before.keys() & after.keys():
        pair = before[machine], after[machine]
        apart = _apart(*pair)
        lines += _compare(*pair, apart)
        # Where only what follows from other sections differs, that has to be named.
        leading.update(dict.fromkeys(_telling(apart) or apart))
    what = "differs outside its sections: in its headers, or between them"
    if leading:
        what = f"differs in {', '.join(sample(leading))}"
    return TextFinding(what, tuple(dict.fromkeys(lines)))


def _images(content: Content) -> dict[str, Image]:
    """Read a library, by machine."""
    if bytes(content[:4]) == elf_image.MAGIC:
        machine, image = _elf(content)
        return {machine: image}
    return {part.machine: _macho(part) for part in macho.slices(content)}


def _compare(one: Image, two: Image, apart: Mapping[str, Apart | None]) -> Iterator[str]:
    """Say in which ways two parts differ, the most telling first."""
    yield from only(one.facts, two.facts, "facts for the loader")
    yield from only(one.exports, two.exports, "exported symbols")
    yield from only(set(one.regions), set(two.regions), "sections")
    # One changed function moves all that come after it: the tables of places differ, too.
    following = [name for name in apart if FOLLOWING.match(name)]
    # Debug information names directories and line numbers, which change nothing that runs.
    telling = [name for name in _telling(apart) if not DEBUG.match(name)]
    for name in telling or following:
        yield from _region(one, two, name, apart[name])
    if telling and following:
        yield f"and what follows from these: {', '.join(following)}"
    if debug := [name for name in apart if DEBUG.match(name)]:
        yield f"debug information: {', '.join(sample(debug))}"
    if one.identity != two.identity:
        yield f"build id {one.identity or 'none'}, then {two.identity or 'none'}"


def _apart(one: Image, two: Image) -> dict[str, Apart | None]:
    """Compare the sections that are in both; return how those differ that do."""
    found = dict[str, Apart | None]()
    for name in one.regions.keys() & two.regions.keys():
        before, after = one.regions[name], two.regions[name]
        first = Cursor(one.content, before.offset)
        second = Cursor(two.content, after.offset)
        apart = tell_apart(first, second, min(before.size, after.size))
        if apart or before.size != after.size:
            found[name] = apart
    return {name: found[name] for name in one.regions if name in found}


def _telling(apart: Iterable[str]) -> list[str]:
    """Return the sections that do not follow from others."""
    return [name for name in apart if name != BUILD_ID and not FOLLOWING.match(name)]


def _region(one: Image, two: Image, name: str, apart: Apart | None) -> Iterator[str]:
    """Say how a section differs."""
    region = one.regions[name]
    before, after = region.size, two.regions[name].size
    where = ""
    if apart:
        code = one.code() if name in CODE else None
        function = code.at(region.offset + apart.first) if code else None
        named = f", in {code.name(function)}" if code and function and function.name else ""
        where = f", first at {region.address + apart.first:#x}{named}"
    how = f"{before:,} bytes, then {after:,}"
    if before == after:
        how = f"{apart.bytes if apart else 0:,} of {before:,} bytes differ"
    yield f"{name}: {how}{where}"
    # Only at equal sizes do the same places of both hold the same text.
    if before == after and apart:
        pairs = [(one.text_at(name, start), two.text_at(name, start)) for start in apart.starts]
        for first, second in dict.fromkeys(pairs):
            if first and second:
                yield f"    text {first!r}, then {second!r}"
    elif TEXTS.search(name) and max(before, after) <= LARGEST_TEXTS:
        for line in only(one.texts(name), two.texts(name), "texts"):
            yield f"    {line}"


def _elf(content: Content) -> tuple[str, Image]:
    """Read a Linux library: its machine, and it."""
    image = ElfImage(content)
    read, _ = elf.facts(image)
    facts = {
        *(f"needs {name}" for name in read.needed),
        *(f"looks in {folder}" for folder in read.search),
        *(f"needs {family} {need.version}" for family, need in read.requires.items()),
        *(f"std::string {kind}" for kind in read.symbols.strings),
        *(f"GPU code {name}" for name in read.architectures),
        *(f"is called {name}" for name in [read.soname] if name),
    }
    regions = dict[str, Region]()
    for section in image.sections():
        # .bss has an offset and no bytes there: comparing them would compare the next section.
        if section.kind != elf_image.EMPTY and section.size:
            regions.setdefault(section.name, Region(section.address, section.offset, section.size))
    identity = ""
    if note := regions.get(BUILD_ID):
        # The linker hashes all that it writes into it; it differs if anything does.
        identity = piece(content, note.offset, note.size, "build id")[_NOTE:].hex()
    exports = {_shown(symbol.name) for symbol in image.symbols() if symbol.here}
    code = partial(machine_code.of_elf, image)
    return read.machine, Image(content, regions, facts, exports, code, identity)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _macho(part: Slice) -> Image:
    """Read one machine's part of a macOS library."""
    read = part.facts()
    facts = {
        *(f"needs {name}" for name in read.needed),
        *(f"looks in {folder}" for folder in read.search),
        *(f"is called {name}" for name in [read.install_name] if name),
        *(f"needs macOS {version}" for version in [read.minimum] if version),
    }
    regions = {
        section.name: Region(section.address, part.start + section.offset, section.size)
        for section in part.sections()
    }
    rows, names, _ = part.symbols
    exports = {_shown(names.name(row.name)) for row in rows if row.shared}
    # ld gives each linking an LC_UUID, as GNU ld gives a build id.
    identity = "".join(
        body[macho.HEAD :].hex() for kind, body in part.commands if kind == macho.UUID
    )
    return Image(part.content, regions, facts, exports, part.code, identity)
