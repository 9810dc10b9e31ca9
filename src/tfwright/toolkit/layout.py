"""Where the files of packages belong in a toolkit: Debian's and the wheels' layouts differ."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tfwright.documents.toolkit import PartName, Way
from tfwright.toolkit import nvcc

LICENCES = "licences"
"""Directory of the licence texts in a toolkit, by the package that each is from."""


class Move(NamedTuple):
    """Files of a package, by a pattern of their whole path, and where they go in the toolkit."""

    pattern: str
    to: str
    """With ``\\1`` and so on for the groups of the pattern; empty for what is left out."""


DEBIAN = (
    # nvcc and nvprof here are shell scripts that start the real programs by absolute
    # paths.
    Move(r"usr/bin/(nvcc|nvprof)", ""),
    # Links into /etc, and wrappers that choose one of Debian's compilers.
    Move(r"usr/lib/nvidia-cuda-toolkit/bin/(nvcc\.profile|gcc|g\+\+)", ""),
    Move(r"usr/lib/nvidia-cuda-toolkit/bin/(cicc)", r"nvvm/bin/\1"),
    Move(r"usr/lib/nvidia-cuda-toolkit/bin/(.+)", r"bin/\1"),
    Move(r"usr/lib/nvidia-cuda-toolkit/(libdevice/.+)", r"nvvm/\1"),
    Move(r"usr/bin/(.+)", r"bin/\1"),
    Move(r"usr/include/(nvvm\.h)", r"nvvm/include/\1"),
    Move(r"usr/include/((?:cupti|generated_|nvperf)[^/]*\.h)", r"extras/CUPTI/include/\1"),
    Move(r"usr/include/(.+)", r"include/\1"),
    Move(r"usr/lib/[^/]+-linux-gnu/(libnvvm\.[^/]+)", r"nvvm/lib64/\1"),
    Move(r"usr/lib/[^/]+-linux-gnu/(libcupti[^/]+)", r"extras/CUPTI/lib64/\1"),
    Move(r"usr/lib/[^/]+-linux-gnu/(stubs/[^/]+|lib[^/]+\.(?:so[^/]*|a))", r"lib64/\1"),
    Move(r"usr/share/doc/([^/]+)/copyright", rf"{LICENCES}/\1"),
)
"""CUDA as Debian packs it, from 9 to 12."""
WHEELS = (
    Move(r".*(?:__init__\.pyc?|__pycache__/.*)", ""),
    Move(r"nvidia/[^/]+/lib/(.+)", r"lib64/\1"),
    Move(r"nvidia/[^/]+/((?:bin|include|nvvm)/.+)", r"\1"),
    Move(r"([^/]+)\.dist-info/(?:licenses/)?(?:License|LICENSE)[^/]*", rf"{LICENCES}/\1"),
)
"""NVIDIA's packages of the Python index: a folder for each part, from CUDA 13 on one for all."""
COMPILER = (
    Move(r"usr/share/doc/([^/]+)/copyright", rf"{LICENCES}/\1"),
    Move(r"usr/share/.*", ""),
    Move(r"(lib|lib64|usr)/(.+)", r"\1/\2"),
)
"""A compiler finds its own parts from its own place, if they keep their places to each other."""


def moves(part: PartName, way: Way) -> Sequence[Move]:
    """Return the rules for the files of one part that came in one way."""
    if part == "compiler":
        return COMPILER
    return DEBIAN if way == "debian" else WHEELS


def place(path: str, rules: Sequence[Move]) -> str:
    """Return where a file goes; empty if the toolkit leaves it out."""
    for rule in rules:
        # The first rule wins: the narrow ones stand before the wide ones.
        found = re.fullmatch(rule.pattern, path)
        if found:
            return found.expand(rule.to)
    return ""


def arrange(raw: Path, rules: Sequence[Move], into: Path) -> None:
    """Move unpacked files to their places, and add what packages leave out: links and a profile.

    A link that leads to nothing, or out of the toolkit, is dropped: Debian has some to packages
    that no build needs.
    """
    for path in sorted(_files(raw)):
        if target := place(path.relative_to(raw).as_posix(), rules):
            _move(path, into / target)
    _complete(into)
    _drop_dangling(into)
    _settle_modes(into)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def _complete(root: Path) -> None:
    """Complete nvcc, and give the linker the name of each library.

    A wheel has only the run-time name, such as ``libcudnn.so.8``.
    """
    nvcc.settle(root)
    for library in sorted(root.glob("lib64/lib*.so.*")):
        # The linker looks for -lcudnn as libcudnn.so, which Debian has in -dev packages
        # and wheels leave out.
        link = library.with_name(library.name.partition(".so.")[0] + ".so")
        if not link.exists() and not link.is_symlink():
            link.symlink_to(library.name)


def _drop_dangling(root: Path) -> None:
    # A link may lead to another one that goes: look until nothing changes.
    while dangling := [path for path in _links(root) if not _leads_inside(path, root)]:
        for path in dangling:
            path.unlink()


def _links(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_symlink())


def _leads_inside(link: Path, root: Path) -> bool:
    return link.exists() and link.resolve().is_relative_to(root.resolve())


def _settle_modes(root: Path) -> None:
    """Set the modes that every host gives: archives and umasks differ in them."""
    for path in root.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)


def _move(path: Path, target: Path) -> None:
    # Two files may have one place, as a wheel's License and licenses/LICENSE: the first
    # stays.
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
