"""The ways to the packages of a toolkit; each file must have the checksum that the recipe pins."""

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import host_file as host_files
from tfwright.documents.host_file import HostFile
from tfwright.documents.toolkit import PartTable, Way
from tfwright.errors import Evidence, SupplyError
from tfwright.progress import Listener
from tfwright.tools import apt, files
from tfwright.tools.http import downloads
from tfwright.tools.http.downloads import DownloadOutcome
from tfwright.tools.python import packages
from tfwright.vault.origins import Origins, WantedArchive
from tfwright.vault.store import Store

Filler = Callable[[Path], None]
"""Writes to a path what a source has."""


def store(vault: Path) -> Store:
    """Return where the packages of toolkits are kept."""
    return Store(vault / "toolkit")


@dataclass(frozen=True)
class Supplier:
    """Where this host keeps packages and looks for them."""

    store: Store
    host_file: HostFile
    listener: Listener
    log: Path
    offline: bool = False


@dataclass(frozen=True)
class Obtained:
    """The packages of one part, in the vault."""

    way: Way
    files: Mapping[str, Path]
    """By name."""


def obtain(title: str, part: PartTable, supplier: Supplier) -> Obtained:
    """Bring the packages of a part into the vault, in the first way that gives all of them.

    Raises SupplyError that says what became of each way.
    """
    refused: list[str] = []
    for way, pins in part.ways():
        try:
            _bring(way, part, pins, supplier)
        except SupplyError as fault:
            refused.append(f"{way}: {fault.what}. {fault.remedy}")
        else:
            # An archive is pinned by its address, a package by its file's name.
            names = {name.rpartition("/")[2]: digest for name, digest in pins.items()}
            paths = {name: supplier.store.path(digest) for name, digest in names.items()}
            return Obtained(way, paths)
    raise SupplyError(
        f"{title} cannot be obtained in any of the ways that the recipe names",
        remedy="Copy the files of one way into "
        f"{host_files.drop_folder(supplier.host_file)}; or install the toolkit, and name it in "
        "the host file.",
        evidence=Evidence(lines=refused),
    )


def _bring(way: Way, part: PartTable, pins: Mapping[str, str], supplier: Supplier) -> None:
    """Bring what the vault lacks: first from the drop folder, then from the network."""
    _take_dropped(pins, supplier)
    lacking = {name: pin for name, pin in pins.items() if not supplier.store.sound(pin)}
    if not lacking:
        return
    if supplier.offline:
        raise SupplyError(f"{len(lacking)} files are not on this host", remedy="Go online.")
    supplier.listener.note(f"Downloading {_named(lacking)} ({way})")
    if way == "archives":
        _download(lacking, supplier)
        return
    with tempfile.TemporaryDirectory(dir=supplier.store.root, prefix=".toolkit-") as folder:
        _admit(packages_of(way, part, lacking, supplier, Path(folder)), lacking, supplier.store)


def _named(pins: Mapping[str, str]) -> str:
    """Return what is downloaded: one file by its name, several by their number."""
    if len(pins) == 1:
        return next(iter(pins)).rpartition("/")[2]
    return f"{len(pins)} files"


def _take_dropped(pins: Mapping[str, str], supplier: Supplier) -> None:
    # Offline leaves only the drop folder: a package has no urls that Origins could ask.
    origins = Origins(supplier.host_file, supplier.store.root, offline=True)
    for name, pin in pins.items():
        for source in origins.sources(WantedArchive(name, pin, ())):
            _fill(source.where, pin, supplier.store, source.fill)


def _fill(where: str, pin: str, store: Store, fill: Filler) -> None:
    if store.holds(pin):
        return
    try:
        with store.admitting(pin, where) as target:
            fill(target)
    except SupplyError:
        # Another way may have it.
        return


def packages_of(
    way: Way, part: PartTable, pins: Mapping[str, str], supplier: Supplier, folder: Path
) -> list[Path]:
    """Download packages into a folder; `pins` names them. Their checksums are not compared.

    Raises SupplyError if pip or apt does not give them.
    """
    if way == "wheels":
        wanted = [_requirement(name) for name in pins]
        # pip would run the setup.py of a source package to learn what it is.
        options = ("--only-binary=:all:", *wanted)
        return packages.bring(Path(sys.executable), options, folder, supplier.log)
    if part.debian is None or not apt.here():
        raise SupplyError("this host has no apt", remedy="Use a Debian host or container.")
    address = supplier.host_file.debian or apt.address()
    if not address:
        raise SupplyError(
            "apt knows no Debian archive", remedy="Name one in the host file: debian = 'http://…'."
        )
    archive = apt.PackageArchive(address, part.debian.suite)
    return apt.download(pins, archive, folder, supplier.log)


def _requirement(wheel: str) -> str:
    """Return the pin of a wheel, from the name of its file."""
    name, version = wheel.split("-")[:2]
    return f"{name}=={version}"


def _download(pins: Mapping[str, str], supplier: Supplier) -> None:
    wanted = [WantedArchive(url.rpartition("/")[2], pin, (url,)) for url, pin in pins.items()]
    outcomes = downloads.fetch(wanted, supplier.store, report=supplier.listener.progress)
    for outcome in outcomes:
        if not outcome.obtained:
            raise _failed(outcome)


def _failed(outcome: DownloadOutcome) -> SupplyError:
    why = "; ".join(f"{failure.url}: {failure.why}" for failure in outcome.failures)
    return SupplyError(f"the download failed: {why}", remedy="Check the network.")


def _admit(found: list[Path], pins: Mapping[str, str], store: Store) -> None:
    """Keep each downloaded file that has one of the pinned digests; insist on all of them."""
    for path in found:
        # apt and pip may choose another name for a file; only its checksum identifies
        # it.
        digest = files.sha256(path)
        if digest in pins.values():
            files.move(path, store.path(digest))
    _insist_on_all(pins, store)


def _insist_on_all(pins: Mapping[str, str], store: Store) -> None:
    lacking = [name for name, pin in pins.items() if not store.holds(pin)]
    if lacking:
        raise SupplyError(
            f"{lacking[0]} was not given with the pinned digest",
            remedy="The archive has another build by now; find the pinned one elsewhere.",
        )
