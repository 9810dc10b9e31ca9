"""How toolkits are laid out: in Debian's packages, in wheels, in archives, as installed."""

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from tfwright import facts
from tfwright.documents.toolkit import PartName, Way
from tfwright.errors import SupplyError
from tfwright.host import nvidia
from tfwright.toolkit import nvcc, tree
from tfwright.tools import files, unpacking

LAYOUTS = Path(__file__).with_name("layout.toml")
_UNUSED_ROOTS = re.compile("samples|nsight|documentation", re.IGNORECASE)
"""Parts of NVIDIA's archives whose directories look like a prefix, and that no build uses."""
_UNUSED_FOLDERS = re.compile(r"samples|nsight|doc|gds|libnvvp|tools|compute-sanitizer|pkgconfig")
"""Most of an installed CUDA, which no build uses."""


def _target_path(path: str, rules: Sequence[tuple[str, str]]) -> str:
    """Return where a file goes; empty if the toolkit leaves it out."""
    for pattern, to in rules:
        if found := re.fullmatch(pattern, path):
            return found.expand(to)
    return ""


def arrange(raw: Path, part: PartName, way: Way, into: Path) -> None:
    """Move unpacked files to their places, and add what packages leave out: links and a profile.

    A link that leads to nothing, or out of the toolkit, is dropped: Debian has some to packages
    that no build needs.
    """
    rules = facts.read(LAYOUTS)["compiler" if part == "compiler" else way]
    for path in _files(raw):
        inner = _target_path(path.relative_to(raw).as_posix(), rules)
        target = into / inner
        # Two files may have one place, as a wheel's License and licenses/LICENSE: the first stays.
        if inner and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    nvcc.complete(into)
    for library in sorted(into.glob("lib64/lib*.so.*")):
        # The linker looks for -lcudnn as libcudnn.so. Debian has that in -dev packages, and wheels
        # have the run-time name only, such as libcudnn.so.8.
        link = library.with_name(library.name.partition(".so.")[0] + ".so")
        if not link.exists() and not link.is_symlink():
            link.symlink_to(library.name)
    # A link may lead to another one that goes: look until nothing changes.
    while dangling := [
        path for path in _links(into) if not path.exists() or _leads_out(path, into)
    ]:
        for path in dangling:
            path.unlink()
    # The modes that every host gives: archives and umasks differ in them.
    for path in into.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)


def merge(archives: Iterable[Path], scratch: Path, parts: Sequence[str]) -> Path:
    """Unpack archives of NVIDIA; return a directory below `scratch` with what their roots hold.

    `parts` are directories by which a root is known. Raises SupplyError if a link leads out.
    """
    whole, made = scratch / "whole", scratch / "made"
    made.mkdir()
    for number, archive in enumerate(archives):
        # One directory each: the archives of one release may have the same inner paths.
        folder = whole / str(number)
        folder.mkdir(parents=True)
        unpacking.unpack(archive, folder)
        # Up to CUDA 10.0 the file that is downloaded holds several, for driver and samples, too.
        for inner in sorted(folder.rglob("cuda-linux*.run")):
            inner.with_suffix("").mkdir()
            unpacking.unpack(inner, inner.with_suffix(""))
            # It is a gigabyte, and its content is unpacked now.
            inner.unlink()
        for root in _toolkit_roots(folder, parts):
            _move_into(root, made)
    normalize(made)
    return made


def _toolkit_roots(whole: Path, parts: Sequence[str]) -> list[Path]:
    """Return the directories that are laid out as a toolkit is, with none inside another.

    From CUDA 11 on an archive has one for each of its parts: cuda_cudart, cuda_nvcc and libcublas
    each have include/ and lib64/.
    """
    found: list[Path] = []
    folders = [path for path in whole.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in (whole, *sorted(folders)):
        inside = any(folder.is_relative_to(root) for root in found)
        left_out = inside or _UNUSED_ROOTS.search(str(folder.relative_to(whole)))
        if not left_out and any((folder / part).is_dir() for part in parts):
            found.append(folder)
    return found


def _move_into(source: Path, target: Path) -> None:
    """Move what is in one directory into another; what is there already stays."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir() and not entry.is_symlink() and there.is_dir():
            _move_into(entry, there)
        elif not there.exists() and not there.is_symlink():
            # A dangling link does not "exist", and rename would replace it.
            entry.rename(there)


def normalize(made: Path) -> None:
    """Give the files of NVIDIA's layouts the places that TensorFlow expects, and complete nvcc.

    Raises SupplyError if a link leads out; one may that was harmless before the parts were merged.
    """
    # nvcc of CUDA 11 and later looks below targets/; a link there leads to the new place.
    for target in sorted(made.glob("targets/*-linux")):
        for inner, usual in (("include", "include"), ("lib", "lib64")):
            if (target / inner).is_dir() and not (made / usual).exists():
                (target / inner).rename(made / usual)
                (target / inner).symlink_to(Path("../..") / usual)
    if any(made.glob("lib/*.so*")) and not (made / "lib64").exists():
        (made / "lib").rename(made / "lib64")
    for path in _links(made):
        if _leads_out(path, made):
            raise SupplyError(
                f"The toolkit holds a link that leads out of it: {path.relative_to(made)}",
                remedy="Download it again from NVIDIA.",
            )
    nvcc.complete(made)


def copy_licences(archive: Path, scratch: Path, shown: Path) -> list[Path]:
    """Copy the licences in an archive to where they can be read; the least deep one comes first."""
    unpacking.unpack(archive, scratch, _is_licence)
    found = [path for path in scratch.rglob("*") if path.is_file()]
    # CUDA's own EULA is at the top; the ones below are of parts that others wrote.
    found.sort(key=lambda path: (len(path.parts), path))
    files.remove(shown)
    for path in found:
        target = shown / path.relative_to(scratch)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return [shown / path.relative_to(scratch) for path in found]


def _is_licence(path: PurePosixPath) -> bool:
    named = any(word in path.name.lower() for word in ("eula", "license", "licence", "sla."))
    # Debian keeps the licence of every package in a file of this name.
    return path.name == "copyright" or (
        named and path.suffix in {"", ".txt", ".pdf", ".rtf", ".md"}
    )


def copy_part(source: Path, part: PartName, into: Path) -> None:
    """Copy an installed part into another directory, laid out as NVIDIA's archives are."""
    # In most installations /usr/local/cuda is a link.
    root = source.resolve()
    if library := nvidia.LIBRARIES.get(part):
        # Headers and libraries, wherever a distribution's own layout keeps them.
        for folder, usual in (("include", "include"), ("lib64", "lib64"), ("lib", "lib64")):
            for path in _files(root / folder):
                target = into / usual / path.name
                if (
                    re.fullmatch(library.files, path.name)
                    and not target.is_symlink()
                    and not target.exists()
                ):
                    # They end in one directory each, where such a link still leads.
                    next_to_it = path.is_symlink() and len(path.readlink().parts) == 1
                    _copy_file(path, target, as_link=next_to_it)
        return
    for path in _files(root):
        inner = path.relative_to(root)
        # A toolkit of tfwright's own is copied without its record.
        if inner != Path(tree.RECORD) and not _UNUSED_FOLDERS.match(inner.parts[0]):
            inside = path.is_symlink() and not (
                path.readlink().is_absolute() or _leads_out(path, root)
            )
            _copy_file(path, into / inner, as_link=inside)


def _copy_file(path: Path, target: Path, *, as_link: bool) -> None:
    """Copy a file, or what a link leads to; nothing if that is missing or is a directory."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if as_link:
        target.symlink_to(path.readlink())
    elif path.is_file():
        shutil.copy(path, target)


def _files(root: Path) -> list[Path]:
    # Directories behind links are left out: inside the root they are reached without the link.
    return sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())


def _links(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_symlink()]


def _leads_out(link: Path, root: Path) -> bool:
    return not link.resolve().is_relative_to(root.resolve())
