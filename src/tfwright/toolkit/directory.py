"""A part of a toolkit that is installed on this host already, copied as an archive would be."""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tfwright.documents.toolkit import PartName
from tfwright.toolkit import tree

# Samples and profilers are most of an installed CUDA, and no build uses them.
_NEVER_NEEDED = re.compile(r"samples|nsight|doc|gds|libnvvp|tools|compute-sanitizer|pkgconfig")
_LIBRARIES: Mapping[PartName, re.Pattern[str]] = {
    "cudnn": re.compile(r"cudnn[^/]*\.h|libcudnn[^/]*\.(so[^/]*|a)"),
    "nccl": re.compile(r"nccl[^/]*\.h|libnccl[^/]*\.(so[^/]*|a)"),
    "tensorrt": re.compile(r"Nv[A-Z][^/]*\.h|libnv(infer|parsers|onnx)[^/]*\.(so[^/]*|a)"),
}
"""The files of each library, since it often shares its directory, such as /usr, with others."""


def copy(source: Path, part: PartName, into: Path) -> None:
    """Copy a part from a directory into another one, laid out as NVIDIA's archives are."""
    # In most installations /usr/local/cuda is a link.
    root = source.resolve()
    pattern = _LIBRARIES.get(part)
    if pattern:
        _copy_library(root, pattern, into)
    else:
        _copy_toolkit(root, into)


def _copy_toolkit(root: Path, into: Path) -> None:
    for path in _files(root):
        inner = path.relative_to(root)
        # A toolkit of tfwright's own is copied without its record.
        if inner != Path(tree.RECORD) and not _NEVER_NEEDED.match(inner.parts[0]):
            stays = path.is_symlink() and _leads_inside(path, root)
            _copy_file(path, into / inner, as_link=stays)


def _copy_library(root: Path, pattern: re.Pattern[str], into: Path) -> None:
    """Copy headers and libraries, wherever a distribution's own layout keeps them."""
    for folder, usual in (("include", "include"), ("lib64", "lib64"), ("lib", "lib64")):
        for path in _files(root / folder):
            target = into / usual / path.name
            if pattern.fullmatch(path.name) and not target.is_symlink() and not target.exists():
                # Headers and libraries end in one directory each, where such a link still leads.
                next_to_it = path.is_symlink() and len(path.readlink().parts) == 1
                _copy_file(path, target, as_link=next_to_it)


def _files(root: Path) -> Iterator[Path]:
    # Directories behind links are left out: inside the root they are reached without the link.
    found = (path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return iter(sorted(found))


def _leads_inside(link: Path, root: Path) -> bool:
    absolute = link.readlink().is_absolute()
    return not absolute and link.resolve().is_relative_to(root)


def _copy_file(path: Path, target: Path, *, as_link: bool) -> None:
    """Copy a file, or what a link leads to; nothing if that is missing or is a directory."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if as_link:
        target.symlink_to(path.readlink())
    elif path.is_file():
        shutil.copy(path, target)
