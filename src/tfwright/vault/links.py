"""The link-rot report: of each archive, which sources still have it."""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import SupplyError
from tfwright.progress import Progress
from tfwright.tools import files
from tfwright.tools.http import availability, downloads
from tfwright.vault.origins import URL, Origins, Source, WantedArchive
from tfwright.vault.store import Store

AT_ONCE = 16

SERVES, ANSWERS, OTHER, GONE, SILENT = "serves", "answers", "other bytes", "gone", "silent"
"""The bytes came and are the pinned ones; it says that it has a file, and not another size; it has
another file; it has none, or none came; nobody answered."""
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


def report(
    wanted: Sequence[WantedArchive],
    store: Store,
    origins: Origins,
    hear: Callable[[Progress], None],
    *,
    deep: bool,
) -> list[LinkRow]:
    """Ask every source of every archive, many at once: urls for their head, or `deep` for all."""
    asked = [
        (archive, source)
        for archive in wanted
        for source in _sources(archive, origins)
        if deep or source.way == URL or not source.remote
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = []
        for number, link in enumerate(
            pool.map(lambda pair: _asked(pair[0], pair[1], store, deep=deep), asked), 1
        ):
            answers.append(link)
            hear(Progress(number, len(asked), "sources", link.where))
    links = [(archive, link) for (archive, _), link in zip(asked, answers, strict=True)]
    return [
        LinkRow(
            archive.name,
            archive.sha256,
            store.holds(archive.sha256),
            tuple(link for other, link in links if other is archive),
        )
        for archive in wanted
    ]


def _sources(wanted: WantedArchive, origins: Origins) -> list[Source]:
    return [
        *(Source(URL, url, remote=True, fill=_downloading(url)) for url in origins.urls(wanted)),
        *origins.sources(wanted),
    ]


def _downloading(url: str) -> Callable[[Path], None]:
    def fill(target: Path) -> None:
        downloads.download(url, target, pauses=())

    return fill


def _asked(wanted: WantedArchive, source: Source, store: Store, *, deep: bool) -> Link:
    """Ask one source."""
    if source.way == URL and not deep:
        return _head(wanted, source, store)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "file"
        try:
            source.fill(target)
        except SupplyError as fault:
            return Link(source.way, source.where, GONE, fault.what)
        found = files.sha256(target)
    return (
        Link(source.way, source.where, SERVES)
        if found == wanted.sha256
        else Link(source.way, source.where, OTHER, f"sha256 {found}")
    )


def _head(wanted: WantedArchive, source: Source, store: Store) -> Link:
    """Ask a server without a transfer: the size is all that it can betray."""
    answer = availability.ask(source.where)
    size = store.path(wanted.sha256).stat().st_size if store.holds(wanted.sha256) else wanted.size
    if answer.there and None not in {answer.size, size} and answer.size != size:
        return Link(source.way, source.where, OTHER, f"{answer.size:,} bytes, not {size:,}")
    return Link(
        source.way,
        source.where,
        {True: ANSWERS, False: GONE, None: SILENT}[answer.there],
        answer.why,
    )
