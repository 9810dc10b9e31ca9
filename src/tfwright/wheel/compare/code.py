"""How two libraries differ: in which sections and functions, and in what their users see."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tfwright.wheel.binary import elf, elf_image, elf_sections, macho
from tfwright.wheel.binary.content import Content, piece
from tfwright.wheel.binary.elf import Elf
from tfwright.wheel.binary.elf_sections import ElfSection
from tfwright.wheel.binary.macho import Slice
from tfwright.wheel.compare import symbols as comparison_symbols
from tfwright.wheel.compare.difference import Apart, Cursor, only, sample, tell_apart
from tfwright.wheel.compare.symbols import LibrarySymbols
from tfwright.wheel.compare.text import TextFinding

BUILD_ID = ".note.gnu.build-id"
DEBUG = re.compile(r"\.z?debug_|__DWARF,")
FOLLOWING = re.compile(
    r"\.(gnu\.(hash|version)|hash|dynsym|dynstr|symtab|strtab|shstrtab|rela?\b|got|plt"
    r"|eh_frame|dynamic|init|fini)|__LINKEDIT"
)
"""Sections that follow from what the others hold: tables of names and places."""
TEXTS = re.compile(r"\.rodata|\.comment|__cstring|__const")
LARGEST_TEXTS = 32 * 1024**2
"""Bytes of a section whose texts are taken out of it."""
_TEXT = re.compile(rb"[\t\x20-\x7e]{6,}")
_AROUND = 160
_NOTE = 16
"""Bytes of a note before the build id."""


class Region(NamedTuple):
    """A named stretch of a library."""

    name: str
    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Image:
    """One machine's part of a library."""

    content: Content
    regions: dict[str, Region]
    symbols: LibrarySymbols
    facts: set[str]
    """What the loader reads."""
    identity: str = ""
    """Build id or UUID."""


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
    if bytes(content[:4]) == elf.MAGIC:
        machine, image = _elf(content)
        return {machine: image}
    return {part.machine: _macho(content, part) for part in macho.slices(content)}


def _compare(one: Image, two: Image, apart: Mapping[str, Apart | None]) -> Iterator[str]:
    """Say in which ways two parts differ, the most telling first."""
    yield from only(one.facts, two.facts, "facts for the loader")
    yield from comparison_symbols.differences(one.symbols, two.symbols)
    yield from only(set(one.regions), set(two.regions), "sections")
    # One changed function moves all that come after it: the tables of places differ,
    # too.
    following = [name for name in apart if FOLLOWING.match(name)]
    # Debug information names directories and line numbers, which change nothing that
    # runs.
    telling = [name for name in _telling(apart) if not DEBUG.match(name)]
    for name in telling or following:
        yield from _region(one, two, name, apart[name])
    if telling and following:
        yield f"and what follows from these: {', '.join(following)}"
    if debug := [name for name in apart if DEBUG.match(name)]:
        yield f"debug information: {', '.join(sample(debug))}"
    yield from comparison_symbols.resized(one.symbols, two.symbols)
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
    before, after = one.regions[name].size, two.regions[name].size
    where = ""
    if apart:
        address = one.regions[name].address + apart.first
        where = f", first at {address:#x}{_function(one, name, apart.first)}"
    how = f"{before:,} bytes, then {after:,}"
    if before == after:
        how = f"{apart.bytes if apart else 0:,} of {before:,} bytes differ"
    yield f"{name}: {how}{where}"
    # Only at equal sizes do the same places of both hold the same text.
    if before == after and apart:
        yield from _texts_at(one, two, name, apart)
    elif TEXTS.search(name) and max(before, after) <= LARGEST_TEXTS:
        for line in only(_texts(one, name), _texts(two, name), "texts"):
            yield f"    {line}"


def _function(image: Image, name: str, offset: int) -> str:
    """Say in which function a place of the code is."""
    region = image.regions[name]
    function = image.symbols.function_at(region.address + offset, region.address)
    return f", in {function}" if function else ""


def _texts_at(one: Image, two: Image, name: str, apart: Apart) -> Iterator[str]:
    """Return the texts that differ, where it is texts that do."""
    lines = dict[str, None]()
    for start in apart.starts:
        before, after = _text_at(one, name, start), _text_at(two, name, start)
        if before and after:
            lines[f"    text {before!r}, then {after!r}"] = None
    yield from lines


def _text_at(image: Image, name: str, offset: int) -> str:
    """Return the text around a place in a section; empty where there is none."""
    region = image.regions[name]
    first = max(offset - _AROUND, 0)
    start = region.offset + first
    # Some bytes around the place: the first byte that differs is in the middle of a
    # text.
    window = bytes(image.content[start : start + min(2 * _AROUND, region.size - first)])
    for run in _TEXT.finditer(window):
        if run.start() <= offset - first < run.end():
            return run[0].decode("ascii")
    return ""


def _texts(image: Image, name: str) -> set[str]:
    region = image.regions[name]
    runs = _TEXT.finditer(image.content, region.offset, region.offset + region.size)
    return {run[0].decode("ascii")[:_AROUND] for run in runs}


def _elf(content: Content) -> tuple[str, Image]:
    """Read a Linux library: its machine, and it."""
    said = elf.read(content)
    header = elf_image.read_header(content)
    sections = elf_sections.read(content)
    regions = _regions(sections)
    symbols = comparison_symbols.of_elf(content, header, sections)
    identity = _build_id(content, regions.get(BUILD_ID))
    return said.machine, Image(content, regions, symbols, _elf_facts(said), identity)


def _build_id(content: Content, note: Region | None) -> str:
    """Return what the linker hashes all that it writes into; it differs if anything does."""
    if note is None:
        return ""
    return piece(content, note.offset, note.size, "build id")[_NOTE:].hex()


def _regions(sections: Iterable[ElfSection]) -> dict[str, Region]:
    """Return what the sections of a Linux library hold in the file, by name."""
    regions = dict[str, Region]()
    for section in sections:
        if _has_bytes(section) and section.name not in regions:
            regions[section.name] = Region(
                section.name, section.address, section.offset, section.size
            )
    return regions


def _has_bytes(section: ElfSection) -> bool:
    # .bss has an offset and no bytes there: comparing them would compare the next
    # section.
    return section.kind != elf_sections.EMPTY and section.size > 0


def _elf_facts(said: Elf) -> set[str]:
    """Return what the loader reads of a Linux library."""
    facts = {
        *(f"needs {name}" for name in said.needed),
        *(f"looks in {folder}" for folder in said.search),
        *(f"needs {family} {need.version}" for family, need in said.requires.items()),
        *(f"std::string {kind}" for kind in said.strings),
        *(f"GPU code {name}" for name in said.architectures),
    }
    if said.soname:
        facts.add(f"is called {said.soname}")
    return facts


def _macho(content: Content, part: Slice) -> Image:
    """Read one machine's part of a macOS library."""
    said = macho.said(part)
    regions = dict[str, Region]()
    for section in macho.sections(part):
        start = part.start + section.offset
        regions[section.name] = Region(section.name, section.address, start, section.size)
    facts = {
        *(f"needs {name}" for name in said.needed),
        *(f"looks in {folder}" for folder in said.search),
    }
    if said.install_name:
        facts.add(f"is called {said.install_name}")
    if said.minimum:
        facts.add(f"needs macOS {said.minimum}")
    # ld gives each linking an LC_UUID, as GNU ld gives a build id.
    identities = [body[macho.HEAD :].hex() for kind, body in part.commands if kind == macho.UUID]
    symbols = comparison_symbols.of_macho(content, part)
    return Image(content, regions, symbols, facts, "".join(identities))
