"""The link-rot report: of each archive, which sources still have it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tfwright.errors import SilentServerError, SupplyError
from tfwright.progress import Progress, Report
from tfwright.tools import files
from tfwright.tools.http import client
from tfwright.vault.origins import URL, Origins, Source, WantedArchive
from tfwright.vault.store import Store

AT_ONCE = 16
"""Sources asked at the same time: most of the time goes by waiting for servers that are gone."""

SERVES, ANSWERS, OTHER, GONE, SILENT = ("serves", "answers", "other bytes", "gone", "silent")
"""What became of a source: it sent the pinned bytes; it says that it has a file, and not of another
size; it has another file; it has none, or sent none; no server answered."""
GOOD = (SERVES, ANSWERS)


@dataclass(frozen=True)
class Link:
    """One source of an archive, asked."""

    way: str
    where: str
    state: str
    why: str = ""


@dataclass(frozen=True)
class LinkRow:
    """An archive and what its sources said."""

    name: str
    sha256: str
    kept: bool
    """Whether it is in the vault."""
    links: tuple[Link, ...]

    @property
    def left(self) -> int:
        """How many sources still have it, as far as was asked."""
        return sum(link.state in GOOD for link in self.links)


def ask_sources(
    wanted: Sequence[tuple[WantedArchive, Origins]], store: Store, progress: Report, *, deep: bool
) -> list[LinkRow]:
    """Ask every source of every archive, many at once: urls for their head, or `deep` for all.

    A source that several recipes name for the same archive is asked once.
    """
    archive_sources = [
        (
            archive,
            [
                source
                for source in origins.all_sources(archive)
                # A git mirror or an index can be asked only by a download.
                if deep or source.way == URL or not source.remote
            ],
        )
        for archive, origins in wanted
    ]
    distinct = {
        (archive.sha256, source.way, source.where): (archive, source)
        for archive, sources in archive_sources
        for source in sources
    }
    links = dict[tuple[str, str, str], Link]()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answering = pool.map(
            lambda pair: _ask_source(pair[0], pair[1], store, deep=deep), distinct.values()
        )
        for number, (key, link) in enumerate(zip(distinct, answering, strict=True), 1):
            links[key] = link
            progress(Progress(number, len(distinct), "sources", link.where))
    return [
        LinkRow(
            archive.name,
            archive.sha256,
            store.holds(archive.sha256),
            tuple(links[archive.sha256, source.way, source.where] for source in sources),
        )
        for archive, sources in archive_sources
    ]


def _ask_source(wanted: WantedArchive, source: Source, store: Store, *, deep: bool) -> Link:
    way, where = source.way, source.where
    if way == URL and not deep:
        return _ask_head(wanted, where, store)
    # Not in the vault: the report must not change what a build finds.
    with files.scratch_directory() as folder:
        target = folder / "file"
        try:
            source.fill(target)
        except SupplyError as fault:
            state = SILENT if isinstance(fault, SilentServerError) else GONE
            return Link(way, where, state, fault.what)
        # A server may answer 200 with a page that says the file is gone.
        found = files.sha256(target)
    if found == wanted.sha256:
        return Link(way, where, SERVES)
    return Link(way, where, OTHER, f"sha256 {found}")


def _ask_head(wanted: WantedArchive, url: str, store: Store) -> Link:
    """Ask a server without a download: of the content it can tell only the size."""
    answer = client.ask(url)
    size = store.path(wanted.sha256).stat().st_size if store.holds(wanted.sha256) else wanted.size
    # A server need not state a size, or says 0 as its answer has no body; a lock knows none before
    # the first download.
    if answer.there and answer.size and size and answer.size != size:
        return Link(URL, url, OTHER, f"{answer.size:,} bytes, not {size:,}")
    # None: a time-out, a refused connection, or a server that is busy or under repair.
    state = {True: ANSWERS, False: GONE, None: SILENT}[answer.there]
    return Link(URL, url, state, answer.why)
