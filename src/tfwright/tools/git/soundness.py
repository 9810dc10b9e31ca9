"""Objects of git, hashed again: git believes what it reads from its own disk."""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from tfwright.errors import Evidence, SupplyError
from tfwright.tools import files, git

_NO_OBJECT = "0" * 40


def insist(repository: Path, root: str, blobs: Iterable[str] = ()) -> None:
    """Insist that a commit or tree, its directories and some files have the bytes of their ids.

    Raises SupplyError for an object that was damaged or replaced.
    """
    listing = git.command(repository, "ls-tree", "-r", "-d", "-z", "--full-tree", root)
    lines = git.run(listing, git.LARGEST_LISTING).split("\0")[:-1]
    # "040000 tree <id>", a tab and the path; a submodule is a commit of another repository.
    fields = (line.partition("\t")[0].split() for line in lines)
    folders = [name for _, kind, name in fields if kind == "tree"]
    whole = git.run(git.command(repository, "rev-parse", f"{root}^{{tree}}"))
    wanted = {root, whole.strip(), *folders, *blobs} - {_NO_OBJECT}
    _refuse(repository, _unsound(repository, sorted(wanted)))


def insist_on_files(tree: Path, content: str, only: Collection[str] | None = None) -> None:
    """Insist that the files of a tree have the bytes that a content's ids stand for.

    With `only`, of these paths. Raises SupplyError for an object that was damaged or replaced.
    """
    repository = git.repository_of(tree)
    entries = git.entries(repository, content)
    wanted = (entry for entry in entries if only is None or entry.path in only)
    wrong = [
        f"{entry.blob} ({entry.path})"
        for entry in wanted
        if _is_other(tree / entry.path, entry.mode, entry.blob)
    ]
    _refuse(repository, wrong)


def _is_other(path: Path, mode: int, blob: str) -> bool:
    """Say whether a checked out file has other bytes than its id says."""
    # What is left out is not there, and whether it should be is asked elsewhere.
    if not os.path.lexists(path):
        return False
    if mode == git.LINK:
        return id_of("blob", os.fsencode(path.readlink())) != blob
    return mode in git.REGULAR and id_of("blob", files.content(path)) != blob


def id_of(kind: str, content: bytes) -> str:
    """Return the id that git gives to an object."""
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(header + content).hexdigest()  # noqa: S324 git's own


def _unsound(repository: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the ids of those objects whose bytes do not have their id."""
    with git.input_of(names) as given:
        asked = git.command(repository, "cat-file", "--batch")
        answer = git.collect(asked, given, most=git.LARGEST_TEXTS).printed
    place = 0
    while place < len(answer):
        end = answer.index(b"\n", place)
        # "<id> tree <size>", or "<id> missing".
        name, kind, *size = answer[place:end].decode().split(" ")
        if not size:
            yield name
            place = end + 1
            continue
        until = end + 1 + int(size[0])
        if id_of(kind, answer[end + 1 : until]) != name:
            yield name
        place = until + 1


def _refuse(repository: Path, wrong: Iterable[str]) -> None:
    if names := list(wrong):
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise SupplyError(
            f"git's object {names[0]}{more} does not have the bytes of its id: it was damaged or "
            "replaced on this disk",
            remedy=git.REPAIR,
            evidence=Evidence(where=str(repository), lines=names[:20]),
        )
