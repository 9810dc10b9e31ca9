"""The build record: a JSON file in a wheel that says what it was made from, by what and how.

It names what decides the bytes and nothing else of the host: no path, no time, no user. Built again
from the same, a wheel holds the same record.
"""

import hashlib
import json
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from tfwright.documents import faults
from tfwright.documents.names import Commit, InnerPath, Line, Sha256
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import Table
from tfwright.errors import WheelError
from tfwright.tools import json_text
from tfwright.wheel import archive

NAME = archive.BUILD_RECORD
"""The record's name in ``.dist-info``."""
LARGEST = 4 * 1024**2
"""Bytes that a record may have; one of TensorFlow has some ten thousand."""


class Sealer(Table):
    """What sealed the wheel; its version and that of its compressor are part of the bytes."""

    name: Literal["tfwright"] = "tfwright"
    version: Line
    deflate: Line
    """Version of the package ``deflate``, which brings libdeflate."""


class RecipeContent(Table):
    """The recipe, whole: with it the build can be repeated."""

    name: Line
    sha256: Sha256
    """Of the content as canonical JSON: what decides the build, so no comment changes it."""
    content: dict[str, Any]
    """The recipe's tables without defaults, and without who verified it."""


class RecordedSource(Table):
    """The source tree."""

    url: Line
    commit: Commit
    release: Line
    content: Line
    """Git's id of the tree with assets and patches in place."""
    epoch: int
    """SOURCE_DATE_EPOCH of the build, in seconds: when the commit was made."""


class RecordedFile(Table):
    """A patch or an asset."""

    path: InnerPath
    """Under patches/."""
    sha256: Sha256


class RecordedProgram(Table):
    """Bazel."""

    version: Line
    sha256: Sha256


class Found(Table):
    """What was found on the host and takes part in the bytes; empty where nothing was wanted."""

    system: Line
    machine: Line
    glibc: Line
    python: Line
    """Full version of the target Python."""
    compiler: Line
    """As ``cc --version`` says it."""
    cuda: Line
    cudnn: Line
    nccl: Line | None = None
    tensorrt: Line | None = None
    toolkit: Sha256 | None = None
    """The digest of all files of the toolkit that `invoke toolkit` made; None for another one."""


class RecordedBazel(Table):
    """How Bazel was run."""

    target: Line
    flags: tuple[Line, ...]
    """The recipe's; tfwright's own say where things lie and how much may run at once."""
    environment: dict[str, Line]
    """Everything that the build could see, ``@NAME@`` for directories of the host."""


class Substitution(Table):
    """Bytes that took the place of an archive that could not be downloaded."""

    name: Line
    reason: Line
    sha256: Sha256
    """Of the archive that was pinned."""
    used: Sha256


class RecordedCheck(Table):
    """Something that was read off the wheel before it was sealed."""

    name: Line
    passed: bool
    detail: Line


class BuildRecord(Table):
    """What a wheel was made from, by what and how."""

    format: Literal[1] = 1
    sealer: Sealer
    recipe: RecipeContent
    lock: Sha256 | None
    """Of the lock file; None if the recipe has none."""
    source: RecordedSource
    files: tuple[RecordedFile, ...]
    bazel: RecordedProgram
    found: Found
    build: RecordedBazel
    substitutions: tuple[Substitution, ...]
    stubs: tuple[Line, ...]
    """Libraries that are there to be imported, and do nothing."""
    checks: tuple[RecordedCheck, ...]
    """What was read without running the wheel; the statement says what it did when it was run."""


def recipe_content(recipe: Recipe) -> RecipeContent:
    """Return a recipe as the record holds it."""
    # Without defaults: a new setting of a later tfwright must not change the record of old recipes.
    content = recipe.model_dump(mode="json", exclude_defaults=True, exclude={"name", "verified"})
    digest = hashlib.sha256(canonical(content)).hexdigest()
    return RecipeContent(name=recipe.name, sha256=digest, content=content)


def recipe_of(content: RecipeContent) -> Recipe:
    """Return the recipe that was written down.

    Raises pydantic.ValidationError if this version does not take it as a recipe.
    """
    return Recipe.model_validate({**content.content, "name": content.name})


def read_recipe(file: Path) -> Recipe | None:
    """Return the recipe in a file of ours; None if it holds none that this version takes."""
    content = json_text.load_or_none(file, RecipeContent)
    try:
        return recipe_of(content) if content else None
    except ValidationError:
        return None


def write(record: BuildRecord) -> bytes:
    """Return the record's file: the same bytes for the same record."""
    content = record.model_dump(mode="json")
    # Most wheels have none of a toolkit's parts, and their records stay as they were.
    found = content["found"]
    content["found"] = {name: value for name, value in found.items() if value is not None}
    return canonical(content, indent=1)


def canonical(content: object, indent: int | None = None) -> bytes:
    """Return JSON whose keys are sorted, in UTF-8, with a line break at its end."""
    # Sorted: the order in which a recipe's tables were written must not show in the bytes.
    return (json.dumps(content, sort_keys=True, ensure_ascii=False, indent=indent) + "\n").encode()


def read(wheel: zipfile.ZipFile) -> BuildRecord | None:
    """Return the record of a wheel; None if it has none, being from elsewhere.

    Raises WheelError if what is there cannot be read as one.
    """
    place = f"{archive.metadata_directory(wheel)}/{NAME}"
    if place not in wheel.namelist():
        return None
    try:
        return BuildRecord.model_validate_json(archive.text(wheel, place, LARGEST))
    except ValidationError as fault:
        raise WheelError(
            f"The build record {NAME} cannot be read: {faults.first_line(fault)}",
            remedy="Use the version of tfwright that made the wheel, or a newer one.",
            where=wheel.filename,
        ) from fault


BILL_NAME = "sboms/tfwright.cdx.json"
"""The file's name in ``.dist-info``."""
BILL_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "tfwright.cdx.json")
"""Of the serial numbers, which follow from the content: the same materials have the same one."""


@dataclass(frozen=True)
class ArchiveComponent:
    """A file that repository rules download."""

    names: tuple[str, ...]
    """Of the repositories that are made from it."""
    urls: tuple[str, ...]
    """Addresses, or the package URL of a registry's file."""
    sha256: str
    """Of the file that the rules pin."""
    substitute: "SubstituteComponent | None" = None


@dataclass(frozen=True)
class SubstituteComponent:
    """What was used in the place of an archive."""

    sha256: str
    source: str
    """Its address, or its repository and commit."""
    reason: str


@dataclass(frozen=True)
class Materials:
    """What a wheel is made from."""

    project: str
    version: str
    url: str
    """Of the source's repository."""
    commit: str
    epoch: int
    """When the commit was made, in seconds; the bill's own time would change its bytes."""
    files: Mapping[str, str]
    """Digests of patches and assets, by path."""
    archives: Sequence[ArchiveComponent]
    clones: Sequence[tuple[str, str]] = field(default=(), repr=False)
    """Remote and commit of the repositories that rules clone."""

    image: tuple[str, str] | None = field(default=None, repr=False)
    """Name and digest of the container image that the build ran in."""

    @property
    def serial(self) -> uuid.UUID:
        """The number of the bill, which follows from what is in it.

        It covers the names of these classes and fields, too. What most bills do not have at all
        does not change theirs.
        """
        clones = "".join(f" {commit} {remote}" for remote, commit in self.clones)
        image = f" {self.image[1]} {self.image[0]}" if self.image else ""
        return uuid.uuid5(BILL_NAMESPACE, f"{self!r}{clones}{image}")
