"""What a recipe's tree downloads, the files of archives included that declare more; and that all of it is in the vault."""

import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tfwright.recipe import SubstituteTable
from tfwright.vault import rules, substitutes
from tfwright.vault.lock import Lock
from tfwright.vault.origins import Missing, Supply, Wanted
from tfwright.vault.rules import Nested, Repository, Rules
from tfwright.vault.starlark import LONGEST_FILE
from tfwright.vault.store import Store

Obtain = Callable[[Sequence[Wanted]], Supply]


@dataclass(frozen=True)
class Reached:
    """What the rules of a tree lead to, and what of it could be had."""

    rules: Rules
    supply: Supply

    def needed_and_missing(self, lock: Lock | None) -> list[Missing]:
        """Return what could not be had although Bazel was seen to want it."""
        needed = {name for one in (lock.archives if lock else ()) if one.needed for name in one.names}
        return [one for one in self.supply.missing if needed.intersection(one.wanted.name.split(", "))]


def bring(found: Rules, tables: Mapping[str, SubstituteTable], lock: Lock | None, store: Store, obtain: Obtain) -> Reached:
    """Obtain what the rules of a tree name, then what the archives among it declare themselves, until nothing new comes.

    What the lock knows that Bazel does not want is left out, unless it declares more.
    """
    supply, asked, followed = Supply({}, ()), set[str](), dict[Nested, Rules]()
    while True:
        known = rules.joined(found, followed)
        new = [one for one in wanted(known, tables, lock) if one.sha256 not in asked]
        asked.update(one.sha256 for one in new)
        brought = obtain(new)
        supply = Supply({**supply.ways, **brought.ways}, (*supply.missing, *brought.missing))
        more = {nested: rules.follow(nested, texts) for nested in known.nested if (texts := _texts(nested, known, tables, store))}
        if not more:
            return Reached(known, supply)
        followed.update(more)


def wanted(found: Rules, tables: Mapping[str, SubstituteTable], lock: Lock | None) -> list[Wanted]:
    """Return the files that are to be had: those that WORKSPACE leads to, each once, and the substitutes in place of what they stand for."""
    leading = {nested.archive for nested in found.nested}
    idle = {one.sha256 for one in (lock.archives if lock else ()) if one.needed is False and leading.isdisjoint(one.names)}
    sizes = {one.sha256: one.size for one in (lock.archives if lock else ())}
    files: dict[str, Wanted] = {}
    for one in found.repositories:
        if one.lockable and one.reached and one.sha256 not in idle:
            file = _file(one, tables.get(one.name), sizes)
            before = files.get(file.sha256, file)
            names = dict.fromkeys([*before.name.split(", "), file.name])
            files[file.sha256] = replace(before, name=", ".join(names), urls=tuple(dict.fromkeys((*before.urls, *file.urls))))
    return list(files.values())


def _file(one: Repository, table: SubstituteTable | None, sizes: Mapping[str, int | None]) -> Wanted:
    return substitutes.wanted(one.name, table, one) if table else Wanted(one.name, one.sha256, one.urls, sizes.get(one.sha256))


def _texts(nested: Nested, found: Rules, tables: Mapping[str, SubstituteTable], store: Store) -> dict[str, str]:
    """Return the .bzl files of the archive that a nested call leads into; nothing if that is not here."""
    for one in found.repositories:
        if one.name == nested.archive and one.lockable and one.reached:
            table = tables.get(one.name)
            path = store.path(table.sha256 if table else one.sha256)
            prefix = table.strip_prefix if table and table.strip_prefix is not None else one.strip_prefix
            if path.is_file():
                return texts(path, prefix)
    return {}


def texts(archive: Path, strip_prefix: str) -> dict[str, str]:
    """Return the .bzl files in an archive by their paths below `strip_prefix`; what is no archive has none."""
    beginning = f"{strip_prefix}/" if strip_prefix else ""
    found: dict[str, str] = {}
    for path, content in _members(archive):
        inner = path.removeprefix("./").removeprefix(beginning)
        if path.removeprefix("./").startswith(beginning) and rules.relevant(inner):
            found[inner] = content().decode("utf-8", "replace")
    return found


def _members(archive: Path) -> Iterable[tuple[str, Callable[[], bytes]]]:
    """Yield the plain files of a tar or zip file that are small enough to hold rules, with a way to read each."""
    if zipfile.is_zipfile(archive):
        yield from _zipped(archive)
    elif tarfile.is_tarfile(archive):
        yield from _tarred(archive)


def _zipped(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with zipfile.ZipFile(archive) as packed:
        for one in packed.infolist():
            if one.file_size <= LONGEST_FILE:
                yield one.filename, partial(packed.read, one)


def _tarred(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with tarfile.open(archive) as packed:
        for one in packed:
            if one.isfile() and one.size <= LONGEST_FILE and (stream := packed.extractfile(one)):
                yield one.name, stream.read
