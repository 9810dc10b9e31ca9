"""Symbols that a library of a wheel needs, and that no library provides."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tfwright.wheel.binary.elf import Elf
from tfwright.wheel.binary.elf_symbols import MOST_MISSING, ElfTable
from tfwright.wheel.inspect.library import Library

SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|gomp))\.so\.\d+")
"""Libraries all of whose symbols have versions, so that one without a version is not theirs."""


def resolved(libraries: Sequence[Library], tables: Mapping[str, ElfTable]) -> tuple[Library, ...]:
    """Return the libraries with the symbols filled in that are missing.

    What any library of the wheel gives counts as given: TensorFlow 1 loads its own library for all
    to see, and the operations' libraries do not name it. Where a library needs one from outside the
    wheel whose symbols have no versions, as libcuda's, it is unknown what is missing.
    """
    given = frozenset[int]().union(*(table.given for table in tables.values()))
    unknown = _that_reach_outside(libraries)
    resolved = []
    for library in libraries:
        table = tables.get(library.path)
        read = library.elf
        if table and read and library.path not in unknown:
            read = _with_missing(read, table, given)
        resolved.append(replace(library, elf=read))
    return tuple(resolved)


def _with_missing(read: Elf, table: ElfTable, given: frozenset[int]) -> Elf:
    """Return what a library says, with the symbols filled in that it misses."""
    names = [name for name in table.wanted if hash(name) not in given][:MOST_MISSING]
    missing = tuple(name.decode("utf-8", "replace") for name in names)
    return replace(read, symbols=replace(read.symbols, missing=missing))


def _that_reach_outside(libraries: Sequence[Library]) -> set[str]:
    """Return the paths of those that need, themselves or through others, a library from outside.

    The loader's libraries of the system do not count. Each need is followed once, backwards from
    the libraries outside: from each library forwards would take the square of their number.
    """
    own: set[str] = set()
    users: dict[str, list[Library]] = {}
    for library in libraries:
        if library.elf is None:
            continue
        own.update(_names(library))
        for name in library.elf.needed:
            users.setdefault(name, []).append(library)
    # Backwards: what needs libcuda may get any symbol from it, and so may whoever needs
    # that.
    waiting = [name for name in users if name not in own and not SYSTEM.fullmatch(name)]
    reached, seen = set[str](), set(waiting)
    while waiting:
        for library in users.get(waiting.pop(), ()):
            reached.add(library.path)
            further = [name for name in _names(library) if name not in seen]
            seen.update(further)
            waiting += further
    return reached


def _names(library: Library) -> tuple[str, ...]:
    """Return the names by which others need a library."""
    name = PurePosixPath(library.path).name
    if library.elf and library.elf.soname:
        return name, library.elf.soname
    return (name,)
