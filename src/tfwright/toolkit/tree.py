"""A toolkit on disk: its parts, the checksum of each file, and one that stands for all of them."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from tfwright.documents.toml import Table
from tfwright.documents.toolkit import PartName
from tfwright.errors import SupplyError
from tfwright.toolkit import nvcc
from tfwright.tools import files

RECORD = "tfwright.json"
"""The name of a toolkit's record, at its root."""


class InstalledPart(Table):
    """One part of a toolkit, and where it is from."""

    version: str
    way: str
    """How it was obtained: ``debian``, ``wheels``, ``archives``, ``directory`` or ``by hand``."""
    sources: dict[str, str]
    """Name and sha256 of each package or archive."""
    licence_accepted_by: str
    """The user who said so; empty for free software. tfwright accepts nothing."""
    on: str
    files: dict[str, str]
    """Path in the toolkit = sha256, or ``-> TARGET`` for a link."""

    @property
    def tree(self) -> str:
        """The digest that a recipe pins: it stands for the files that the packages give."""
        return digest(nvcc.as_pinned(self.files))


class ToolkitRecord(Table):
    """What a toolkit consists of."""

    parts: dict[PartName, InstalledPart] = {}

    @property
    def tree(self) -> str:
        """The digest that stands for all files, as builds use them: with tfwright's scripts."""
        return digest(*(part.files for part in self.parts.values()))

    def has(self, part: PartName, sources: Mapping[str, str]) -> bool:
        """Say whether a part was made from exactly these packages."""
        return part in self.parts and self.parts[part].sources == dict(sources)


def digest(*contents: Mapping[str, str]) -> str:
    """Return one digest for files, each given as its path with its own digest."""
    lines = [f"{sha256} {path}\n" for content in contents for path, sha256 in content.items()]
    # Sorted, because the order of a directory differs from file system to file system.
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def read(root: Path) -> ToolkitRecord:
    """Return the record of a toolkit.

    It is empty if there is none, or if an older tfwright wrote it.
    """
    try:
        return ToolkitRecord.model_validate_json(files.content(root / RECORD))
    except (OSError, ValidationError):
        return ToolkitRecord()


def content(root: Path) -> dict[str, str]:
    """Return the files below a directory as a record lists them."""
    return dict(sorted(_content(root)))


def _content(root: Path) -> Iterator[tuple[str, str]]:
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            yield name, f"-> {path.readlink()}"
        elif path.is_file():
            yield name, files.sha256(path)


def add(root: Path, name: PartName, part: InstalledPart, made: Path) -> ToolkitRecord:
    """Put a part into a toolkit, in the place of the one that was there; return the new record.

    Raises SupplyError, and changes nothing, if another part has a different file of the same name.
    """
    before = read(root)
    others = {key: value for key, value in before.parts.items() if key != name}
    _refuse_conflicts(name, part, others)
    kept = {path for other in others.values() for path in other.files}
    old = before.parts[name].files if name in before.parts else {}
    # Two parts may share a file, such as a licence: it stays while one of them has it.
    for path in set(old) - kept:
        files.remove(root / path)
    for path in part.files:
        if path not in kept:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).rename(root / path)
    # The record is written last: without it the next run installs the part again.
    record = ToolkitRecord(parts={**others, name: part})
    files.write(root / RECORD, record.model_dump_json(indent=1) + "\n")
    return record


def _refuse_conflicts(
    name: PartName, part: InstalledPart, others: Mapping[PartName, InstalledPart]
) -> None:
    for other, installed in others.items():
        for path in sorted(part.files.keys() & installed.files.keys()):
            if part.files[path] != installed.files[path]:
                raise SupplyError(
                    f"{name} and {other} both have {path}, and not the same",
                    remedy="Take versions that were made for each other.",
                )
