"""A toolkit on disk: its parts, the checksum of each file, and one that stands for all of them.

A toolkit has some gigabytes in a few thousand files. Every build looks at their states, which takes
a hundredth of a second, and reads only the files whose state changed.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tfwright.documents.toml import Table
from tfwright.documents.toolkit import PartName
from tfwright.errors import SupplyError
from tfwright.printable import first_of
from tfwright.toolkit import nvcc
from tfwright.tools import files, json_text, seen
from tfwright.tools.seen import SeenFiles
from tfwright.vault.usage import Damage

RECORD = "tfwright.json"
"""The name of a toolkit's record, at its root."""
SHOWN = 15
"""Files that an error names."""


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
        return digest(nvcc.with_pinned_checksums(self.files))


class ToolkitRecord(Table):
    """What a toolkit consists of."""

    parts: dict[PartName, InstalledPart] = {}

    @property
    def tree(self) -> str:
        """The digest that stands for all files, as builds use them: with tfwright's scripts."""
        return digest(*(part.files for part in self.parts.values()))

    @property
    def files(self) -> dict[str, str]:
        """Every file of every part, as `InstalledPart.files` has it."""
        return {path: sha256 for part in self.parts.values() for path, sha256 in part.files.items()}


def digest(*contents: Mapping[str, str]) -> str:
    """Return one digest for files, each given as its path with its own digest."""
    lines = [f"{sha256} {path}\n" for content in contents for path, sha256 in content.items()]
    # Sorted, because the order of a directory differs from file system to file system.
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def read(root: Path) -> ToolkitRecord:
    """Return the record of a toolkit.

    It is empty if there is none, or if an older tfwright wrote it.
    """
    return json_text.load_or_none(root / RECORD, ToolkitRecord) or ToolkitRecord()


def content(root: Path) -> dict[str, str]:
    """Return the files below a directory as a record lists them."""
    found = (path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return dict(sorted((path.relative_to(root).as_posix(), seen.content(path)) for path in found))


def add_part(root: Path, name: PartName, part: InstalledPart, made: Path) -> None:
    """Put a part into a toolkit, in the place of the one that was there.

    Raises SupplyError, and changes nothing, if another part has a different file of the same name.
    """
    before = read(root)
    others = {key: value for key, value in before.parts.items() if key != name}
    for other, installed in others.items():
        for path in sorted(part.files.keys() & installed.files.keys()):
            if part.files[path] != installed.files[path]:
                raise SupplyError(
                    f"{name} and {other} both have {path}, and not the same",
                    remedy="Take versions that were made for each other.",
                )
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


def check_tree(root: Path, recipe: str) -> None:
    """Raise SupplyError if a file of a toolkit is not as it was unpacked, or a script is outdated.

    What users added to it, and toolkits that `invoke toolkit` did not make, are left alone.
    """
    recorded = read(root).files
    remedy = f"Run 'invoke toolkit --recipe {recipe}': it unpacks those packages again."
    if nvcc.has_outdated_script(recorded):
        raise SupplyError(
            f"The toolkit {root} has scripts of another version of tfwright",
            remedy=remedy,
            where=root,
        )
    if wrong := changed_files(root, recorded):
        count = f"{len(wrong)} files of" if len(wrong) > 1 else f"{wrong[0]} in"
        raise SupplyError(
            f"{count} the toolkit {root} changed since it was unpacked",
            remedy=remedy,
            where=root,
            lines=wrong[:SHOWN],
        )


def changed_files(root: Path, recorded: Mapping[str, str]) -> list[str]:
    """Return the paths, of those with a recorded checksum, that have changed since."""
    known = SeenFiles(root.with_name(f"{root.name}.seen.json"))
    wrong = []
    for path, checksum in recorded.items():
        try:
            same = known.content(root / path) == checksum
        except OSError:
            same = False
        if not same:
            wrong.append(path)
    # Only the next look is slower without it: the toolkit may be on a disk of someone else.
    with suppress(OSError):
        known.save()
    return wrong


def damages(build_out: Path) -> Iterator[Damage]:
    """Read every byte of the toolkits, and yield those that are not as they were unpacked."""
    for place in sorted((build_out / "toolkits").glob(f"*/{RECORD}")):
        root = place.parent
        recorded, now = read(root).files, content(root)
        # Files that no package brought are left alone: users may add theirs to a toolkit.
        wrong = [path for path, checksum in recorded.items() if now.get(path) != checksum]
        if not recorded:
            yield Damage(root, f"{RECORD} cannot be read", removable=False)
        elif wrong:
            yield Damage(root, f"{first_of(wrong)} is not as unpacked", removable=False)
