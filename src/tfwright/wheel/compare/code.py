"""How two libraries differ: section by section, in which function, and in what their users see of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, NamedTuple

from tfwright.wheel.binary import elf, macho, macho_layout
from tfwright.wheel.compare import symbols as comparison_symbols
from tfwright.wheel.compare.difference import Apart, only, sample, tell_apart
from tfwright.wheel.compare.symbols import LibrarySymbols
from tfwright.wheel.compare.text import TextFinding

BUILD_ID = ".note.gnu.build-id"
DEBUG = re.compile(r"\.z?debug_|__DWARF,")
FOLLOWING = re.compile(
    r"\.(gnu\.(hash|version)|hash|dynsym|dynstr|symtab|strtab|shstrtab|rela?\b|got|plt|eh_frame|dynamic|init|fini)|__LINKEDIT"
)
"""Sections that follow from what the others hold: tables of names and places."""
TEXTS = re.compile(r"\.rodata|\.comment|__cstring|__const")
LARGEST_TEXTS = 32 * 1024**2
"""Bytes of a section whose texts are taken out of it."""
_TEXT = re.compile(rb"[\t\x20-\x7e]{6,}")
_AROUND = 160
_UUID = 0x1B
"""LC_UUID."""


class Region(NamedTuple):
    """A named stretch of a library."""

    name: str
    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Image:
    """One machine's part of a library."""

    stream: IO[bytes]
    regions: dict[str, Region]
    symbols: LibrarySymbols
    facts: set[str]
    """What the loader is told."""
    identity: str = ""
    """Build id or UUID."""


def libraries(one: IO[bytes], two: IO[bytes]) -> TextFinding:
    """Compare two libraries of the same kind.

    Raises ValueError, struct.error or what pyelftools raises where one is no sound library.
    """
    parts = [_images(stream) for stream in (one, two)]
    told, leading = list(only(set(parts[0]), set(parts[1]), "machines")), dict[str, None]()
    for machine in parts[0].keys() & parts[1].keys():
        pair = parts[0][machine], parts[1][machine]
        apart = _apart(*pair)
        told += _compare(*pair, apart)
        leading.update(dict.fromkeys(_telling(apart) or apart))
    what = (
        f"differs in {', '.join(sample(leading))}"
        if leading
        else "differs outside its sections: in its headers, or between them"
    )
    return TextFinding(what, tuple(dict.fromkeys(told)))


def _images(stream: IO[bytes]) -> dict[str, Image]:
    """Read a library, by machine."""
    stream.seek(0)
    if stream.read(4) == elf.MAGIC:
        image = _elf(stream)
        return {image[0]: image[1]}
    return {
        part.machine: _macho(stream, part, said)
        for part, said in zip(macho_layout.slices(stream), macho.read(stream), strict=True)
    }


def _compare(one: Image, two: Image, apart: Mapping[str, Apart | None]) -> Iterator[str]:
    """Say in which ways two parts differ, the most telling first."""
    yield from only(one.facts, two.facts, "facts for the loader")
    yield from comparison_symbols.differences(one.symbols, two.symbols)
    yield from only(set(one.regions), set(two.regions), "sections")
    following = [name for name in apart if FOLLOWING.match(name)]
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
    """Compare the sections that are in both; return those that differ, with how they do as far as both reach."""
    found = dict[str, Apart | None]()
    for name in one.regions.keys() & two.regions.keys():
        before, after = one.regions[name], two.regions[name]
        one.stream.seek(before.offset)
        two.stream.seek(after.offset)
        apart = tell_apart(one.stream, two.stream, min(before.size, after.size))
        if apart or before.size != after.size:
            found[name] = apart
    return {name: found[name] for name in one.regions if name in found}


def _telling(apart: Iterable[str]) -> list[str]:
    """Return the sections that do not follow from others."""
    return [name for name in apart if name != BUILD_ID and not FOLLOWING.match(name)]


def _region(one: Image, two: Image, name: str, apart: Apart | None) -> Iterator[str]:
    """Say how a section differs."""
    before, after = one.regions[name].size, two.regions[name].size
    where = (
        f", first at {one.regions[name].address + apart.first:#x}{_function(one, name, apart.first)}"
        if apart
        else ""
    )
    how = (
        f"{before:,} bytes, then {after:,}"
        if before != after
        else f"{apart.bytes if apart else 0:,} of {before:,} bytes differ"
    )
    yield f"{name}: {how}{where}"
    if before == after and apart:
        yield from _texts_at(one, two, name, apart)
    elif TEXTS.search(name) and max(before, after) <= LARGEST_TEXTS:
        yield from (f"    {line}" for line in only(_texts(one, name), _texts(two, name), "texts"))


def _function(image: Image, name: str, offset: int) -> str:
    """Say in which function a place of the code is."""
    region = image.regions[name]
    function = image.symbols.function_at(region.address + offset, region.address)
    return f", in {function}" if function else ""


def _texts_at(one: Image, two: Image, name: str, apart: Apart) -> Iterator[str]:
    """Return the texts that differ, where it is texts that do."""
    told = dict[str, None]()
    for start in apart.starts:
        pair = [_text_at(image, name, start) for image in (one, two)]
        if pair[0] and pair[1]:
            told[f"    text {pair[0]!r}, then {pair[1]!r}"] = None
    yield from told


def _text_at(image: Image, name: str, offset: int) -> str:
    """Return the text around a place in a section; empty where there is none."""
    region = image.regions[name]
    first = max(offset - _AROUND, 0)
    image.stream.seek(region.offset + first)
    window = image.stream.read(min(2 * _AROUND, region.size - first))
    found = next(
        (run[0] for run in _TEXT.finditer(window) if run.start() <= offset - first < run.end()), b""
    )
    return found.decode("ascii")


def _texts(image: Image, name: str) -> set[str]:
    region = image.regions[name]
    image.stream.seek(region.offset)
    return {
        run[0].decode("ascii")[:_AROUND] for run in _TEXT.finditer(image.stream.read(region.size))
    }


def _elf(stream: IO[bytes]) -> tuple[str, Image]:
    """Read a Linux library: its machine, and it."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 start-up is part of the product

    said = elf.read(stream)
    file = ELFFile(stream)
    regions = dict[str, Region]()
    for section in file.iter_sections():
        if (
            section["sh_type"] != "SHT_NOBITS"
            and section["sh_size"]
            and section.name not in regions
        ):
            regions[section.name] = Region(
                section.name, section["sh_addr"], section["sh_offset"], section["sh_size"]
            )
    note = regions.get(BUILD_ID)
    identity = (
        comparison_symbols.table_at(stream, note.offset, note.size)[16:].hex() if note else ""
    )
    facts = {
        *(f"needs {name}" for name in said.needed),
        *(f"looks in {folder}" for folder in said.search),
        *(f"needs {family} {need.version}" for family, need in said.requires.items()),
        *(f"std::string {kind}" for kind in said.strings),
        *(f"GPU code {name}" for name in said.architectures),
        *([f"is called {said.soname}"] if said.soname else []),
    }
    return said.machine, Image(
        stream, regions, comparison_symbols.of_elf(stream, file), facts, identity
    )


def _macho(stream: IO[bytes], part: macho_layout.Slice, said: macho.MachO) -> Image:
    """Read one machine's part of a macOS library."""
    regions = {
        one.name: Region(one.name, one.address, part.start + one.offset, one.size)
        for one in macho_layout.sections(part)
    }
    facts = {
        *(f"needs {name}" for name in said.needed),
        *(f"looks in {folder}" for folder in said.search),
        *([f"is called {said.install_name}"] if said.install_name else []),
        *([f"needs macOS {said.minimum}"] if said.minimum else []),
    }
    identity = "".join(content[8:].hex() for kind, content in part.commands if kind == _UUID)
    return Image(stream, regions, comparison_symbols.of_macho(stream, part), facts, identity)
