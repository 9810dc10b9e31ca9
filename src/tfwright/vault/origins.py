"""The ways to obtain an archive, in order; none is believed but by the archive's digest."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.errors import Evidence, SupplyError, TfwrightError
from tfwright.progress import Progress
from tfwright.tools import files
from tfwright.tools.git import archive
from tfwright.tools.git.archive import Pack, SourceArchive
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin
from tfwright.tools.http import downloads
from tfwright.tools.http.transfer import DownloadOutcome, WantedFile
from tfwright.tools.python import sdist
from tfwright.tools.python.sdist import Sdist
from tfwright.vault.store import Store

VAULT, URL, MIRROR, GIT, PACKED, INDEX, DROP = (
    "the vault",
    "its urls",
    "a mirror of its urls",
    "a git mirror",
    "a packed commit",
    "the package index",
    "the drop folder",
)
"""The ways, as people read them."""
SHOWN = 12
"""Archives that a note names before it only counts."""


@dataclass(frozen=True)
class WantedArchive(WantedFile):
    """A file that is to be had, from wherever it is; its name is that of the external repositories that are made from it."""

    pack: Pack | None = None
    """For a substitute that no server has: the commit that it is made from."""


@dataclass(frozen=True)
class Source:
    """One place that may have a file."""

    way: str
    where: str
    """Url, repository or folder."""
    remote: bool
    """Whether asking it needs the network."""
    fill: Callable[[Path], None]
    """Writes what the place has, or raises SupplyError; nothing has verified that yet."""


@dataclass(frozen=True)
class Attempt:
    """A source that did not give a file."""

    source: str
    why: str


@dataclass(frozen=True)
class Missing:
    """A file that no source gave."""

    wanted: WantedArchive
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Supply:
    """What became of the files that were wanted."""

    ways: Mapping[str, str]
    """Digest of each file that is in the vault now = the way it came."""
    missing: tuple[Missing, ...]

    def told(self) -> Iterator[str]:
        """Say it in a sentence or two; nothing if nothing was wanted."""
        if self.ways:
            counts = Counter(self.ways.values())
            yield f"{len(self.ways)} archives are in the vault now: " + ", ".join(
                f"{count} from {way}" for way, count in counts.items()
            )
        if self.missing:
            names = list(dict.fromkeys(one.wanted.name.partition(",")[0] for one in self.missing))
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            yield f"{len(self.missing)} archives cannot be had, and Bazel will say if it wants one: {', '.join(names[:SHOWN])}{more}"


@dataclass(frozen=True)
class Origins:
    """Where this host can look."""

    host_file: HostFile
    repositories: Path
    """Where git mirrors that are not on this host are copied to."""
    offline: bool = False

    def urls(self, wanted: WantedArchive) -> list[str]:
        """Return the urls of a file, then those that the host file puts in their place; none offline."""
        pairs = [
            (beginning, instead, url)
            for url in wanted.urls
            for beginning, instead in self.host_file.downloads.items()
            if url.startswith(beginning)
        ]
        mirrored = [instead + url.removeprefix(beginning) for beginning, instead, url in pairs]
        return [] if self.offline else list(dict.fromkeys([*wanted.urls, *mirrored]))

    def sources(self, wanted: WantedArchive) -> list[Source]:
        """Return where else a file may be had, in order; offline, only what is on this host."""
        ways = (self._repositories, self._index, self._drop)
        return [one for way in ways for one in way(wanted) if not (self.offline and one.remote)]

    def _repositories(self, wanted: WantedArchive) -> Iterator[Source]:
        """Yield the git repositories that the file can be made from."""
        if wanted.pack:
            named = self.host_file.mirror_of(wanted.pack.repository) or wanted.pack.repository
            yield self._made(PACKED, named, wanted.pack.ref, partial(archive.pack, wanted.pack))
        for one in dict.fromkeys(found for url in wanted.urls if (found := SourceArchive.of(url))):
            if mirror := self.host_file.mirror_of(one.repository):
                yield self._made(GIT, mirror, one.ref, partial(archive.regenerate, one))

    def _made(self, way: str, named: str, ref: str, make: Callable[[Path, Path], None]) -> Source:
        """Return a repository as a source; one that is not on this host is copied first, as far as it is needed."""
        origin = Origin.of(named)
        return Source(
            way,
            named,
            origin.local is None,
            lambda target: make(archive.holding(ref, origin, self.repositories), target),
        )

    def _index(self, wanted: WantedArchive) -> Iterator[Source]:
        for one in dict.fromkeys(found for url in wanted.urls if (found := Sdist.of(url))):
            yield Source(
                INDEX,
                f"{one.name} {one.version}",
                remote=True,
                fill=partial(sdist.download, one, wanted.sha256),
            )

    def _drop(self, wanted: WantedArchive) -> Iterator[Source]:
        if self.host_file.drop:
            yield Source(
                DROP,
                str(self.host_file.drop),
                remote=False,
                fill=partial(self._take, wanted.sha256),
            )

    def _take(self, sha256: str, target: Path) -> None:
        """Copy a dropped file: its owner may change it, the vault's must stay."""
        if sha256 not in self._dropped:
            raise SupplyError(
                "no file there has this digest", remedy="Put it there; its name does not matter."
            )
        shutil.copyfile(self._dropped[sha256], target)

    @cached_property
    def _dropped(self) -> Mapping[str, Path]:
        """The files of the drop folder by digest, hashed when the first one is looked for."""
        folder = self.host_file.drop
        return (
            {files.sha256(path): path for path in folder.rglob("*") if path.is_file()}
            if folder
            else {}
        )


def obtain(
    wanted: Sequence[WantedArchive],
    store: Store,
    origins: Origins,
    report: Callable[[Progress], None],
) -> Supply:
    """Bring what can be had into the store: all that have urls at once, then the rest one after the other.

    What the store holds is hashed, and what was changed there is brought anew.
    """
    ways = {one.sha256: VAULT for one in wanted if store.sound(one.sha256)}
    asked = [one for one in wanted if one.sha256 not in ways]
    attempts: dict[str, list[Attempt]] = {}
    for one, outcome in _downloaded(asked, store, origins, report):
        attempts[one.sha256] = [Attempt(failure.url, failure.why) for failure in outcome.failures]
        if outcome.obtained:
            ways[one.sha256] = MIRROR if outcome.url and outcome.url not in one.urls else URL
    rest = [one for one in asked if one.sha256 not in ways]
    for number, one in enumerate(rest):
        report(Progress(number, len(rest), "archives", one.name))
        if way := _first(one, origins.sources(one), store, attempts.setdefault(one.sha256, [])):
            ways[one.sha256] = way
    return Supply(
        ways,
        tuple(Missing(one, tuple(attempts[one.sha256])) for one in rest if one.sha256 not in ways),
    )


def _downloaded(
    asked: Sequence[WantedArchive],
    store: Store,
    origins: Origins,
    report: Callable[[Progress], None],
) -> Iterator[tuple[WantedArchive, DownloadOutcome]]:
    """Download what has urls; yield what became of each."""
    served = [(one, tuple(urls)) for one in asked if (urls := origins.urls(one))]
    if served:
        requests = [replace(one, urls=urls) for one, urls in served]
        yield from zip(
            (one for one, _ in served), downloads.fetch(requests, store, report=report), strict=True
        )


def _first(
    wanted: WantedArchive, sources: Iterable[Source], store: Store, attempts: list[Attempt]
) -> str:
    """Ask one source after the other; return the way of the first that has the file, and note the others."""
    for source in sources:
        try:
            with store.admitting(wanted.sha256, source.where) as target:
                source.fill(target)
        except SupplyError as fault:
            attempts.append(Attempt(f"{source.way}, {source.where}", fault.what))
        else:
            return source.way
    return ""


def unobtainable(
    missing: Sequence[Missing], refused: Mapping[Clone, TfwrightError], blocked: str
) -> SupplyError:
    """Return the error that names all files and commits which are needed and cannot be had."""
    names = ", ".join([*(one.wanted.name for one in missing), *(one.remote for one in refused)])
    return SupplyError(
        f"{len(missing) + len(refused)} of the archives that {blocked} needs cannot be had: {names}",
        remedy="Put the files into the drop folder that the host file names, or name a mirror there, or let the recipe stand in others: [fetch.substitutes].",
        evidence=Evidence(
            lines=[
                *(line for one in missing for line in _told(one)),
                *(f"{one.remote}: {fault.what}" for one, fault in refused.items()),
            ]
        ),
    )


def _told(missing: Missing) -> Iterator[str]:
    wanted = missing.wanted
    size = f", {wanted.size:,} bytes" if wanted.size is not None else ""
    yield f"{wanted.name}: sha256 {wanted.sha256}{size}"
    tried = missing.attempts or tuple(
        Attempt(url, "not asked, since this is offline") for url in wanted.urls
    )
    yield from (f"    {one.source}: {one.why}" for one in tried)
