"""One commit of a mirror as a file that needs nothing else, and back.

The file is a git bundle, which `git bundle list-heads` reads. Git itself would make none of a
mirror that is shallow and lacks the files which a recipe leaves out; here those are left out of the
file too.
"""

from pathlib import Path

from tfwright.documents import opening
from tfwright.tools import files
from tfwright.tools.git import mirror
from tfwright.tools.git.repository import GitRepository

SIGNATURE = "# v2 git bundle"


def pack(repository: Path, commit: str, to: Path, *, history: bool = False) -> None:
    """Write a commit, or all its history, and what the repository has of the files.

    Raises ToolError with git's complaint.
    """
    extent = () if history else ("--no-walk",)
    source = GitRepository(repository)
    objects = source.run("rev-list", "--objects", *extent, "--missing=print", commit)
    # rev-list marks what the mirror lacks with "?"; pack-objects would fail over it.
    present = [line for line in objects.splitlines() if not line.startswith("?")]
    with to.open("wb") as output:
        output.write(_header(commit))
        # git writes to the same file, past this process's buffer.
        output.flush()
        # One thread, so that the same commit gives the same bytes on every host.
        options = ("--stdout", "--quiet", "--threads=1")
        source.collect("pack-objects", *options, lines=present, into=output)


def _header(commit: str) -> bytes:
    """Return all that stands before the pack: the commit under one name, without prerequisites."""
    return f"{SIGNATURE}\n{commit} refs/pins/{commit}\n\n".encode()


def begins_with(bundle: Path, commit: str) -> bool:
    """Tell whether a file begins as `pack` writes a bundle of this commit.

    Other headers can switch on what git knows besides: a filter, after which it takes missing
    objects for promised ones, or another form of ids.
    """
    header = _header(commit)
    with opening.plain(bundle) as stream:
        return stream.read(len(header)) == header


def verify(bundle: Path, commit: str, scratch: Path, *, history: bool = False) -> None:
    """Read a git bundle into an empty repository in `scratch`, which is made.

    Raises ToolError unless the bundle holds the commit, or that with all its history.
    """
    repository = GitRepository(scratch).make()
    repository.run("bundle", "unbundle", str(bundle))
    repository.run("cat-file", "-e", f"{commit}^{{commit}}")
    if history:
        insist_on_history(repository, commit)


def insist_on_history(repository: GitRepository, commit: str) -> None:
    """Raise ToolError if an object of a commit, or of one before it, is missing."""
    # unbundle accepts a pack that lacks objects; rev-list fails over the first one missing.
    repository.run("rev-list", "--objects", "--quiet", commit)


def unpack(bundle: Path, place: Path, commit: str) -> None:
    """Bring a commit into a mirror, which is made if need be.

    What the file lacks, whoever needs it has to look for.
    """
    with mirror.held(place, f"unbundling {commit}") as repository:
        known = repository.kind(commit) is not None
        repository.run("bundle", "unbundle", str(bundle))
        if not known:
            # What came before the commit is not here, as after a shallow fetch.
            shallow = place / "shallow"
            before = files.text(shallow) if shallow.is_file() else ""
            files.write(shallow, f"{before}{commit}\n")
