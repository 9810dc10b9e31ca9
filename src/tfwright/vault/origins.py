"""The sources of an archive, in order; each is believed by the archive's checksum only."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable, FileSourceTable
from tfwright.errors import SilentServerError, SupplyError
from tfwright.printable import listed
from tfwright.progress import Progress, Report
from tfwright.tools import files, registry, trees
from tfwright.tools.git import archive, transport
from tfwright.tools.git.archive import Form, Pack, PackedCommit, PartialMirrorError
from tfwright.tools.git.mirror import Origin
from tfwright.tools.http import downloads
from tfwright.tools.http.downloads import WantedFile
from tfwright.tools.python import sdist as sdists
from tfwright.tools.python.sdist import Sdist
from tfwright.tools.registry import RegistryPackage
from tfwright.vault.store import Store

VAULT, URL, MIRROR, GIT, PACKED, INDEX, RECIPE, DROP = (
    "the vault",
    "its urls",
    "a mirror of its urls",
    "a git mirror",
    "a packed commit",
    "the package index",
    "a source of the recipe",
    "the drop folder",
)
"""The kinds of sources, as people read them."""
MOST_MISSES = 2
"""Times that a server may be out of reach, with no answer in between, before it is left alone."""
MOST_ABSENT = 12
"""Files that a mirror may lack of a commit that is packed all the same."""
SHOWN = 12
"""Archives that a note names before it only counts."""


@dataclass(frozen=True)
class WantedArchive(WantedFile):
    """A file that a build needs.

    Its name is that of the external repositories that are made from it.
    """

    pack: Pack | None = None
    """For a substitute that no server has: the commit that it is made from."""
    substitute: bool = False
    """Whether the recipe names it to replace another archive."""
    of_tree: bool = True
    """Whether the tree itself declares it: a recipe can replace nothing else."""


@dataclass(frozen=True)
class Source:
    """One place that may have a file."""

    way: str
    """The kind of source, one of those above."""
    where: str
    """Url, repository, package or folder."""
    remote: bool
    """Whether asking it needs the network."""
    fill: Callable[[Path], object]
    """Writes what the place has, or raises SupplyError; nothing has verified that yet."""
    server: str = ""
    """Who is asked; other files may have sources there too. Empty for this host."""


@dataclass(frozen=True)
class Attempt:
    """A source that did not give a file."""

    source: str
    why: str
    packed: PackedCommit | None = None
    """The commit of which a mirror gave other bytes, or not all: it can be a substitute."""


@dataclass
class Servers:
    """What one run learned about the servers of git repositories and registries.

    Each that is out of reach costs seconds or minutes, and many files may have a source there.
    """

    _misses: Counter[str] = field(default_factory=Counter)
    _gone: dict[str, str] = field(default_factory=dict)

    def fill(self, source: Source, target: Path) -> object:
        """Let a source write its file; raises SupplyError, at once if its server is gone."""
        server = source.server
        if server in self._gone:
            raise SupplyError(f"not asked again: {self._gone[server]}", remedy="Check the network.")
        try:
            made = source.fill(target)
        except SilentServerError as fault:
            self._misses[server] += 1
            if server and self._misses[server] >= MOST_MISSES:
                self._gone[server] = fault.what
            raise
        except SupplyError:
            # It answered, although not with this file.
            del self._misses[server]
            raise
        del self._misses[server]
        return made


def substitute_head(name: str) -> str:
    """Return the line that begins the table of a substitute, for a person to copy."""
    # JSON's texts are TOML's as well.
    key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
    return f"[fetch.substitutes.{key}]"


@dataclass(frozen=True)
class Missing:
    """A file that no source gave."""

    wanted: WantedArchive
    attempts: tuple[Attempt, ...]

    @property
    def main_attempt(self) -> Attempt | None:
        """The attempt that says most: of all, the drop folder says no more than that it failed.

        The sources go from upstream's servers to what the user put there.
        """
        others = [one for one in self.attempts if not one.source.startswith(DROP)]
        return next(reversed(others or self.attempts), None)

    def table_lines(self) -> list[str]:
        """Return the lines of a substitute of what a mirror has; none if there is no such."""
        found = next((attempt.packed for attempt in self.attempts if attempt.packed), None)
        # A mirror without most files is another repository, or has no files at all.
        if found is None or len(found.absent) > MOST_ABSENT:
            return []
        if not self.wanted.of_tree or self.wanted.substitute:
            return []
        reason = "The archive was not found; this is its tag or commit in git"
        if found.absent:
            reason = f"The git mirrors at hand lack {len(found.absent)} of its files"
        return [
            substitute_head(self.wanted.name.partition(",")[0]),
            f'reason = "{reason}"',
            f'replaces = "{self.wanted.sha256}"',
            f'git = "{found.repository}"',
            f'commit = "{found.commit}"',
            *([f"exclude = {json.dumps(found.absent)}"] if found.absent else ()),
        ]


@dataclass(frozen=True)
class Supply:
    """What became of the files that were wanted."""

    ways: Mapping[str, str]
    """Checksum of each file that is in the vault now = the kind of source that gave it."""
    missing: tuple[Missing, ...]

    def __add__(self, later: "Supply") -> "Supply":
        return Supply({**self.ways, **later.ways}, (*self.missing, *later.missing))

    def notes(self) -> Iterator[str]:
        """Say it in a few sentences; nothing if nothing was wanted."""
        if self.ways:
            counts = Counter(self.ways.values()).items()
            summary = ", ".join(f"{files} from {way}" for way, files in counts)
            yield f"Archives: {summary}; all these are in the vault now"
        if self.missing:
            names = listed([*dict.fromkeys(one.wanted.name for one in self.missing)], SHOWN)
            yield (
                f"Archives that were not found: {len(self.missing)} ({names}); Bazel will say if "
                "it wants one"
            )
        # Of one file why it was not found: a proxy or name server fails for most alike.
        for name, last in [
            (one.wanted.name, one.main_attempt) for one in self.missing if one.main_attempt
        ][:1]:
            yield (
                f"The last source of {name} was {last.source}: {last.why}; "
                "'invoke vault --links' with the same --recipe asks every source"
            )
        if lines := [line for missing in self.missing for line in missing.table_lines()]:
            yield (
                "If the build stops for one of these: a git mirror has its commit. Add the table "
                "to the recipe, and run 'invoke pin':\n" + "\n".join(lines)
            )


@dataclass(frozen=True)
class Origins:
    """Where this host can look."""

    host_file: HostFile
    repositories: Path
    """Where git mirrors that are not on this host are copied to."""
    offline: bool = False
    fetch: FetchTable = field(default_factory=FetchTable)
    """The recipe's own sources."""
    servers: Servers = field(default_factory=Servers, compare=False)

    def urls(self, wanted: WantedArchive) -> list[str]:
        """Return the urls of a file, then those that the host file puts in their place.

        None offline.
        """
        if self.offline:
            return []
        # The original addresses first: a mirror may lag behind, or be down. Of each mirror, since
        # several may hold the file.
        mirrored = (
            instead + url.removeprefix(beginning)
            for url in wanted.urls
            for beginning, instead in self.host_file.downloads.items()
            if url.startswith(beginning)
        )
        return list(dict.fromkeys((*wanted.urls, *mirrored)))

    def other_sources(self, wanted: WantedArchive) -> list[Source]:
        """Return the other places that may have a file, in order.

        Offline, only those on this host.
        """
        every = self._every_other_source(wanted)
        return [source for source in every if not (self.offline and source.remote)]

    def all_sources(self, wanted: WantedArchive) -> list[Source]:
        """Return all places that may have a file, its urls first, each of which is asked once."""
        return [
            *(
                Source(URL, url, remote=True, fill=partial(downloads.download, url, pauses=()))
                for url in self.urls(wanted)
            ),
            *self.other_sources(wanted),
        ]

    def _every_other_source(self, wanted: WantedArchive) -> Iterator[Source]:
        """Yield them from what is nearest to the original bytes to what somebody put there."""
        if wanted.pack:
            named = self.host_file.mirror_of(wanted.pack.repository) or wanted.pack.repository
            yield self._repository_source(
                PACKED, named, wanted.pack.ref, partial(archive.write_archive, wanted.pack)
            )
        for forged in _forge_packs(wanted):
            if mirror := self.host_file.mirror_of(forged.repository):
                yield self._repository_source(
                    GIT, mirror, forged.ref, partial(archive.write_archive, forged)
                )

        # The mirror and the index are two urls of one package: it is asked for once.
        for sdist in dict.fromkeys(filter(None, map(Sdist.of, wanted.urls))):
            yield Source(
                INDEX,
                f"{sdist.name} {sdist.version}",
                remote=True,
                fill=partial(sdists.download, sdist, wanted.sha256),
                server="pypi",
            )

        for table in (each for each in self.fetch.sources if each.sha256 == wanted.sha256):
            # Packages carry archives of others byte for byte: npm's sqlite3 has
            # SQLite's own tarball.
            if table.package and table.member:
                package = RegistryPackage.of(table.package)
                fill = partial(registry.extract, package, table.member)
                yield Source(RECIPE, str(package), remote=True, fill=fill, server=package.kind)
            elif table.git:
                named = self.host_file.mirror_of(table.git) or table.git
                for ref, make in _git_writers(table.git, table, wanted):
                    yield self._repository_source(RECIPE, named, ref, make)

        if folder := self.host_file.drop:
            yield Source(
                DROP,
                str(folder),
                remote=False,
                fill=partial(self._copy_dropped, folder, wanted.sha256),
            )

    def _repository_source(
        self, way: str, named: str, ref: str, make: Callable[[Path, Path], object]
    ) -> Source:
        """Return a repository as a source.

        One that is not on this host is copied first, as far as it is needed.
        """
        origin = Origin.of(named)
        return Source(
            way,
            named,
            origin.local is None,
            lambda target: make(archive.repository_with(ref, origin, self.repositories), target),
            server="" if origin.local else transport.host_of(origin.address)[0],
        )

    def _copy_dropped(self, folder: Path, sha256: str, target: Path) -> None:
        """Copy a dropped file: its owner may change it, the vault's must stay."""
        if not folder.is_dir():
            raise SupplyError(
                "it is not a directory", remedy="Make it, or correct 'drop' in the host file."
            )
        # The name of a dropped file says nothing: browsers and mirrors change it.
        if sha256 not in self._dropped:
            raise SupplyError(
                "no file there has this checksum", remedy="Put it there; its name does not matter."
            )
        try:
            shutil.copyfile(self._dropped[sha256], target)
        except FileNotFoundError as fault:
            raise SupplyError(
                f"{self._dropped[sha256]} was removed meanwhile", remedy="Put it there again."
            ) from fault

    @cached_property
    def _dropped(self) -> Mapping[str, Path]:
        """The files of the drop folder by checksum, hashed when the first one is looked for."""
        found = {}
        for path, _ in dropped_files(self.host_file):
            # Somebody may be copying files there under names that do not last.
            with suppress(FileNotFoundError):
                found[files.sha256(path)] = path
        return found


def dropped_files(host_file: HostFile) -> Iterable[tuple[Path, os.stat_result]]:
    """Return the files of the drop folder, as far as there is one."""
    return trees.files_below(host_file.drop, follow=True) if host_file.drop else ()


def _forge_packs(wanted: WantedArchive) -> list[Pack]:
    """Return the archives of a forge that the urls of a file name, each once."""
    found = (Pack.of(url) for url in wanted.urls)
    return list(dict.fromkeys(forged for forged in found if forged))


def _git_writers(
    url: str, table: FileSourceTable, wanted: WantedArchive
) -> Iterator[tuple[str, Callable[[Path, Path], object]]]:
    """Yield how a file is made of a repository that the recipe names: ref, and writer."""
    if table.blob:
        # A file that somebody committed whole: git has its bytes, whatever made it.
        yield table.blob, partial(archive.write_blob, table.blob)
    elif table.ref and table.prefix:
        forms: Iterable[Form] = dict.fromkeys(
            form for form in map(archive.form_of, wanted.urls) if form
        )
        for form in forms or ("tar.gz",):
            # Nothing says in which time zone the forge wrote a zip.
            for zone in archive.ZONES if form == "zip" else archive.ZONES[:1]:
                made = Pack(url, table.ref, f"{table.prefix}/", form=form, zone=zone)
                yield table.ref, partial(archive.write_archive, made)
    else:
        if wanted.pack:
            yield wanted.pack.ref, partial(archive.write_archive, wanted.pack)
        for forged in _forge_packs(wanted):
            yield forged.ref, partial(archive.write_archive, forged)


def obtain(
    wanted: Sequence[WantedArchive], store: Store, origins: Origins, report: Report
) -> Supply:
    """Bring what can be found into the store: all with urls at once, then the rest in turn.

    What the store holds is hashed, and a file that was changed there is fetched again.
    """
    ways = {file.sha256: VAULT for file in wanted if store.verify(file.sha256)}
    asked = {file.sha256: file for file in wanted if file.sha256 not in ways}
    attempts: dict[str, list[Attempt]] = {sha256: [] for sha256 in asked}
    # Servers first and all at once: most archives come from there, and waiting is most of the time.
    # With another source left, a slow server is not waited for.
    requests = [
        replace(file, urls=tuple(urls), alternatives=bool(origins.other_sources(file)))
        for file in asked.values()
        if (urls := origins.urls(file))
    ]
    for outcome in downloads.fetch(requests, store.path, report=report) if requests else ():
        sha256 = outcome.wanted.sha256
        attempts[sha256] += [Attempt(failure.url, failure.why) for failure in outcome.failures]
        if outcome.obtained:
            # The host file's mirrors are asked in the same download, after the urls themselves.
            own = outcome.url is None or outcome.url in asked[sha256].urls
            ways[sha256] = URL if own else MIRROR
    rest = [file for file in asked.values() if file.sha256 not in ways]
    # One after the other: making an archive from git is work for this host, not waiting.
    for number, file in enumerate(rest):
        report(Progress(number, len(rest), "archives", file.name))
        if way := _try_sources(file, origins, store, attempts[file.sha256]):
            ways[file.sha256] = way
    missing = [file for file in rest if file.sha256 not in ways]
    for file in missing:
        # `invoke vault` would list the empty directory as a leftover.
        store.remove_empty(file.sha256)
    return Supply(ways, tuple(Missing(file, tuple(attempts[file.sha256])) for file in missing))


def _try_sources(
    wanted: WantedArchive, origins: Origins, store: Store, attempts: list[Attempt]
) -> str:
    """Ask one source after the other.

    Return the kind of the first that has the file, and note the others.
    """
    for source in origins.other_sources(wanted):
        made: object = None
        try:
            # The store verifies the checksum, so a wrong file counts as a failed attempt.
            with store.admitting(wanted.sha256, source.where) as target:
                made = origins.servers.fill(source, target)
        except SupplyError as fault:
            found = fault.found if isinstance(fault, PartialMirrorError) else made
            packed = found if isinstance(found, PackedCommit) else None
            attempts.append(Attempt(f"{source.way}, {source.where}", fault.what, packed))
        else:
            return source.way
    return ""
