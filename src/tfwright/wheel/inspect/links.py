"""Symbols that a library of a wheel needs, and that nobody gives it."""

import re
from collections.abc import Iterator, Mapping, Sequence
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
    wheel whose symbols have no versions, as libcuda's, it cannot be told what is missing.
    """
    given = frozenset[int]().union(*(table.given for table in tables.values()))
    beside = {
        name: library.elf
        for library in libraries
        if library.elf
        for name in (PurePosixPath(library.path).name, library.elf.soname)
    }
    return tuple(
        _with_missing(library, tables.get(library.path), given, beside) for library in libraries
    )


def _with_missing(
    library: Library, table: ElfTable | None, given: frozenset[int], beside: Mapping[str, Elf]
) -> Library:
    """Return a library with the symbols filled in that it misses."""
    if (
        library.elf is None
        or table is None
        or any(not SYSTEM.fullmatch(name) for name in _outside(library.elf, beside))
    ):
        return library
    missing = tuple(
        name.decode("utf-8", "replace") for name in table.wanted if hash(name) not in given
    )[:MOST_MISSING]
    return replace(
        library, elf=replace(library.elf, symbols=replace(library.elf.symbols, missing=missing))
    )


def _outside(elf: Elf, beside: Mapping[str, Elf]) -> Iterator[str]:
    """Return the libraries from outside the wheel that one needs, itself or through others."""
    seen, waiting = set[str](), list(elf.needed)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in beside:
            waiting += beside[name].needed
        else:
            yield name
