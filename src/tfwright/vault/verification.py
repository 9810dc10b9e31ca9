"""Whether everything that build_out keeps for later builds still is what it was."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import TfwrightError
from tfwright.toolkit import tree
from tfwright.tools import files
from tfwright.tools.bazel import client
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.python import installed, venv
from tfwright.vault.usage import BAZEL, VENV, VaultEntry

FETCH = "invoke fetch"
TOOLKIT = "invoke toolkit"


@dataclass(frozen=True)
class Damage:
    """Something that is not what it was."""

    path: Path
    why: str
    remedy: str
    """The command that brings it again once it is removed."""
    removable: bool = True
    """Whether `--repair` may remove it: a toolkit is large, and its licence was accepted by
    hand."""


def damages(build_out: Path, entries: Sequence[VaultEntry]) -> Iterator[Damage]:
    """Yield what is damaged of the vault's entries, the git mirrors and the toolkits."""
    for entry in entries:
        if why := _of_entry(entry):
            yield Damage(entry.path, why, FETCH)
    for mirror in mirrors(build_out):
        if why := _of_mirror(mirror):
            yield Damage(mirror, why, FETCH)
    for root in toolkits(build_out):
        if why := _of_toolkit(root):
            yield Damage(root, why, TOOLKIT, removable=False)


def mirrors(build_out: Path) -> list[Path]:
    """Return the git repositories that recipes share."""
    return sorted((build_out / "git").glob("*.git"))


def toolkits(build_out: Path) -> list[Path]:
    """Return the CUDA toolkits that have a record."""
    return sorted(path.parent for path in (build_out / "toolkits").glob(f"*/{tree.RECORD}"))


def _of_entry(entry: VaultEntry) -> str:
    # An archive, a package and a Bazel binary lie in a directory named after their
    # checksum.
    if entry.file and files.sha256(entry.file) != entry.path.name:
        return "its checksum is not the one that it is kept under"
    if entry.kind == VENV and (changed := installed.changes(entry.path)):
        return f"{_counted(changed)} not as installed"
    # No RECORD has the interpreter's link, the venv's settings or a script.
    if entry.kind == VENV and venv.differs(entry.path):
        return "a program or setting of the venv is not as it was made"
    if entry.kind == BAZEL and entry.file and client.options_damaged(entry.file):
        return "options.json cannot be read"
    return ""


def _of_mirror(mirror: Path) -> str:
    """Let git read every pack: a changed byte changes the pack's checksum."""
    packs = sorted(mirror.glob("objects/pack/*.idx"))
    try:
        # verify-pack reads packs only: a damaged config, HEAD, ref or list of shallow commits
        # shows in these two.
        repository = GitRepository(mirror)
        repository.run("config", "--local", "--get", "core.bare")
        repository.run("rev-list", "--all", "--count")
        if packs:
            repository.run("verify-pack", "--", *map(str, packs))
        # It does not read the objects that are files of their own.
        if damaged := sorted(name for name, sound in repository.loose_objects() if not sound):
            return f"object {damaged[0]} does not have the bytes of its id"
    except TfwrightError as fault:
        return fault.what
    return ""


def _of_toolkit(root: Path) -> str:
    recorded = _recorded(root)
    if not recorded:
        return f"{tree.RECORD} cannot be read"
    # Files that no package brought are left alone: users may add theirs to a toolkit.
    # Every byte is read: that is what the user asked for.
    now = tree.content(root)
    changed = [path for path, checksum in recorded.items() if now.get(path) != checksum]
    return f"{_counted(changed)} not as unpacked" if changed else ""


def _recorded(root: Path) -> dict[str, str]:
    """Return the checksums of the files that the packages of a toolkit brought."""
    recorded: dict[str, str] = {}
    for part in tree.read(root).parts.values():
        recorded |= part.files
    return recorded


def _counted(changed: Sequence[str]) -> str:
    more = f" and {len(changed) - 1} more files are" if len(changed) > 1 else " is"
    return f"{changed[0]}{more}"
