"""How two libraries differ: section by section, in which function, and in what their users see of them."""

import bisect
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, NamedTuple

from tfwright.wheel import elf, macho, macho_layout
from tfwright.wheel.comparison_text import Finding
from tfwright.wheel.difference import SHOWN, Apart, only, sample, tell_apart

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

BUILD_ID = ".note.gnu.build-id"
DEBUG = re.compile(r"\.z?debug_|__DWARF,")
FOLLOWING = re.compile(r"\.(gnu\.(hash|version)|hash|dynsym|dynstr|symtab|strtab|shstrtab|rela?\b|got|plt|eh_frame|dynamic|init|fini)|__LINKEDIT")
"""Sections that follow from what the others hold: tables of names and places."""
TEXTS = re.compile(r"\.rodata|\.comment|__cstring|__const")
LARGEST_TEXTS = 32 * 1024**2
"""Bytes of a section whose texts are taken out of it."""
_TEXT = re.compile(rb"[\t\x20-\x7e]{6,}")
_AROUND = 160
_UUID, _SYMBOLS = 0x1B, 0x2
"""LC_UUID and LC_SYMTAB."""
_FUNCTION, _BOUND = 2, (1, 2)
"""STT_FUNC; STB_GLOBAL and STB_WEAK."""
LARGEST_TABLE = 512 * 1024**2
"""Bytes of a table of symbols, or of their names."""


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
    functions: list[tuple[int, str, int]]
    """Address, name and size (0 where that is not known), sorted."""
    exports: set[str]
    """Names that others can use."""
    facts: set[str]
    """What the loader is told."""
    identity: str = ""
    """Build id or UUID."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the functions whose name is there once."""


def libraries(one: IO[bytes], two: IO[bytes]) -> Finding:
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
    what = f"differs in {', '.join(sample(leading))}" if leading else "differs outside its sections: in its headers, or between them"
    return Finding(what, tuple(dict.fromkeys(told)))


def _images(stream: IO[bytes]) -> dict[str, Image]:
    """Read a library, by machine."""
    stream.seek(0)
    if stream.read(4) == elf.MAGIC:
        image = _elf(stream)
        return {image[0]: image[1]}
    return {part.machine: _macho(stream, part, said) for part, said in zip(macho_layout.slices(stream), macho.read(stream), strict=True)}


def _compare(one: Image, two: Image, apart: Mapping[str, Apart | None]) -> Iterator[str]:
    """Say in which ways two parts differ, the most telling first."""
    yield from only(one.facts, two.facts, "facts for the loader")
    yield from only(one.exports, two.exports, "exported symbols")
    yield from only(set(one.regions), set(two.regions), "sections")
    following = [name for name in apart if FOLLOWING.match(name)]
    telling = [name for name in _telling(apart) if not DEBUG.match(name)]
    for name in telling or following:
        yield from _region(one, two, name, apart[name])
    if telling and following:
        yield f"and what follows from these: {', '.join(following)}"
    if debug := [name for name in apart if DEBUG.match(name)]:
        yield f"debug information: {', '.join(sample(debug))}"
    yield from _resized(one.sizes, two.sizes)
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
    where = f", first at {one.regions[name].address + apart.first:#x}{_function(one, name, apart.first)}" if apart else ""
    how = f"{before:,} bytes, then {after:,}" if before != after else f"{apart.bytes if apart else 0:,} of {before:,} bytes differ"
    yield f"{name}: {how}{where}"
    if before == after and apart:
        yield from _texts_at(one, two, name, apart)
    elif TEXTS.search(name) and max(before, after) <= LARGEST_TEXTS:
        yield from (f"    {line}" for line in only(_texts(one, name), _texts(two, name), "texts"))


def _function(image: Image, name: str, offset: int) -> str:
    """Say in which function a place of the code is."""
    region = image.regions[name]
    place = bisect.bisect_right(image.functions, (region.address + offset, "\uffff", 0)) - 1
    if place < 0:
        return ""
    address, function, size = image.functions[place]
    inside = region.address <= address and (not size or region.address + offset < address + size)
    return f", in {function}" if inside else ""


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
    found = next((run[0] for run in _TEXT.finditer(window) if run.start() <= offset - first < run.end()), b"")
    return found.decode("ascii")


def _texts(image: Image, name: str) -> set[str]:
    region = image.regions[name]
    image.stream.seek(region.offset)
    return {run[0].decode("ascii")[:_AROUND] for run in _TEXT.finditer(image.stream.read(region.size))}


def _resized(one: dict[str, int], two: dict[str, int]) -> Iterator[str]:
    """Name the functions that became longer or shorter, those that did so most first."""
    changed = sorted((name for name in one.keys() & two.keys() if one[name] != two[name]), key=lambda name: (-abs(one[name] - two[name]), name))
    if changed:
        some = ", ".join(f"{name} ({one[name]:,} bytes, then {two[name]:,})" for name in changed[:SHOWN])
        yield f"functions of another size ({len(changed):,}): {some}"


def _elf(stream: IO[bytes]) -> tuple[str, Image]:
    """Read a Linux library: its machine, and it."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 start-up is part of the product

    said = elf.read(stream)
    file = ELFFile(stream)
    regions = dict[str, Region]()
    for section in file.iter_sections():
        if section["sh_type"] != "SHT_NOBITS" and section["sh_size"] and section.name not in regions:
            regions[section.name] = Region(section.name, section["sh_addr"], section["sh_offset"], section["sh_size"])
    exports, functions = set[str](), list[tuple[int, str, int]]()
    full = ".symtab" if file.get_section_by_name(".symtab") else ".dynsym"
    for table in dict.fromkeys((".dynsym", full)):
        for address, name, size, kind, exported in _elf_symbols(stream, file, table):
            if exported and table == ".dynsym":
                exports.add(name)
            if kind == _FUNCTION and address and table == full:
                functions.append((address, name, size))
    identity = _bytes(stream, regions[BUILD_ID])[16:].hex() if BUILD_ID in regions else ""
    facts = {
        *(f"needs {name}" for name in said.needed),
        *(f"looks in {folder}" for folder in said.search),
        *(f"needs {family} {need.version}" for family, need in said.requires.items()),
        *(f"std::string {kind}" for kind in said.strings),
        *(f"GPU code {name}" for name in said.architectures),
        *([f"is called {said.soname}"] if said.soname else []),
    }
    functions.sort()
    return said.machine, Image(stream, regions, functions, exports, facts, identity, _unique(functions))


def _elf_symbols(stream: IO[bytes], file: "ELFFile", name: str) -> Iterator[tuple[int, str, int, int, bool]]:
    """Return address, name, size, kind of each symbol and whether others can use it; pyelftools takes minutes for a TensorFlow's."""
    table = file.get_section_by_name(name)
    names = file.get_section(table["sh_link"]) if table else None
    if table is None or names is None:
        return
    order, wide = "<" if file.little_endian else ">", file.elfclass == 64  # noqa: PLR2004 bits
    layout = struct.Struct(f"{order}IBxHQQ" if wide else f"{order}IIIBxH")
    content, texts = (_bytes(stream, Region("", 0, part["sh_offset"], part["sh_size"])) for part in (table, names))
    for fields in layout.iter_unpack(content[: len(content) // layout.size * layout.size]):
        at, info, section, address, size = fields if wide else (fields[0], fields[3], fields[4], fields[1], fields[2])
        yield address, _name(texts, at), size, info & 0xF, bool(section) and info >> 4 in _BOUND


def _name(texts: bytes, start: int) -> str:
    end = texts.find(b"\0", start)
    return texts[start : end if end >= 0 else None].decode("utf-8", "backslashreplace")


def _bytes(stream: IO[bytes], region: Region) -> bytes:
    """Return what is in a stretch of a file, whose size is the file's own claim."""
    if region.size > LARGEST_TABLE:
        raise ValueError(f"one of its tables says that it has {region.size:,} bytes")
    stream.seek(region.offset)
    return stream.read(region.size)


def _unique(functions: list[tuple[int, str, int]]) -> dict[str, int]:
    """Return the sizes of the functions whose name no other one has, as static functions may."""
    sizes = dict[str, int]()
    for _, name, size in functions:
        sizes[name] = 0 if name in sizes else size
    return {name: size for name, size in sizes.items() if size}


def _macho(stream: IO[bytes], part: macho_layout.Slice, said: macho.MachO) -> Image:
    """Read one machine's part of a macOS library."""
    regions = {one.name: Region(one.name, one.address, part.start + one.offset, one.size) for one in macho_layout.sections(part)}
    symbols = list(_macho_symbols(stream, part))
    facts = {
        *(f"needs {name}" for name in said.needed),
        *(f"looks in {folder}" for folder in said.search),
        *([f"is called {said.install_name}"] if said.install_name else []),
        *([f"needs macOS {said.minimum}"] if said.minimum else []),
    }
    identity = "".join(content[8:].hex() for kind, content in part.commands if kind == _UUID)
    exports = {name for _, name, exported in symbols if exported}
    return Image(stream, regions, sorted((address, name, 0) for address, name, _ in symbols), exports, facts, identity)


def _macho_symbols(stream: IO[bytes], part: macho_layout.Slice) -> Iterator[tuple[int, str, bool]]:
    """Return address and name of each symbol that the library has (N_SECT), and whether others can use it (N_EXT)."""
    layout = struct.Struct(f"{part.order}IBBH{'Q' if part.head == 32 else 'I'}")  # noqa: PLR2004 bytes before the load commands
    for kind, content in part.commands:
        if kind == _SYMBOLS:
            start, count, names, size = struct.unpack_from(f"{part.order}4I", content, 8)
            table = _bytes(stream, Region("", 0, part.start + start, count * layout.size))
            texts = _bytes(stream, Region("", 0, part.start + names, size))
            for at, flags, _, _, address in layout.iter_unpack(table[: len(table) // layout.size * layout.size]):
                if flags & 0xEE == 0xE:  # noqa: PLR2004 in a section, and no debugger's
                    yield address, _name(texts, at), bool(flags & 1)
