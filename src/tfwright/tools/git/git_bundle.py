"""One commit of a mirror as a file that needs nothing else, and back.

The file is a git bundle, which `git bundle list-heads` reads. Git itself would make none of a
mirror that is shallow and lacks the files which a recipe leaves out; here those are left out of the
file too.
"""

from pathlib import Path

from tfwright.documents import opening
from tfwright.tools import files, git
from tfwright.tools.process import file_lock

SIGNATURE = "# v2 git bundle"


def pack(mirror: Path, commit: str, to: Path, *, history: bool = False) -> None:
    """Write a commit, or all its history, and what the mirror has of the files.

    Raises ToolError with git's complaint.
    """
    extent = () if history else ("--no-walk",)
    listing = ("rev-list", "--objects", *extent, "--missing=print", commit)
    objects = git.run(git.command(mirror, *listing))
    # One thread, so that the same commit gives the same bytes on every host.
    command = git.command(mirror, "pack-objects", "--stdout", "--quiet", "--threads=1")
    # rev-list marks what the mirror lacks with "?"; pack-objects would fail over it.
    present = [line for line in objects.splitlines() if not line.startswith("?")]
    with git.input_of(present) as wanted, to.open("wb") as output:
        output.write(_header(commit))
        # git writes to the same file, past this process's buffer.
        output.flush()
        git.collect(command, wanted, output)


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


def verify(bundle: Path, commit: str, scratch: Path) -> None:
    """Read a git bundle into an empty repository in `scratch`, which is made.

    Raises ToolError unless the bundle holds the commit.
    """
    scratch.mkdir(parents=True)
    git.run(git.command(scratch, "init", "--quiet", "--bare"))
    git.run(git.command(scratch, "bundle", "unbundle", str(bundle)))
    git.run(git.command(scratch, "cat-file", "-e", f"{commit}^{{commit}}"))


def unpack(bundle: Path, mirror: Path, commit: str) -> None:
    """Bring a commit into a mirror, which is made if need be.

    What the file lacks, whoever needs it has to look for.
    """
    with file_lock.held(mirror.with_suffix(".lock"), f"unbundling {commit}", wait=True):
        if not mirror.exists():
            new = mirror.with_suffix(".unbundled")
            files.remove(new)
            new.mkdir(parents=True)
            git.run(git.command(new, "init", "--quiet", "--bare"))
            new.rename(mirror)
        known = git.kind(mirror, commit) is not None
        git.run(git.command(mirror, "bundle", "unbundle", str(bundle)))
        if not known:
            _end_history(mirror, commit)


def _end_history(mirror: Path, commit: str) -> None:
    """Tell git that what came before a commit is not here, as it knows of a shallow fetch."""
    shallow = mirror / "shallow"
    before = files.text(shallow) if shallow.is_file() else ""
    files.write(shallow, f"{before}{commit}\n")
