"""How bytes differ, and in which sections those of two libraries do.

What changed in a section is for a program such as diffoscope to say.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tfwright.printable import first_few
from tfwright.wheel.binary import elf_image, macho
from tfwright.wheel.binary.elf_image import Content, ElfImage
from tfwright.wheel.compare.text import TextFinding

SHOWN = 5
"""How many of a kind are named; the others are counted."""
CHUNK = 1024 * 1024

FOLLOWING = re.compile(
    r"\.(note\.gnu\.build-id|gnu\.(hash|version)|hash|dynsym|dynstr|symtab|strtab|shstrtab"
    r"|rela?\b|got|plt|eh_frame|dynamic|init|fini)|__LINKEDIT"
)
"""Sections that follow from what the others hold: tables of names and places."""
_TEXT = re.compile(rb"[\t\x20-\x7e]{6,}")
_AROUND = 160
"""Bytes before and after a place in which its text is looked for."""


class ByteDifference(NamedTuple):
    """How two stretches of bytes differ."""

    bytes: int
    """How many differ, as far as both reach."""
    starts: tuple[int, ...]
    """Where the first few runs of them start."""


def compare_bytes(one: Iterable[bytes], two: Iterable[bytes]) -> ByteDifference | None:
    """Compare two files, given in pieces of one size; None if they are the same.

    It ends where one of them does: a damaged archive may end before its directory says.
    """
    count, starts, place = 0, list[int](), 0
    for first, second in zip(one, two, strict=False):
        if first != second:
            # Only now byte by byte: comparing whole pieces runs at the speed of memory. As two
            # large integers, since a loop in Python would take minutes for a library.
            both = min(len(first), len(second))
            exclusive = int.from_bytes(first[:both]) ^ int.from_bytes(second[:both])
            apart = exclusive.to_bytes(both)
            count += both - apart.count(0)
            if len(starts) < SHOWN:
                starts += [place + run.start() for run in re.finditer(rb"[^\0]+", apart)]
        place += len(first)
    return ByteDifference(count, tuple(starts[:SHOWN])) if count else None


def first_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first few, and how many more there are."""
    return first_few(list(names), SHOWN)


def compare_stretches(
    one: Content, two: Content, before: range, after: range
) -> TextFinding | None:
    """Compare a stretch of one file with one of another; None if they are the same."""
    alike = len(before) == len(after)
    apart = compare_bytes(_pieces(one, before), _pieces(two, after))
    if apart is None:
        return None if alike else TextFinding(f"{len(before):,} bytes, then {len(after):,}")
    what, starts = f"{apart.bytes:,} of {len(before):,} bytes differ", apart.starts
    if not alike:
        # Only what comes before the first difference has the same place in both.
        what, starts = f"{len(before):,} bytes, then {len(after):,}", apart.starts[:1]
    pairs = [(_text_at(one, before, at), _text_at(two, after, at)) for at in starts]
    return TextFinding(
        f"{what}, first at {starts[0]:#x}",
        tuple(
            f"    text {first!r}, then {second!r}"
            for first, second in dict.fromkeys(pairs)
            if first and second
        ),
    )


def _pieces(content: Content, stretch: range) -> Iterator[bytes]:
    for start in stretch[::CHUNK]:
        yield bytes(content[start : min(start + CHUNK, stretch.stop)])


def _text_at(content: Content, stretch: range, offset: int) -> str:
    """Return the text around a place in a stretch; empty where there is none."""
    first = max(offset - _AROUND, 0)
    # Some bytes around the place: the first byte that differs is in the middle of a text.
    around = stretch[first : offset + _AROUND]
    for run in _TEXT.finditer(bytes(content[around.start : around.stop])):
        if run.start() <= offset - first < run.end():
            return run[0].decode("ascii")
    return ""


def compare_libraries(one: Content, two: Content) -> TextFinding:
    """Compare two libraries of the same kind. Raises ValueError where one is damaged."""
    before, after = _sections(one), _sections(two)
    lines = []
    for side, there in (("first", before.keys() - after), ("second", after.keys() - before)):
        if there:
            names = ", ".join(first_names(sorted(there)))
            lines.append(f"sections only in the {side} ({len(there):,}): {names}")
    pairs = {
        name: compare_stretches(one, two, before[name], after[name])
        for name in before
        if name in after
    }
    apart = {name: found for name, found in pairs.items() if found}
    # One changed function moves all that come after it: the tables of places differ, too. Where
    # only these differ, that has to be named.
    telling = [name for name in apart if not FOLLOWING.match(name)] or [*apart]
    for name in telling:
        lines += [f"{name}: {apart[name].what}", *apart[name].lines]
    if following := [name for name in apart if name not in telling]:
        lines.append(f"and what follows from these: {', '.join(following)}")
    what = "differs outside its sections: in its headers, or between them"
    if telling:
        what = f"differs in {', '.join(first_names(telling))}"
    return TextFinding(what, tuple(lines))


def _sections(content: Content) -> dict[str, range]:
    """Return where the sections of a library lie in its file, by name."""
    if bytes(content[:4]) == elf_image.MAGIC:
        return {
            section.name: range(section.offset, section.offset + section.size)
            # .bss has an offset and no bytes there: comparing them would compare the next section.
            for section in ElfImage(content).sections()
            if section.kind != elf_image.EMPTY and section.size
        }
    parts = macho.slices(content)
    return {
        f"{section.name} ({part.machine})" if len(parts) > 1 else section.name: range(
            part.start + section.offset, part.start + section.offset + section.size
        )
        for part in parts
        for section in part.sections()
    }
