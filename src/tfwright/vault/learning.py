"""Checksums that a recipe leaves open: the file is obtained once, and its checksum is learned.

The same sources are asked as for a pinned file: urls, the host file's mirrors of them, git mirrors,
packages, and last the drop folder, where only the name of the file can be looked for.
"""

import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfwright.documents import host_file as host_files
from tfwright.documents.host_file import HostFile
from tfwright.errors import Evidence, SupplyError
from tfwright.progress import Progress
from tfwright.tools import files, trees
from tfwright.tools.git.archive import SourceArchive
from tfwright.tools.http import downloads
from tfwright.vault.origins import DROP, RECIPE, Origins, WantedArchive
from tfwright.vault.store import Store

OPEN = "0" * 64
"""Stands for a checksum that is not known yet."""


@dataclass(frozen=True)
class Learned:
    """The checksum of a file that somebody gave, and who it was."""

    sha256: str
    where: str


def of_file(
    wanted: WantedArchive, origins: Origins, store: Store, report: Callable[[Progress], None]
) -> Learned:
    """Obtain a file and keep it in the store; the first source that gives one is believed.

    Raises SupplyError with what each source said.
    """
    store.root.mkdir(parents=True, exist_ok=True)
    refused: list[str] = []
    with tempfile.TemporaryDirectory(dir=store.root, prefix=".learning-") as room:
        target = Path(room, "file")
        for where, fill in _ways(wanted, origins, report):
            try:
                fill(target)
            except SupplyError as fault:
                refused.append(f"{where}: {fault.what}")
                continue
            return kept(target, where, store)
    raise SupplyError(
        f"No source gives {wanted.name}, so its checksum cannot be learned",
        remedy=_remedy(wanted, origins.host_file),
        evidence=Evidence(lines=refused),
    )


def _remedy(wanted: WantedArchive, settings: HostFile) -> str:
    """Say what may bring a file that no source gives."""
    place = host_files.path()
    # What is made from a commit has no name under which it could be dropped.
    if not wanted.urls:
        return f"Correct its git and commit, or name a mirror in [mirrors] of {place}."
    made = any(SourceArchive.of(url) for url in wanted.urls)
    tables = "[mirrors] or [downloads]" if made else "[downloads]"
    name = wanted.urls[0].rpartition("/")[2]
    return (
        f"Correct its urls, name a mirror in {tables} of {place}, or copy the file, as {name}, "
        f"into {host_files.drop_folder(settings)}."
    )


def kept(path: Path, where: str, store: Store) -> Learned:
    """Keep a file that `where` gave in the store, under the checksum that it turns out to have."""
    sha256 = files.sha256(path)
    with store.admitting(sha256, where) as place:
        shutil.copyfile(path, place)
    return Learned(sha256, where)


def _ways(
    wanted: WantedArchive, origins: Origins, report: Callable[[Progress], None]
) -> Sequence[tuple[str, Callable[[Path], object]]]:
    ways: list[tuple[str, Callable[[Path], object]]] = []
    # What the host's owner put there was meant, and costs no network.
    names = [url.rpartition("/")[2] for url in wanted.urls]
    ways += [
        (str(found), partial(shutil.copyfile, found))
        for found in dropped(names, origins.host_file.drop).values()
    ]
    # One attempt each: whoever waits for a checksum sits at a terminal.
    get = partial(downloads.download, pauses=(), report=report)
    ways += [(url, partial(get, url)) for url in origins.urls(wanted)]
    # The drop folder finds files by the very checksum that is missing.
    others = [source for source in origins.sources(wanted) if source.way != DROP]
    ways += [(source.where, source.fill) for source in others]
    return ways


def dropped(names: Collection[str], folder: Path | None) -> dict[str, Path]:
    """Return the files of the drop folder that have one of the names, by name."""
    below = trees.files_below(folder, follow=True) if folder else ()
    found = dict[str, Path]()
    for path in sorted(path for path, _ in below if path.name in names):
        # Of several with one name the first.
        found.setdefault(path.name, path)
    return found


def of_source(wanted: WantedArchive, origins: Origins, store: Store) -> Learned:
    """Learn the checksum of what one ``[[fetch.sources]]`` has.

    `origins` knows this source only, with `OPEN` as its checksum. Raises SupplyError.
    """
    store.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store.root, prefix=".learning-") as room:
        target = Path(room, "file")
        for source in origins.sources(wanted):
            if source.way == RECIPE:
                source.fill(target)
                return Learned(files.sha256(target), source.where)
    raise SupplyError(
        "A repository alone does not say which file is meant",
        remedy="Write the sha256 of the file that it is a further source of, or add blob, or ref "
        "and prefix.",
    )
