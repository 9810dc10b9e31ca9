"""The index as files: reads the wheels that are new, writes the pages that changed.

The pages are the simple repository API: HTML (PEP 503) and JSON (PEP 691), both of version 1.4.
Everything that a wheel says about itself is escaped: its author may be hostile. The `provenance`
key stays empty. PEP 740 wants a certificate there, and our statements are signed by a plain key.
"""

import datetime as dt
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from json import dumps
from pathlib import Path

from packaging.version import Version

from tfwright.errors import WheelError
from tfwright.index import wheels
from tfwright.index.wheels import Catalog, IndexedWheel, Stat
from tfwright.tools import batch as batches
from tfwright.tools import files
from tfwright.tools.batch import FileBatch
from tfwright.tools.render import renderer

PACKAGES = "packages"
"""The folder of the wheels, below the index."""
SIMPLE = "simple"
"""The folder of all projects, below the index."""
BY_RECIPE = "r"
"""The folder of the sub-indexes, one for each recipe."""
API_VERSION = "1.4"
"""PEP 833 froze HTML at this version; it is the one that brought the status of a project."""
EXTRAS = (".intoto.json", ".intoto.jsonl", ".cdx.json")
"""Suffixes of files next to a wheel that describe it."""

Notes = Mapping[str, Mapping[str, object]]
"""File name of a wheel to what the build host knows of it: recipe, build, state, yanked, hidden."""


@dataclass(frozen=True)
class IndexedProject:
    """A project of the index: one page."""

    name: str
    """Normalised."""
    wheels: tuple[IndexedWheel, ...]
    """Oldest version first; hidden ones are left out."""
    status: str
    """As PEP 792 names them: active, archived, quarantined, deprecated."""
    reason: str


@dataclass(frozen=True)
class IndexUpdate:
    """What one run did to the index."""

    wheels: tuple[IndexedWheel, ...]
    """All wheels, hidden ones included, oldest version first."""
    read: int
    """Wheels that were read, because they are new or changed."""
    written: int
    """Files that were written."""
    refused: tuple[WheelError, ...] = ()
    """Why some wheels of the folder are not in the index."""


def refresh(
    folder: Path,
    notes: Notes | None = None,
    now: dt.datetime | None = None,
    *,
    statuses: Mapping[str, tuple[str, str]] | None = None,
    packages: str = PACKAGES,
) -> IndexUpdate:
    """Bring the index below `folder` up to date with the wheels in its folder `packages`.

    A wheel is read when its size or time changed. A page is written when its bytes changed. All
    files are complete before the first one gets its place, wheels' metadata before the pages that
    name it. A wheel that cannot be listed is reported, and the others are listed. A name may get
    other bytes only where wheels lie in `folder` itself, as in the wheelhouse of builds by hand.
    `statuses` gives projects another status than active, with the reason. The caller holds a lock
    on the folder.
    """
    moment = (now or dt.datetime.now(dt.UTC)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    place = folder / packages
    place.mkdir(parents=True, exist_ok=True)
    with batches.file_batch(folder) as batch:
        # Those in a folder of their own are served as never changing, also to later clients.
        scan = _Scan(place, Catalog.read(place), replace=not packages)
        found = list(scan.wheels(notes or {}, moment, batch))
        # Stable, and the scan is in the order of the names: no name has to be compared.
        found.sort(key=lambda wheel: Version(wheel.version))
        pages = _projects_by_folder([wheel for wheel in found if not wheel.hidden], statuses or {})
        _stage_pages(folder, pages, batch, f"{packages}/" if packages else "")
        written = batch.place()
        # The catalog follows the files: after a crash in between, the work is done again.
        scan.stage_catalog(batch)
        batch.place()
    _remove_stale(folder, pages)
    return IndexUpdate(tuple(found), scan.read, written, tuple(scan.refused))


def metadata_of(wheel: Path) -> Path:
    """Return where the metadata of a wheel lies next to it, for installers that read only that."""
    return wheel.with_name(f"{wheel.name}.metadata")


def drop_other_metadata(wheel: Path) -> None:
    """Remove the metadata next to a wheel if it is not the wheel's own; `refresh` writes it again.

    A wheel that cannot be read is left to `refresh`, which reports it.
    """
    place = metadata_of(wheel)
    with suppress(WheelError):
        if place.exists() and not files.has_content(place, wheels.read_wheel(wheel, "")[1]):
            files.remove(place)


class _Scan:
    """One walk over the folder of wheels."""

    def __init__(self, packages: Path, known: Catalog, *, replace: bool) -> None:
        self._packages = packages
        self._catalog = known
        self._taken = {} if replace else known.digests
        self._kept: dict[str, tuple[Stat, IndexedWheel]] = {}
        self._names: set[str] = set()
        """The regular files of the folder."""
        self.read = 0
        self.refused: list[WheelError] = []

    def wheels(self, notes: Notes, moment: str, batch: FileBatch) -> Iterator[IndexedWheel]:
        """Yield each wheel that can be listed, by name; stage the metadata of the new ones."""
        stats: dict[str, Stat] = {}
        with os.scandir(self._packages) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) or entry.name.startswith("."):
                    continue
                self._names.add(entry.name)
                # Only of wheels: a call for each of their companions would double the time.
                if entry.name.endswith(".whl"):
                    state = entry.stat()
                    # The time of change cannot be set back, as that of modification can.
                    stats[entry.name] = (state.st_size, state.st_ctime_ns)
        for filename, stat in sorted(stats.items()):
            note = notes.get(filename, {})
            try:
                found = self._wheel(filename, stat, moment, batch, inspect=not note.get("needs"))
            except WheelError as fault:
                self.refused.append(fault)
                if before := self._catalog.wheels.get(filename):
                    self._kept[filename] = before
                continue
            stated = {name: value for name, value in note.items() if value or name != "needs"}
            wheel = found.with_notes(**stated)
            self._kept[filename] = stat, wheel
            yield wheel

    def _wheel(
        self, filename: str, stat: Stat, moment: str, batch: FileBatch, *, inspect: bool
    ) -> IndexedWheel:
        """Return a wheel from the catalog, or read it from its file."""
        before = self._catalog.wheels.get(filename)
        if before and before[0] == stat and f"{filename}.metadata" in self._names:
            return before[1]
        self.read += 1
        found, metadata = wheels.read_wheel(self._packages / filename, moment)
        wheels.refuse_other_bytes(self._taken, filename, found.sha256)
        batch.add(self._packages / f"{filename}.metadata", metadata)
        if before and before[1].sha256 == found.sha256:
            # A copy of the same bytes keeps its upload time: uv's exclude-newer reads that.
            found = found.with_notes(uploaded=before[1].uploaded)
        if inspect:
            # Every build looks into the index, and few read a wheel.
            from tfwright.wheel.inspect import inspection

            report = inspection.inspect(self._packages / filename)
            found = found.with_notes(needs=tuple(report.needs_of_machine().items()))
        return found

    def stage_catalog(self, batch: FileBatch) -> None:
        """Stage the catalog with what was read."""
        if self._kept != self._catalog.wheels:
            # The name of a wheel that is gone stays taken.
            taken = {name: wheel.sha256 for name, (_, wheel) in self._kept.items()}
            catalog = Catalog(self._kept, self._catalog.digests | taken)
            batch.add(self._packages / wheels.FILE, catalog.encode())


def _projects_by_folder(
    shown: Sequence[IndexedWheel], statuses: Mapping[str, tuple[str, str]]
) -> dict[str, list[IndexedProject]]:
    """Return the projects of the whole index and of each sub-index, by its folder."""
    grouped: dict[str, dict[str, list[IndexedWheel]]] = {SIMPLE: {}}
    for wheel in shown:
        for place in (SIMPLE, f"{BY_RECIPE}/{wheel.recipe}")[: 2 if wheel.recipe else 1]:
            projects = grouped.setdefault(place, {})
            projects.setdefault(wheel.project, []).append(wheel)
    return {
        place: [
            IndexedProject(name, tuple(own), *statuses.get(name, ("active", "")))
            for name, own in sorted(projects.items())
        ]
        for place, projects in sorted(grouped.items(), reverse=True)
    }


def _stage_pages(
    folder: Path, pages: Mapping[str, list[IndexedProject]], batch: FileBatch, wheels: str
) -> None:
    """Add every page to the batch; a list of projects comes after the pages that it links."""
    from tfwright.index import matching

    for place, projects in pages.items():
        # The way from a project's page up to the folder of the wheels.
        packages = "../" * (place.count("/") + 2) + wheels
        for project in projects:
            title = f"Links for {project.name}"
            values = {"title": title, "project": project, "packages": packages}
            json = project_json(project, packages)
            _stage_page(folder / place / project.name, batch, json, values)
        names = [project.name for project in projects]
        root = {
            "meta": {"api-version": API_VERSION},
            "projects": [{"name": name} for name in names],
        }
        values = {"title": "Simple index", "project": None, "names": names}
        _stage_page(folder / place, batch, root, values)
    all_wheels = [wheel for project in pages[SIMPLE] for wheel in project.wheels]
    batch.add(folder / matching.FILE, matching.document(all_wheels, wheels))


def _stage_page(home: Path, batch: FileBatch, json: object, values: Mapping[str, object]) -> None:
    """Add both forms of a page."""
    batch.add(home / "index.json", dumps(json, separators=(",", ":")).encode())
    # For clients that do not read JSON.
    html = renderer("simple.html.j2")({**values, "version": API_VERSION})
    batch.add(home / "index.html", html.encode())


def project_json(project: IndexedProject, packages: str) -> dict[str, object]:
    """Return the JSON page of a project; `packages` is the relative URL of the wheels' folder."""
    listed = []
    for wheel in project.wheels:
        described: dict[str, object] = {
            "filename": wheel.filename,
            "url": packages + wheel.quoted,
            "hashes": {"sha256": wheel.sha256},
            "size": wheel.size,
            "upload-time": wheel.uploaded,
            # Only this key: pip 22.2 to 23.0 stumble over the older name in JSON (PEP 714).
            "core-metadata": {"sha256": wheel.metadata_sha256},
            "yanked": False if wheel.yanked is None else wheel.yanked or True,
        }
        if wheel.requires_python:
            described["requires-python"] = wheel.requires_python
        listed.append(described)
    reason = {"reason": project.reason} if project.reason else {}
    return {
        "meta": {"api-version": API_VERSION},
        "name": project.name,
        "project-status": {"status": project.status, **reason},
        "versions": list(dict.fromkeys(wheel.version for wheel in project.wheels)),
        "files": listed,
    }


def _remove_stale(folder: Path, pages: Mapping[str, list[IndexedProject]]) -> None:
    """Remove the pages of projects and recipes that have no wheel left."""
    wanted = {folder / place for place in pages}
    for place, projects in pages.items():
        wanted |= {folder / place / project.name for project in projects}
    patterns = (f"{SIMPLE}/*/", f"{BY_RECIPE}/*/", f"{BY_RECIPE}/*/*/")
    written = {path for pattern in patterns for path in folder.glob(pattern) if path.is_dir()}
    # Those of a recipe's projects before its own.
    for page in sorted(written - wanted, reverse=True):
        for name in ("index.json", "index.html"):
            (page / name).unlink(missing_ok=True)
        # What somebody put next to a page stays, and fails no night.
        if not any(page.iterdir()):
            page.rmdir()
