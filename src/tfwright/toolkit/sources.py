"""The ways to the packages of a toolkit; each file must have the checksum that the recipe pins."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import host_file as host_files
from tfwright.documents.host_file import HostFile
from tfwright.documents.toolkit import PartTable, Way
from tfwright.errors import SupplyError
from tfwright.progress import Listener
from tfwright.tools import apt, files
from tfwright.tools.python import packages
from tfwright.vault import origins
from tfwright.vault.origins import Origins, Supply, WantedArchive
from tfwright.vault.store import Store


def store(vault: Path) -> Store:
    """Return where the packages of toolkits are kept."""
    return Store(vault / "toolkit")


def pins_by_file_name(pins: Mapping[str, str]) -> dict[str, str]:
    """Return pins by the names of their files, without the directories on the server."""
    return {name.rpartition("/")[2]: digest for name, digest in pins.items()}


@dataclass(frozen=True)
class Obtained:
    """The packages of one part, in the vault."""

    way: Way
    sources: Mapping[str, str]
    """The sha256 of each, by the name of its file."""
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Supplier:
    """Where this host keeps packages and looks for them."""

    store: Store
    host_file: HostFile
    listener: Listener
    log: Path
    offline: bool = False

    def obtain(self, title: str, part: PartTable) -> Obtained:
        """Bring the packages of a part into the vault, in the first way that gives all of them.

        Raises SupplyError that says what became of each way.
        """
        refused: list[str] = []
        for way, pins in part.ways():
            try:
                self._fetch_missing(way, part, pins)
            except SupplyError as fault:
                refused.append(f"{way}: {fault.what}. {fault.remedy}")
            else:
                # An archive is pinned by its address, a package by its file's name.
                return Obtained(
                    way, pins_by_file_name(pins), tuple(map(self.store.path, pins.values()))
                )
        raise SupplyError(
            f"{title} cannot be obtained in any of the ways that the recipe names",
            remedy="Copy the files of one way into "
            f"{host_files.drop_folder(self.host_file)}; or install the toolkit, and name it in "
            "the host file.",
            lines=refused,
        )

    def _fetch_missing(self, way: Way, part: PartTable, pins: Mapping[str, str]) -> None:
        """Bring what the vault lacks: first from the drop folder, then from the network."""
        # A package has no urls that could be asked, which leaves the drop folder.
        supply = self._obtain_archives(pins, offline=True)
        lacking = {missing.wanted.name: missing.wanted.sha256 for missing in supply.missing}
        if not lacking:
            return
        if self.offline:
            raise SupplyError(f"{len(lacking)} files are not on this host", remedy="Go online.")
        named = (
            f"{len(lacking)} files" if len(lacking) > 1 else next(iter(pins_by_file_name(lacking)))
        )
        self.listener.note(f"Downloading {named} ({way})")
        if way == "archives":
            for missing in self._obtain_archives(lacking, offline=False).missing:
                why = "; ".join(f"{each.source}: {each.why}" for each in missing.attempts)
                raise SupplyError(f"the download failed: {why}", remedy="Check the network.")
            return
        with files.scratch_directory(self.store.root, ".toolkit-") as folder:
            for path in self.download_packages(way, part, lacking, folder):
                # apt and pip may choose another name for a file; only its checksum identifies it.
                digest = files.sha256(path)
                if digest in lacking.values():
                    files.move(path, self.store.path(digest))
        for name, pin in lacking.items():
            if not self.store.holds(pin):
                raise SupplyError(
                    f"{name} was not given with the pinned digest",
                    remedy="The archive has another build by now; find the pinned one elsewhere.",
                )

    def _obtain_archives(self, pins: Mapping[str, str], *, offline: bool) -> Supply:
        wanted = [WantedArchive(name, pin, (name,)) for name, pin in pins.items()]
        places = Origins(self.host_file, self.store.root, offline)
        return origins.obtain(wanted, self.store, places, self.listener.progress)

    def download_packages(
        self, way: Way, part: PartTable, pins: Mapping[str, str], folder: Path
    ) -> list[Path]:
        """Download packages into a folder; `pins` names them. Their checksums are not compared.

        Raises SupplyError if pip or apt does not give them.
        """
        if way == "wheels":
            pinned = ["==".join(wheel.split("-")[:2]) for wheel in pins]
            # pip would run the setup.py of a source package to learn what it is.
            options = ("--only-binary=:all:", *pinned)
            return packages.download(Path(sys.executable), options, folder, self.log)
        if part.debian is None or not apt.is_available():
            raise SupplyError("this host has no apt", remedy="Use a Debian host or container.")
        address = self.host_file.debian or apt.host_archive_url()
        if not address:
            raise SupplyError(
                "apt knows no Debian archive",
                remedy="Name one in the host file: debian = 'http://…'.",
            )
        return apt.download(pins, address, part.debian.suite, folder, self.log)
