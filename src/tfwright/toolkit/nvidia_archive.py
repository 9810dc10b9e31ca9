"""NVIDIA's own archives of CUDA and its libraries: each of their layouts, merged into one root."""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from tfwright.errors import SupplyError
from tfwright.toolkit import nvcc
from tfwright.tools import files, unpacking

_NEVER_NEEDED = re.compile("samples|nsight|documentation", re.IGNORECASE)
"""Parts of CUDA whose directories look like a prefix, and that no build uses."""
_LICENCE_WORDS = ("eula", "license", "licence", "sla.")
_LICENCE_SUFFIXES = {"", ".txt", ".pdf", ".rtf", ".md"}


def merge(archives: Iterable[Path], room: Path, parts: Sequence[str]) -> Path:
    """Unpack archives; return a directory below `room` that holds what their roots hold together.

    `parts` are directories by which a root is known. Raises SupplyError if a link leads out.
    """
    whole, made = room / "whole", room / "made"
    made.mkdir()
    for number, archive in enumerate(archives):
        # One directory each: the archives of one release may have the same inner paths.
        place = _unpacked(archive, whole / str(number))
        for root in _roots(place, parts):
            _merge(root, made)
    settle(made)
    return made


def _unpacked(archive: Path, place: Path) -> Path:
    """Unpack an archive, and the packages that it holds."""
    place.mkdir(parents=True)
    unpacking.unpack(archive, place)
    _unpack_inner(place)
    return place


def settle(made: Path) -> None:
    """Give the files of NVIDIA's layouts the places that TensorFlow expects, and complete nvcc.

    Raises SupplyError if a link leads out.
    """
    _give_usual_names(made)
    _insist_on_inner_links(made)
    nvcc.settle(made)


def licences(archive: Path, room: Path, shown: Path) -> list[Path]:
    """Copy the licences in an archive to where they can be read; the least deep one comes first."""
    unpacking.unpack(archive, room, _is_licence)
    found = [path for path in room.rglob("*") if path.is_file()]
    # CUDA's own EULA is at the top; the ones below are of parts that others wrote.
    found.sort(key=lambda path: (len(path.parts), path))
    files.remove(shown)
    for path in found:
        target = shown / path.relative_to(room)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return [shown / path.relative_to(room) for path in found]


def _is_licence(path: PurePosixPath) -> bool:
    named = any(word in path.name.lower() for word in _LICENCE_WORDS)
    # Debian keeps the licence of every package in a file of this name.
    return (named and path.suffix in _LICENCE_SUFFIXES) or path.name == "copyright"


def _unpack_inner(whole: Path) -> None:
    """Unpack the toolkit's own archive.

    Up to CUDA 10.0 the file that is downloaded holds several, for driver and samples, too.
    """
    for inner in sorted(whole.rglob("cuda-linux*.run")):
        place = inner.with_suffix("")
        place.mkdir()
        unpacking.unpack(inner, place)
        # It is a gigabyte, and its content is unpacked now.
        inner.unlink()


def _roots(whole: Path, parts: Sequence[str]) -> list[Path]:
    """Return the directories that are laid out as a toolkit is, with none inside another.

    From CUDA 11 on an archive has one for each of its parts.
    """
    found: list[Path] = []
    folders = [path for path in whole.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in (whole, *sorted(folders)):
        inside = any(folder.is_relative_to(root) for root in found)
        left_out = inside or _NEVER_NEEDED.search(str(folder.relative_to(whole)))
        # CUDA 11 split its archive: cuda_cudart, cuda_nvcc, libcublas each have
        # include/ and lib64/.
        if not left_out and any((folder / part).is_dir() for part in parts):
            found.append(folder)
    return found


def _merge(source: Path, target: Path) -> None:
    """Move what is in one directory into another; what is there already stays."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir() and not entry.is_symlink() and there.is_dir():
            _merge(entry, there)
        elif not there.exists() and not there.is_symlink():
            # A dangling link does not "exist", and rename would replace it.
            entry.rename(there)


def _give_usual_names(root: Path) -> None:
    """Move headers and libraries to where TensorFlow's configure looks, if they have another place.

    nvcc of CUDA 11 and later looks below targets/; a link there leads to the new place.
    """
    for target in sorted(root.glob("targets/*-linux")):
        for inner, usual in (("include", "include"), ("lib", "lib64")):
            if (target / inner).is_dir() and not (root / usual).exists():
                (target / inner).rename(root / usual)
                (target / inner).symlink_to(Path("../..") / usual)
    if any(root.glob("lib/*.so*")) and not (root / "lib64").exists():
        (root / "lib").rename(root / "lib64")


def _insist_on_inner_links(root: Path) -> None:
    """Refuse links that lead out; one may that was harmless before the parts were merged."""
    for path in _links(root):
        if not path.resolve().is_relative_to(root.resolve()):
            inner = path.relative_to(root)
            raise SupplyError(
                f"The toolkit holds a link that leads out of it: {inner}",
                remedy="Download it again from NVIDIA.",
            )


def _links(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_symlink())
