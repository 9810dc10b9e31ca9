"""Experimental: an index of variant wheels (PEP 825, a draft) next to the one of normal wheels.

It is a folder of its own, so that no installer of today meets these file names. Each project's page
lists the variant wheels, and for each version a ``NAME-VERSION-variants.json`` with what the labels
mean. A wheel enters only if its machine code shows all that its ``variant.json`` claims.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from tfwright.errors import WheelError
from tfwright.index import labels, simple
from tfwright.index.simple import IndexedDocument, IndexedProject
from tfwright.index.wheels import IndexedWheel
from tfwright.tools import batch as batches
from tfwright.tools import files
from tfwright.tools.batch import FileBatch
from tfwright.wheel import archive, variant
from tfwright.wheel.inspect import inspection
from tfwright.wheel.inspect.library import Library
from tfwright.wheel.variant import Properties

FOLDER = "variants"


class _Hashes(BaseModel):
    sha256: str


class _File(BaseModel):
    filename: str
    hashes: _Hashes


class _Page(BaseModel):
    """As much of a project's page as tells what was proved before."""

    files: list[_File]


@dataclass(frozen=True)
class ListedVariant:
    """A variant wheel whose claims are proved."""

    wheel: IndexedWheel
    """As the index lists it: the normal wheel with other name, size and digest."""
    label: str
    properties: Properties


def write(wheel: Path, libraries: Iterable[Library]) -> Path | None:
    """Write a wheel as a variant next to it; return its path, None if its code proves nothing."""
    code = variant.proved(libraries)
    if not code:
        return None
    label = variant.label_of(code)
    text = variant.document(code, label)
    return labels.with_variant(wheel, wheel.parent, label, text)


def of(wheel: Path) -> Path | None:
    """Return the variant that a build made of a wheel; None if it made none."""
    stem = wheel.name.removesuffix(".whl")
    # A file name of a wheel has no character that a pattern would interpret.
    return next(iter(sorted(wheel.parent.glob(f"{stem}-*.whl"))), None)


def refresh(site: Path, found: Mapping[Path, IndexedWheel]) -> list[WheelError]:
    """Bring the index of variants up to date; return why some wheels are not in it.

    `found` is each variant wheel with the normal wheel that it was made of. A wheel is read when it
    is new. The caller holds a lock on the site.
    """
    home = site / FOLDER
    known = _known(home)
    listed: list[ListedVariant] = []
    refused: list[WheelError] = []
    for path, wheel in found.items():
        try:
            entry = _entry(path, wheel, known.get(path.name))
            _insist_on_one_meaning(entry, listed)
        except WheelError as fault:
            refused.append(fault)
            continue
        _place(path, site, home / wheel.project, wheel)
        listed.append(entry)
    with batches.below(site) as batch:
        wanted = set(_stage(home, listed, batch))
        batch.place()
    # Only after no page names them any more.
    for path in sorted(home.glob("*/*")):
        if path not in wanted:
            files.remove(path)
    return refused


def _known(home: Path) -> dict[str, str]:
    """Return the digest of each file that the pages list: it was read and proved then."""
    found: dict[str, str] = {}
    for page in home.glob("*/index.json"):
        # A page that cannot be read costs another proof.
        with suppress(ValidationError):
            read = _Page.model_validate_json(files.content(page))
            found |= {file.filename: file.hashes.sha256 for file in read.files}
    return found


def _entry(path: Path, wheel: IndexedWheel, sha256: str | None) -> ListedVariant:
    """Return how a variant wheel is listed; raise WheelError if its code does not prove it."""
    with archive.opened(path) as content:
        claims = variant.claimed(content)
    if claims is None:
        raise WheelError(
            f"{path.name} has no {variant.FILE}",
            remedy="Make it again from the normal wheel: invoke variant WHEEL --write FOLDER",
        )
    if sha256 is None:
        code = variant.proved(inspection.inspect(path).libraries)
        variant.insist(path.name, claims, code)
    label = path.name.removesuffix(".whl").rpartition("-")[2]
    named = replace(
        wheel, filename=path.name, sha256=sha256 or files.sha256(path), size=path.stat().st_size
    )
    return ListedVariant(named, label, claims)


def _insist_on_one_meaning(entry: ListedVariant, others: Sequence[ListedVariant]) -> None:
    """Raise WheelError if a label of this version stands for other properties already."""
    for other in others:
        same = _version(other) == _version(entry) and other.label == entry.label
        if same and other.properties != entry.properties:
            raise WheelError(
                f"{entry.wheel.filename}: the label {entry.label} stands for other properties "
                f"in {other.wheel.filename}",
                remedy="Give one of the recipes another local version in nightly.toml.",
            )


def _version(entry: ListedVariant) -> tuple[str, str]:
    return entry.wheel.project, entry.wheel.version


def _place(path: Path, site: Path, folder: Path, wheel: IndexedWheel) -> None:
    """Link a variant wheel and its METADATA, which is that of the normal wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata = site / "packages" / f"{wheel.filename}.metadata"
    for source, name in ((metadata, f"{path.name}.metadata"), (path, path.name)):
        _link(source, folder / name)


def _link(source: Path, target: Path) -> None:
    """Make one file two, unless it is done."""
    if target.exists() and target.samefile(source):
        return
    target.unlink(missing_ok=True)
    os.link(source, target)


def _stage(home: Path, listed: Sequence[ListedVariant], batch: FileBatch) -> Iterator[Path]:
    """Add all pages to the batch; yield every file that the index consists of."""
    by_project: dict[str, list[ListedVariant]] = defaultdict(list)
    for entry in listed:
        by_project[entry.wheel.project].append(entry)
    for name, own in sorted(by_project.items()):
        yield from _stage_project(home / name, own, batch)
    batch.add(home / "index.json", simple.root_json(sorted(by_project)))
    batch.add(home / "index.html", simple.root_html(sorted(by_project)))


def _stage_project(folder: Path, own: Sequence[ListedVariant], batch: FileBatch) -> Iterator[Path]:
    """Add the pages of one project; yield its files."""
    described = []
    for filename, content in _documents(own):
        batch.add(folder / filename, content)
        digest = hashlib.sha256(content).hexdigest()
        described.append(IndexedDocument(filename, digest, len(content)))
        yield folder / filename
    wheels = tuple(entry.wheel for entry in own)
    project = IndexedProject(folder.name, wheels, documents=tuple(described))
    batch.add(folder / "index.json", simple.project_json(project, ""))
    batch.add(folder / "index.html", simple.project_html(project, ""))
    yield from (folder / "index.json", folder / "index.html")
    for wheel in wheels:
        yield folder / wheel.filename
        yield folder / f"{wheel.filename}.metadata"


def _documents(own: Sequence[ListedVariant]) -> Iterator[tuple[str, bytes]]:
    """Yield for each version of a project the file that says what its labels mean."""
    by_version: dict[str, dict[str, Properties]] = defaultdict(dict)
    for entry in own:
        # The name and the version as the file name of the wheel spells them.
        stem = "-".join(entry.wheel.filename.split("-")[:2])
        by_version[stem][entry.label] = entry.properties
    for stem, meanings in by_version.items():
        yield f"{stem}-variants.json", variant.documents(meanings)
