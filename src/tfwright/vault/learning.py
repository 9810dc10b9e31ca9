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
from tfwright.vault.origins import DROP, Origins, WantedArchive, dropped_files
from tfwright.vault.store import Store

PLACEHOLDER = "0" * 64
"""Stands for a checksum that is not known yet."""


@dataclass(frozen=True)
class LearnedChecksum:
    """The checksum of a file that somebody gave, and who it was."""

    sha256: str
    where: str


def learn_checksum(
    wanted: WantedArchive, origins: Origins, store: Store, report: Report
) -> LearnedChecksum:
    """Obtain a file and keep it in the store; the first source that gives one is believed.

    Raises SupplyError with what each source said.
    """
    refused: list[str] = []
    # On the disk of the store.
    with files.scratch_directory(store.root, ".learning-") as folder:
        target = folder / "file"
        # What the host's owner put there was meant, and costs no network.
        names = [url.rpartition("/")[2] for url in wanted.urls]
        for found in dropped_by_name(names, origins.host_file).values():
            return keep_file(found, str(found), store)
        for number, source in enumerate(origins.all_sources(wanted)):
            report(Progress(number, None, "sources", source.where))
            # The drop folder finds files by the very checksum that is missing.
            if source.way != DROP:
                try:
                    source.fill(target)
                except SupplyError as fault:
                    refused.append(f"{source.where}: {fault.what}")
                else:
                    return keep_file(target, source.where, store)
    place, settings = host_files.path(), origins.host_file
    remedy = f"Correct its urls or its git, name a mirror in [mirrors] or [downloads] of {place}"
    # What is made from a commit has no name under which it could be dropped.
    for name in names[:1]:
        remedy += f", or copy the file, as {name}, into {host_files.drop_folder(settings)}"
    if not wanted.urls and not refused:
        # A repository alone does not say which file is meant.
        remedy = (
            "Write the sha256 of the file that it is a further source of, or add blob, or ref and "
            "prefix"
        )
    raise SupplyError(
        f"No source gives {wanted.name}, so its checksum cannot be learned",
        remedy=f"{remedy}.",
        lines=refused,
    )


def keep_file(path: Path, where: str, store: Store) -> LearnedChecksum:
    """Keep a file that `where` gave in the store, under the checksum that it turns out to have."""
    sha256 = files.sha256(path)
    with store.admitting(sha256, where) as place:
        shutil.copyfile(path, place)
    return LearnedChecksum(sha256, where)


def dropped_by_name(names: Collection[str], host_file: HostFile) -> dict[str, Path]:
    """Return the files of the drop folder that have one of the names, by name."""
    below = dropped_files(host_file)
    # Of several with one name the first.
    found = sorted((path for path, _ in below if path.name in names), reverse=True)
    return {path.name: path for path in found}
