"""What a recipe's tree downloads, and how it gets into the vault.

An archive may hold rules that declare more: they are read once the archive is there.
"""

import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from tfwright.documents.recipe import SubstituteTable
from tfwright.errors import RecipeError, SupplyError, TfwrightError
from tfwright.rules import repositories
from tfwright.rules.model import Linked, Load, Nested, Repository, Rules
from tfwright.rules.readings import Readings
from tfwright.rules.starlark.syntax import LONGEST_FILE
from tfwright.tools import unpacking
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.repository import GitRepository
from tfwright.vault import substitutes, unpinned
from tfwright.vault.lock import Lock
from tfwright.vault.origins import Missing, Supply, WantedArchive, listed
from tfwright.vault.store import Store

MOST_RULES = 64 * 2**20
"""Characters of rules that are read of one archive; TensorFlow's have less than five million."""


@dataclass(frozen=True)
class Suppliers:
    """What brings files and commits to this host."""

    obtain: Callable[[Sequence[WantedArchive]], Supply]
    clone: Callable[[Clone], Path]
    """Brings a commit that a rule clones and returns its repository, or raises SupplyError or
    RecipeError."""
    readings: Readings = field(default_factory=lambda: Readings(None))
    """The rules that earlier runs read."""


@dataclass(frozen=True)
class Reached:
    """What the rules of a tree lead to, and what of it could be obtained."""

    rules: Rules
    supply: Supply
    asked: Mapping[Clone, Path | TfwrightError]
    """The commits that rules clone: the repository that holds each, or why none does."""
    unread: tuple[Load, ...] = ()
    """Loads of archives and commits that are here, and have no such file."""

    @property
    def clones(self) -> dict[Clone, Path]:
        """The commits that are here, and their repositories."""
        answers = self.asked.items()
        return {clone: answer for clone, answer in answers if isinstance(answer, Path)}

    @property
    def refused(self) -> dict[Clone, TfwrightError]:
        """The commits that are not, and why."""
        return {
            clone: fault for clone, fault in self.asked.items() if isinstance(fault, TfwrightError)
        }

    def needed_and_missing(self, lock: Lock | None) -> list[Missing]:
        """Return the missing archives that the build is known to need.

        Those are the ones that Bazel was seen to want when the lock was written; the ones that hold
        a file which WORKSPACE loads, without which Bazel reads no other rule; and every substitute.
        """
        archives, replaced = (lock.archives, lock.substitutes) if lock else ((), ())
        # The lock speaks of the archives that the tree pins, the supply of what replaces them.
        used = {substitute.sha256: substitute.used for substitute in replaced}
        pinned = [archive.sha256 for archive in archives if archive.needed]
        needed = {used.get(sha256, sha256) for sha256 in pinned}
        lacking = []
        for missing in self.supply.missing:
            wanted = missing.wanted
            loaded = not self._loaded.isdisjoint(wanted.name.split(", "))
            if wanted.sha256 in needed or wanted.substitute or loaded:
                lacking.append(missing)
        return lacking

    def needed_and_refused(self, lock: Lock | None) -> dict[Clone, TfwrightError]:
        """Return the commits that could not be obtained and that the build is known to need."""
        needed = {clone.clone for clone in (lock.clones if lock else ()) if clone.needed}
        loaded = {
            repository.clone
            for repository in self.rules.repositories
            if repository.name in self._loaded
        }
        return {
            clone: fault
            for clone, fault in self.refused.items()
            if clone in needed or clone in loaded
        }

    def needed_and_unpinned(self, lock: Lock | None) -> list[Repository]:
        """Return the declarations without a checksum that the build is known to need."""
        entries = lock.unlockable if lock else ()
        needed = {(entry.name, entry.file, entry.line) for entry in entries if entry.needed}
        # Where a name is declared twice, the pinned one may be the one that Bazel takes.
        pinned = {repository.name for repository in self.rules.repositories if repository.pinned}
        loaded = self._loaded - pinned
        return [
            repository
            for repository in self.rules.repositories
            if not repository.pinned
            and (
                (repository.name, repository.file, repository.line) in needed
                or (repository.reached and repository.name in loaded)
            )
        ]

    @property
    def _loaded(self) -> set[str]:
        """The repositories that Bazel reads files of before it makes any."""
        return _leading(self.rules)

    def notes(self, unmet: Collection[str] = ()) -> Iterator[str]:
        """Say it in a few sentences; nothing if nothing was wanted.

        `unmet` are the addresses for which the last build stopped.
        """
        yield from self.supply.notes(unmet)
        if self.clones:
            remotes = ", ".join(clone.remote for clone in self.clones)
            yield f"The commits that rules clone are on this host: {remotes}"
        for clone, fault in self.refused.items():
            yield (
                f"{clone.commit[:12]} of {clone.remote} was not found, "
                f"and Bazel will say if it wants it: {fault.what}"
            )


def unpinned_downloads(rules: Rules) -> list[Repository]:
    """Return what rules download without a checksum."""
    return [
        entry
        for entry in rules.repositories
        # A container's image has no url, and no wheel is made of one.
        if any("://" in url for url in entry.urls) and not entry.pinned
    ]


def left_to_bazel(rules: Rules) -> Iterator[str]:
    """Say what of the rules fetch cannot bring, so that a build needs a network for it."""
    names = [
        f"{entry.name or entry.rule} ({unpinned.place(entry)})"
        for entry in unpinned_downloads(rules)
    ]
    if names:
        yield f"No checksum is known, so that Bazel downloads it by itself: {listed(names)}"
    for fault in rules.unreadable[:1]:
        yield (
            f"{fault.file}:{fault.line} {fault.why}; Bazel downloads by itself what "
            f"{'it declares' if len(rules.unreadable) == 1 else 'such files declare'}"
        )


def bring(
    found: Rules,
    tables: Mapping[str, SubstituteTable],
    lock: Lock | None,
    store: Store,
    suppliers: Suppliers,
) -> Reached:
    """Obtain what the rules of a tree name, then what that declares, until nothing is new.

    What the lock knows that Bazel does not want is left out, unless it declares more.
    """
    reached = Reached(found, Supply({}, ()), {})
    followed = dict[Nested | Load, Rules]()
    while True:
        # Each round may bring archives whose rules declare more, as rules_closure does.
        archives = wanted(reached.rules, tables, lock)
        commits = clones(reached.rules, lock)
        reached = _more(reached, archives, commits, suppliers)
        more = {}
        for way in reached.rules.ways:
            # Each round has fewer of them to read.
            if way in followed:
                continue
            if behind := _followed(way, reached, tables, store, suppliers.readings):
                more[way] = behind
        if not more:
            return replace(reached, unread=_unread(reached, followed, tables))
        followed.update(more)
        reached = replace(reached, rules=repositories.joined(found, followed))


def _unread(
    reached: Reached, followed: Collection[Nested | Load], tables: Mapping[str, SubstituteTable]
) -> tuple[Load, ...]:
    """Return the loads that lead into an archive or commit that is here, and to no file of it."""
    here = set()
    for repository in reached.rules.repositories:
        table = tables.get(repository.name)
        sha256 = table.sha256 if table else repository.sha256
        if sha256 in reached.supply.ways or repository.clone in reached.clones:
            here.add(repository.name)
    return tuple(
        load for load in reached.rules.loads if load not in followed and load.archive in here
    )


def _more(
    reached: Reached,
    archives: Sequence[WantedArchive],
    commits: Sequence[Clone],
    suppliers: Suppliers,
) -> Reached:
    """Obtain what was not asked for yet."""
    before = {*reached.supply.ways, *(missing.wanted.sha256 for missing in reached.supply.missing)}
    brought = suppliers.obtain([archive for archive in archives if archive.sha256 not in before])
    ways = {**reached.supply.ways, **brought.ways}
    supply = Supply(ways, (*reached.supply.missing, *brought.missing))
    asked = {
        commit: _cloned(commit, suppliers) for commit in commits if commit not in reached.asked
    }
    return Reached(reached.rules, supply, {**reached.asked, **asked})


def _cloned(wanted: Clone, suppliers: Suppliers) -> Path | TfwrightError:
    try:
        return suppliers.clone(wanted)
    except (SupplyError, RecipeError) as fault:
        return fault


def wanted(
    found: Rules, tables: Mapping[str, SubstituteTable], lock: Lock | None
) -> list[WantedArchive]:
    """Return the files that WORKSPACE leads to, each once, or their substitutes."""
    # Bazel may not want an archive, and still WORKSPACE loads a file of it.
    leading = _leading(found)
    locked = lock.archives if lock else ()
    idle = {
        archive.sha256
        for archive in locked
        if archive.needed is False and leading.isdisjoint(archive.names)
    }
    needed = {archive.sha256 for archive in locked if archive.needed}
    sizes = {archive.sha256: archive.size for archive in locked}
    files: dict[str, WantedArchive] = {}
    for repository in found.repositories:
        # The lock knows of archives that Bazel wants although reading did not find the
        # way to them.
        sought = repository.reached or repository.sha256 in needed
        if not (repository.lockable and sought) or repository.sha256 in idle:
            continue
        file = _file(repository, tables.get(repository.name), sizes)
        before = files.get(file.sha256, file)
        files[file.sha256] = _together(before, file)
    return list(files.values())


def _together(before: WantedArchive, file: WantedArchive) -> WantedArchive:
    """Return one file from which several repositories are made: it is obtained once, from all urls.

    The two differ in names and urls only.
    """
    names = dict.fromkeys([*before.name.split(", "), file.name])
    urls = dict.fromkeys((*before.urls, *file.urls))
    return replace(before, name=", ".join(names), urls=tuple(urls))


def clones(found: Rules, lock: Lock | None) -> list[Clone]:
    """Return the commits that rules clone to which WORKSPACE leads, each once."""
    leading = _leading(found)
    idle = {
        cloned.clone
        for cloned in (lock.clones if lock else ())
        if cloned.needed is False and leading.isdisjoint(cloned.names)
    }
    pinned = [repository.clone for repository in found.repositories if repository.reached]
    return list(dict.fromkeys(clone for clone in pinned if clone and clone not in idle))


def _leading(found: Rules) -> set[str]:
    """Return the repositories without which Bazel cannot read all rules."""
    return {way.archive for way in found.ways}


def _file(
    repository: Repository, table: SubstituteTable | None, sizes: Mapping[str, int | None]
) -> WantedArchive:
    return (
        substitutes.wanted(repository.name, table, repository)
        if table
        else WantedArchive(
            repository.name, repository.sha256, repository.urls, sizes.get(repository.sha256)
        )
    )


def _followed(
    way: Nested | Load,
    reached: Reached,
    tables: Mapping[str, SubstituteTable],
    store: Store,
    before: Readings,
) -> Rules | None:
    """Return what is behind a nested call or a load.

    None if its repository is not here, or has no rules.
    """
    links = (link for link in reached.rules.linked if link.name == way.archive)
    link = next(links, Linked(way.archive, way.archive, ""))
    for repository in reached.rules.repositories:
        if repository.name != link.archive or not repository.reached:
            continue
        table = tables.get(repository.name)
        if content := _content(repository, table, reached, store):
            where, read = content
            files = partial(_below, link.folder, read)
            return _read(way, [*where, link.folder], files, before)
    return None


def _content(
    repository: Repository, table: SubstituteTable | None, reached: Reached, store: Store
) -> tuple[list[str], Callable[[], dict[str, str]]] | None:
    """Return what decides a repository's rules, and a way to read them; None if it is not here."""
    sha256 = table.sha256 if table else repository.sha256
    path = store.path(sha256)
    if repository.lockable and path.is_file():
        # A substitute may be laid out otherwise than the archive that the rule expects.
        own = table.strip_prefix if table else None
        prefix = repository.strip_prefix if own is None else own
        return [sha256, prefix], partial(texts, path, prefix)
    clone = repository.clone
    if clone and clone in reached.clones:
        place = reached.clones[clone]
        commit = clone.commit
        return [commit], partial(GitRepository(place).texts, commit, repositories.relevant)
    return None


def _below(folder: str, read: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Return the files of a folder by their paths in it; all for an empty folder."""
    beginning = f"{folder}/" if folder else ""
    return {
        path.removeprefix(beginning): text
        for path, text in read().items()
        if path.startswith(beginning)
    }


def _read(
    way: Nested | Load, where: Sequence[str], files: Callable[[], dict[str, str]], before: Readings
) -> Rules | None:
    """Read the files that a call or a load leads into, unless an earlier run read the same."""

    def follow() -> Rules | None:
        found = files()
        if isinstance(way, Load):
            return repositories.behind(way, found)
        return repositories.follow(way, found) if found else None

    # The digest of an archive decides all of its files, so that it is not even opened again.
    return before.remembered([*where, asdict(way)], follow)


def texts(archive: Path, strip_prefix: str) -> dict[str, str]:
    """Return the .bzl files in an archive by their paths below `strip_prefix`.

    A file that is not an archive has none, nor has one that cannot be read: Bazel says what is
    wrong with it.
    """
    with suppress(SupplyError), unpacking.reading(archive.name):
        return _texts(archive, strip_prefix)
    return {}


def _texts(archive: Path, strip_prefix: str) -> dict[str, str]:
    # Bazel strips whole directories: "a" must not match "ab/".
    beginning = f"{strip_prefix}/" if strip_prefix else ""
    found: dict[str, str] = {}
    left = MOST_RULES
    for path, content in _members(archive):
        inner = path.removeprefix("./").removeprefix(beginning)
        if path.removeprefix("./").startswith(beginning) and repositories.relevant(inner):
            found[inner] = content().decode("utf-8", "replace")
            left -= len(found[inner])
        # A small archive may unpack to more than the memory.
        if left < 0:
            raise ValueError("it has too many rules")
    return found


def _members(archive: Path) -> Iterable[tuple[str, Callable[[], bytes]]]:
    """Yield the files of a tar or zip file that may hold rules, with a way to read each."""
    # The content decides: the vault keeps every file under its checksum, without an ending.
    if zipfile.is_zipfile(archive):
        yield from _zipped(archive)
    else:
        yield from _tarred(archive)


def _zipped(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            # A file of rules is small: larger members are not even unpacked.
            if entry.file_size <= LONGEST_FILE:
                yield entry.filename, partial(packed.read, entry)


def _tarred(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with unpacking.open_tar(archive) as packed:
        for entry in unpacking.members(packed):
            if (
                entry.isfile()
                and entry.size <= LONGEST_FILE
                and (stream := packed.extractfile(entry))
            ):
                yield entry.name, stream.read
