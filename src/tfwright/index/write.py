"""The index as files: reads the wheels that are new, writes the pages that changed."""

import datetime as dt
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from tfwright.errors import WheelError
from tfwright.index import catalog, matching, simple
from tfwright.index.catalog import Catalog, Stat
from tfwright.index.simple import IndexedProject
from tfwright.index.wheels import IndexedWheel, read_wheel
from tfwright.tools import batch as batches
from tfwright.tools import files
from tfwright.tools.batch import FileBatch

PACKAGES = "packages"
"""The folder of the wheels, below the index."""
SIMPLE = simple.FOLDER
BY_RECIPE = "r"
"""The folder of the sub-indexes, one for each recipe."""
EXTRAS = (".intoto.json", ".intoto.jsonl", ".dsse.json", ".cdx.json", ".buildinfo.json")
"""Suffixes of files next to a wheel that describe it."""

Notes = Mapping[str, Mapping[str, object]]
"""File name of a wheel to what the build host knows of it: recipe, build, state, yanked, hidden."""


@dataclass(frozen=True)
class IndexUpdate:
    """What one run did to the index."""

    wheels: tuple[IndexedWheel, ...]
    """All wheels, hidden ones included, oldest version first."""
    read: int
    """Wheels that were read, because they are new or changed."""
    written: int
    """Files that were written."""
    removed: int
    """Pages that were removed, because nothing is left on them."""
    refused: tuple[WheelError, ...] = ()
    """Why some wheels of the folder are not in the index."""


def refresh(  # noqa: PLR0913 one choice each, all with a default
    folder: Path,
    notes: Notes | None = None,
    now: dt.datetime | None = None,
    *,
    replace: bool = False,
    statuses: Mapping[str, tuple[str, str]] | None = None,
    packages: str = PACKAGES,
) -> IndexUpdate:
    """Bring the index below `folder` up to date with the wheels in its folder `packages`.

    A wheel is read when its size or time changed. A page is written when its bytes changed. All
    files are complete before the first one gets its place, wheels' metadata before the pages that
    name it. A wheel that cannot be listed is reported, and the others are listed. `replace` allows
    a name to get other bytes, for the wheelhouse of builds by hand. `statuses` gives projects
    another status than active, with the reason. The caller holds a lock on the folder.
    """
    moment = (now or dt.datetime.now(dt.UTC)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    wheels_place = folder / packages
    wheels_place.mkdir(parents=True, exist_ok=True)
    with batches.below(folder) as batch, catalog.opened(wheels_place) as known:
        scan = _Scan(wheels_place, known, moment, replace=replace)
        wheels = list(scan.wheels(notes or {}, batch))
        # Stable, and the scan is in the order of the names: no name has to be compared.
        wheels.sort(key=lambda wheel: Version(wheel.version))
        pages = _pages(wheels, statuses or {})
        _stage(folder, pages, batch, f"{packages}/" if packages else "")
        written = batch.place()
        # The catalog follows the files: after a crash in between, the work is done again.
        scan.remember()
    removed = _remove_stale(folder, pages)
    return IndexUpdate(tuple(wheels), scan.read, written, removed, tuple(scan.refused))


def metadata_of(wheel: Path) -> Path:
    """Return where the metadata of a wheel lies next to it, for installers that read only that."""
    return wheel.with_name(f"{wheel.name}.metadata")


def drop_other_metadata(wheel: Path) -> None:
    """Remove the metadata next to a wheel if it is not the wheel's own; `refresh` writes it again.

    A wheel that cannot be read is left to `refresh`, which reports it.
    """
    place = metadata_of(wheel)
    with suppress(WheelError):
        if place.exists() and files.content(place) != read_wheel(wheel, "")[1]:
            files.remove(place)


class _Scan:
    """One walk over the folder of wheels."""

    def __init__(self, packages: Path, known: Catalog, moment: str, *, replace: bool) -> None:
        self._packages = packages
        self._catalog = known
        self._known = known.wheels()
        self._taken = {} if replace else known.digests()
        self._moment = moment
        self._kept: list[tuple[IndexedWheel, Stat]] = []
        self._seen: set[str] = set()
        self.read = 0
        self.refused: list[WheelError] = []

    def wheels(self, notes: Notes, batch: FileBatch) -> Iterator[IndexedWheel]:
        """Yield each wheel that can be listed; stage the metadata of the new ones."""
        names, stats = _files(self._packages)
        for filename, stat in stats.items():
            self._seen.add(filename)
            try:
                found = self._wheel(filename, stat, batch, names)
            except WheelError as fault:
                self.refused.append(fault)
                continue
            noted = found.noted(**notes.get(filename, {}), extras=_extras(filename, names))
            if noted != self._known.get(filename, (None, None))[1]:
                self._kept.append((noted, stat))
            yield noted

    def _wheel(self, filename: str, stat: Stat, batch: FileBatch, names: set[str]) -> IndexedWheel:
        """Return a wheel from the catalog, or read it from its file."""
        before = self._known.get(filename)
        if before and before[0] == stat and f"{filename}.metadata" in names:
            return before[1]
        self.read += 1
        found, metadata = read_wheel(self._packages / filename, self._moment)
        catalog.refuse_other_bytes(self._taken, filename, found.sha256)
        batch.add(self._packages / f"{filename}.metadata", metadata)
        if before and before[1].sha256 == found.sha256:
            # A copy of the same bytes keeps its upload time: uv's exclude-newer reads that.
            found = found.noted(uploaded=before[1].uploaded)
        self._known.pop(filename, None)
        return found

    def remember(self) -> None:
        """Write what was read into the catalog."""
        for wheel, stat in self._kept:
            self._catalog.keep(wheel, stat)
        for filename in self._known.keys() - self._seen:
            self._catalog.drop(filename)


def _files(packages: Path) -> tuple[set[str], dict[str, Stat]]:
    """Return the names of the regular files in a folder, and the wheels with size and change.

    The wheels are in the order of their names.
    """
    names, stats = set(), {}
    with os.scandir(packages) as entries:
        for entry in entries:
            if not entry.is_file(follow_symlinks=False) or entry.name.startswith("."):
                continue
            names.add(entry.name)
            # Only of wheels: a call for each of their companions would double the time.
            if entry.name.endswith(".whl"):
                state = entry.stat()
                # The time of change cannot be set back, as that of modification can.
                stats[entry.name] = (state.st_size, state.st_ctime_ns)
    return names, dict(sorted(stats.items()))


def _extras(filename: str, names: set[str]) -> tuple[str, ...]:
    return tuple(suffix for suffix in EXTRAS if filename + suffix in names)


def _pages(
    wheels: Sequence[IndexedWheel], statuses: Mapping[str, tuple[str, str]]
) -> dict[str, list[IndexedProject]]:
    """Return the projects of the whole index and of each sub-index, by its folder."""
    shown = [wheel for wheel in wheels if not wheel.hidden]
    by_recipe = defaultdict(list)
    for wheel in shown:
        if wheel.recipe:
            by_recipe[wheel.recipe].append(wheel)
    pages = {SIMPLE: _projects(shown, statuses)}
    for recipe, own in sorted(by_recipe.items()):
        pages[f"{BY_RECIPE}/{recipe}"] = _projects(own, statuses)
    return pages


def _projects(
    wheels: Iterable[IndexedWheel], statuses: Mapping[str, tuple[str, str]]
) -> list[IndexedProject]:
    """Group wheels by project, in the order of the names."""
    grouped = defaultdict(list)
    for wheel in wheels:
        grouped[wheel.project].append(wheel)
    projects = []
    for name, own in sorted(grouped.items()):
        status, reason = statuses.get(name, ("active", ""))
        projects.append(IndexedProject(name, tuple(own), status, reason))
    return projects


def _stage(
    folder: Path, pages: Mapping[str, list[IndexedProject]], batch: FileBatch, wheels: str
) -> None:
    """Add every page to the batch; a list of projects comes after the pages that it links."""
    for place, projects in pages.items():
        # The way from a project's page up to the folder of the wheels.
        packages = "../" * (place.count("/") + 2) + wheels
        for project in projects:
            home = folder / place / project.name
            batch.add(home / "index.json", simple.project_json(project, packages))
            batch.add(home / "index.html", simple.project_html(project, packages))
        names = [project.name for project in projects]
        batch.add(folder / place / "index.json", simple.root_json(names))
        batch.add(folder / place / "index.html", simple.root_html(names))
    everything = [wheel for project in pages[SIMPLE] for wheel in project.wheels]
    batch.add(folder / matching.FILE, matching.document(everything, wheels))


def _remove_stale(folder: Path, pages: Mapping[str, list[IndexedProject]]) -> int:
    """Remove the pages of projects and recipes that have no wheel left; return how many."""
    wanted = {folder / place for place in pages}
    for place, projects in pages.items():
        wanted |= {folder / place / project.name for project in projects}
    removed = 0
    for page in sorted(_written(folder), reverse=True):
        if page not in wanted:
            for name in ("index.json", "index.html"):
                (page / name).unlink(missing_ok=True)
            # What somebody put next to a page stays, and fails no night.
            if not any(page.iterdir()):
                page.rmdir()
            removed += 1
    return removed


def _written(folder: Path) -> Iterator[Path]:
    """Yield the folders of pages that earlier runs wrote."""
    for pattern in (f"{SIMPLE}/*/", f"{BY_RECIPE}/*/", f"{BY_RECIPE}/*/*/"):
        yield from (path for path in folder.glob(pattern) if path.is_dir())
