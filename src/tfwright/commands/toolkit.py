"""CUDA and cuDNN without root: unpacked from what the user downloaded into prefixes that the recipes then use."""

import datetime as dt
import getpass
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from tfwright.documents.host_file import private_prefix
from tfwright.documents.recipe import Recipe
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.host import nvidia, versions
from tfwright.host.place import HERE
from tfwright.pipeline.job import BuildRequest
from tfwright.tools import files, unpacking

Name = Literal["cuda", "cudnn"]
RECORD = "tfwright.json"
"""What a prefix is and where it is from, in the prefix."""


_NEVER_NEEDED = re.compile("samples|nsight|documentation", re.IGNORECASE)
"""Parts of CUDA whose directories look like a prefix, and that no build uses."""


@dataclass(frozen=True)
class Kind:
    """What is to be unpacked."""

    name: Name
    title: str
    licence: str
    """Where NVIDIA publishes it."""
    parts: tuple[str, ...]
    """Directories by which a root of it is known."""
    version: Callable[[Path], str]
    """Reads it off a prefix; empty if there is none."""


def _cuda_version(prefix: Path) -> str:
    return next((seen.value for seen in nvidia.cuda(HERE, prefix)), "")


def _cudnn_version(prefix: Path) -> str:
    return nvidia.cudnn(HERE, [prefix]).value


KINDS = {
    "cuda": Kind(
        "cuda",
        "CUDA",
        "https://docs.nvidia.com/cuda/eula/",
        ("bin", "include", "lib64", "nvvm", "targets"),
        _cuda_version,
    ),
    "cudnn": Kind(
        "cudnn",
        "cuDNN",
        "https://docs.nvidia.com/deeplearning/cudnn/sla/",
        ("include", "lib64", "lib"),
        _cudnn_version,
    ),
}


@dataclass(frozen=True)
class Record:
    """Where a prefix is from."""

    archive: str
    sha256: str
    version: str
    licence_accepted_by: str
    """The user who said so; tfwright accepts nothing."""
    on: str


def insist(recipe: Recipe, *archives: str) -> None:
    """Raise RecipeError if no archive is given."""
    if not any(archives):
        wanted = ", ".join(
            f"{kind.title} {version}"
            for kind in KINDS.values()
            if (version := getattr(recipe.host, kind.name))
        )
        remedy = (
            "Give --cuda FILE, --cudnn FILE, or both."
            if wanted
            else "Name a recipe that does: --recipe; 'invoke recipes' lists them."
        )
        raise RecipeError(
            f"Nothing to unpack; {recipe.name} wants {wanted or 'neither CUDA nor cuDNN'}",
            remedy=remedy,
        )


def install(
    job: BuildRequest, kind: Kind, archive: Path, sha256: str, *, licence_accepted: bool
) -> tuple[Path, Record]:
    """Unpack what the user downloaded into the prefix that the recipe uses from then on; nothing of it is run as an installer.

    Raises RecipeError if the recipe wants none, SupplyError if the archive is not the one of the digest
    or not the version that the recipe names, HostError while the user has not accepted its licence.
    """
    prefix = private_prefix(job.host_file.build_out, job.recipe, kind.name)
    if prefix is None:
        raise RecipeError(
            f"{job.recipe.name} names no {kind.title}",
            remedy=f"Name the version in the recipe: [host] {kind.name}.",
        )
    digest = _verified(job.recipe, kind, archive, sha256)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=".unpacking-") as room:
        if not licence_accepted:
            raise _unaccepted(kind, archive, _licences(archive, Path(room), prefix))
        made = _merged(archive, Path(room), kind)
        record = _record(job.recipe, kind, archive, digest, made)
        files.write(made / RECORD, json.dumps(asdict(record), indent=1) + "\n")
        files.remove(prefix)
        made.rename(prefix)
    return prefix, record


def _verified(recipe: Recipe, kind: Kind, archive: Path, given: str) -> str:
    """Return the digest of an archive, which the user or the recipe must name."""
    if not archive.is_file():
        raise SupplyError(
            f"{archive} is not there",
            remedy="Download it from https://developer.nvidia.com, which asks for a login or a licence.",
        )
    digest = files.sha256(archive)
    wanted = given.lower() or recipe.host.sha256.get(kind.name, "")
    if not wanted:
        what = f"Nobody says that {archive.name} is the right one; its sha256 is {digest}"
        remedy = f"Compare that with another source, then give it: --{kind.name}-sha256 {digest}, or pin it in the recipe: [host.sha256] {kind.name}."
        raise SupplyError(what, remedy=remedy)
    if digest != wanted:
        raise SupplyError(
            f"{archive.name} is not the one that is wanted: its sha256 is {digest}, not {wanted}",
            remedy="Download it again.",
        )
    return digest


def _is_licence(path: PurePosixPath) -> bool:
    return any(
        word in path.name.lower() for word in ("eula", "license", "licence", "sla.")
    ) and path.suffix in {"", ".txt", ".pdf", ".rtf", ".md"}


def _licences(archive: Path, room: Path, prefix: Path) -> list[Path]:
    """Copy the licences in an archive to where they can be read; return them, the least deep first."""
    unpacking.unpack(archive, room, _is_licence)
    found = sorted(
        (path for path in room.rglob("*") if path.is_file()),
        key=lambda path: (len(path.parts), path),
    )
    shown = prefix.with_name(f"{prefix.name}-licences")
    files.remove(shown)
    for path in found:
        target = shown / path.relative_to(room)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return [shown / path.relative_to(room) for path in found]


def _unaccepted(kind: Kind, archive: Path, licences: list[Path]) -> HostError:
    where = str(licences[0]) if licences else kind.licence
    what = f"{archive.name} is NVIDIA's, under a licence that you have to accept yourself: {where}"
    return HostError(
        what,
        remedy=f"Read it (also at {kind.licence}); if you accept it, say so with --licence-accepted.",
    )


def _merged(archive: Path, room: Path, kind: Kind) -> Path:
    """Unpack an archive; return a directory below `room` that holds what its parts hold together."""
    whole, made = room / "whole", room / "made"
    for folder in (whole, made):
        folder.mkdir()
    unpacking.unpack(archive, whole)
    _unpack_inner(whole, kind)
    for root in _roots(whole, kind):
        _merge(root, made)
    _link_usual_names(made)
    _insist_on_inner_links(made, archive)
    return made


def _unpack_inner(whole: Path, kind: Kind) -> None:
    """Unpack the toolkit's own archive: up to CUDA 10.0 the file that is downloaded holds several, for driver and samples, too."""
    for inner in sorted(whole.rglob("cuda-linux*.run")) if kind.name == "cuda" else ():
        place = inner.with_suffix("")
        place.mkdir()
        unpacking.unpack(inner, place)
        inner.unlink()


def _roots(whole: Path, kind: Kind) -> list[Path]:
    """Return the directories that are laid out as a prefix is, with none inside another: from CUDA 11 on, one for each part."""
    found: list[Path] = []
    folders = (
        whole,
        *sorted(path for path in whole.rglob("*") if path.is_dir() and not path.is_symlink()),
    )
    for folder in folders:
        left_out = any(folder.is_relative_to(root) for root in found) or _NEVER_NEEDED.search(
            str(folder.relative_to(whole))
        )
        if not left_out and any((folder / part).is_dir() for part in kind.parts):
            found.append(folder)
    return found


def _merge(source: Path, target: Path) -> None:
    """Move what is in one directory into another; what is there already stays."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir() and not entry.is_symlink() and there.is_dir():
            _merge(entry, there)
        elif not there.exists() and not there.is_symlink():
            entry.rename(there)


def _link_usual_names(prefix: Path) -> None:
    """Give TensorFlow's configure the directories that it looks into, where the archive has them by another name only."""
    targets = sorted(path.relative_to(prefix) for path in prefix.glob("targets/*-linux"))
    ways = [("include", folder / "include") for folder in targets] + [
        ("lib64", folder / "lib") for folder in targets
    ]
    linux = any(prefix.glob("lib/*.so*"))
    for name, place in [*ways, *([("lib64", Path("lib"))] if linux else [])]:
        if (prefix / place).is_dir() and not (prefix / name).exists():
            (prefix / name).symlink_to(place)


def _insist_on_inner_links(prefix: Path, archive: Path) -> None:
    """Refuse links that lead out of the prefix, as one may that was harmless where it stood before the parts were merged."""
    for path in _links(prefix):
        if not path.resolve().is_relative_to(prefix.resolve()):
            raise SupplyError(
                f"{archive.name} holds a link that leads out of it: {path.relative_to(prefix)}",
                remedy="Download it again from NVIDIA.",
            )


def _links(prefix: Path) -> Iterator[Path]:
    return (path for path in prefix.rglob("*") if path.is_symlink())


def _record(recipe: Recipe, kind: Kind, archive: Path, digest: str, made: Path) -> Record:
    """Describe what was unpacked, once it is what the recipe wants."""
    version, wanted = kind.version(made), getattr(recipe.host, kind.name)
    if not version:
        raise SupplyError(
            f"There is no {kind.title} in {archive.name}",
            remedy="Name NVIDIA's archive of the whole toolkit; 'invoke toolkit --help' says which.",
        )
    if not versions.is_of(version, wanted):
        raise SupplyError(
            f"{archive.name} is {kind.title} {version}; {recipe.name} wants {wanted}",
            remedy=f"Download {kind.title} {wanted}.",
        )
    return Record(
        archive.name, digest, version, getpass.getuser(), dt.datetime.now(dt.UTC).date().isoformat()
    )
