"""Checksums that a recipe leaves open: the file is obtained once, and its checksum is learned.

The same sources are asked as for a pinned file: urls, the host file's mirrors of them, git mirrors,
packages, and last the drop folder, where only the name of the file can be looked for.
"""

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import host_file as host_files
from tfwright.documents.host_file import HostFile
from tfwright.errors import SupplyError
from tfwright.progress import Progress, Report
from tfwright.tools import files
from tfwright.tools.git.archive import Pack
from tfwright.vault.origins import DROP, Origins, WantedArchive, dropped_files
from tfwright.vault.store import Store

OPEN = "0" * 64
"""Stands for a checksum that is not known yet."""


@dataclass(frozen=True)
class Learned:
    """The checksum of a file that somebody gave, and who it was."""

    sha256: str
    where: str


def of_file(wanted: WantedArchive, origins: Origins, store: Store, report: Report) -> Learned:
    """Obtain a file and keep it in the store; the first source that gives one is believed.

    Raises SupplyError with what each source said.
    """
    refused: list[str] = []
    store.root.mkdir(parents=True, exist_ok=True)
    # On the disk of the store.
    with files.scratch(store.root, ".learning-") as folder:
        target = folder / "file"
        # What the host's owner put there was meant, and costs no network.
        names = [url.rpartition("/")[2] for url in wanted.urls]
        for found in dropped(names, origins.host_file).values():
            return kept(found, str(found), store)
        for number, source in enumerate(origins.with_urls(wanted)):
            report(Progress(number, None, "sources", source.where))
            # The drop folder finds files by the very checksum that is missing.
            if source.way != DROP:
                try:
                    source.fill(target)
                except SupplyError as fault:
                    refused.append(f"{source.where}: {fault.what}")
                else:
                    return kept(target, source.where, store)
    place, settings = host_files.path(), origins.host_file
    if wanted.urls:
        made = any(map(Pack.of, wanted.urls))
        tables = "[mirrors] or [downloads]" if made else "[downloads]"
        remedy = (
            f"Correct its urls, name a mirror in {tables} of {place}, or copy the file, as "
            f"{wanted.urls[0].rpartition('/')[2]}, into {host_files.drop_folder(settings)}."
        )
    elif not refused:
        # A repository alone does not say which file is meant.
        remedy = (
            "Write the sha256 of the file that it is a further source of, or add blob, or ref and "
            "prefix."
        )
    else:
        # What is made from a commit has no name under which it could be dropped.
        remedy = f"Correct its git and commit, or name a mirror in [mirrors] of {place}."
    raise SupplyError(
        f"No source gives {wanted.name}, so its checksum cannot be learned",
        remedy=remedy,
        lines=refused,
    )


def kept(path: Path, where: str, store: Store) -> Learned:
    """Keep a file that `where` gave in the store, under the checksum that it turns out to have."""
    sha256 = files.sha256(path)
    with store.admitting(sha256, where) as place:
        shutil.copyfile(path, place)
    return Learned(sha256, where)


def dropped(names: Collection[str], host_file: HostFile) -> dict[str, Path]:
    """Return the files of the drop folder that have one of the names, by name."""
    below = dropped_files(host_file)
    found = dict[str, Path]()
    for path in sorted(path for path, _ in below if path.name in names):
        # Of several with one name the first.
        found.setdefault(path.name, path)
    return found
