"""Archives made from a git mirror: GitHub's own, bit for bit, and packed commits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from tfwright.errors import SupplyError, ToolError
from tfwright.tools import git
from tfwright.tools.git import transport
from tfwright.tools.git.mirror import Origin, place
from tfwright.tools.process import file_lock, pipes
from tfwright.tools.process.command import Command
from tfwright.tools.process.environment import SYSTEM_PATH

_URL = re.compile(
    r"https?://(?:.*/)?github\.com/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/archive/"
    r"(?:refs/tags/)?(?P<ref>\w[\w./+-]*?)\.(?P<form>tar\.gz|zip)"
)


@dataclass(frozen=True)
class SourceArchive:
    """What GitHub packs at ``/OWNER/NAME/archive/REF.tar.gz`` or ``.zip``."""

    owner: str
    name: str
    ref: str
    """A commit, a tag or a branch."""
    form: Literal["tar.gz", "zip"]

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Read an address of GitHub, or of a mirror that keeps GitHub's path.

        None for any other.
        """
        found = _URL.fullmatch(url)
        if not found:
            return None
        form: Literal["tar.gz", "zip"] = (
            "zip" if found["form"] == "zip" else "tar.gz"
        )
        return cls(found["owner"], found["name"], found["ref"], form)

    @property
    def repository(self) -> str:
        """The url of the repository."""
        return f"https://github.com/{self.owner}/{self.name}.git"

    @property
    def prefix(self) -> str:
        """The directory in GitHub's archive: no leading v of a tag, dashes for slashes."""
        return f"{self.name}-{re.sub(r'^v(?=[0-9])', '', self.ref).replace('/', '-')}/"


@dataclass(frozen=True)
class Pack:
    """A commit that is packed to replace an archive."""

    repository: str
    """The url of the repository."""
    ref: str
    """The commit."""
    prefix: str
    """The directory that everything is put into, with a slash at its end; empty for none."""
    exclude: tuple[str, ...] = ()
    """Paths of the commit that are left out."""
    zipped: bool = False
    """Whether it replaces a zip file: Bazel goes by the ending of the address."""


def holding(ref: str, origin: Origin, store: Path) -> Path:
    """Return a bare repository that holds `ref`: a local mirror, or a copy in `store`.

    Raises SupplyError if the mirror does not give it.
    """
    if origin.local:
        if not origin.local.is_dir():
            raise SupplyError(
                f"{origin.local} is not a repository",
                remedy="Correct [mirrors] in the host file.",
            )
        return origin.local
    copy = place(store, f"{origin.address}#archives")
    with file_lock.held(
        copy.with_suffix(".lock"), f"git fetch {origin.address}", wait=True
    ):
        try:
            git.run(git.command(store, "init", "--quiet", "--bare", str(copy)))
            options = (
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
            )
            refs = f"+{ref}:refs/archives/{ref}"
            asked = git.command(
                copy, "fetch", *options, origin.address, refs, env=git.network()
            )
            transport.fetch(asked, copy)
        except ToolError as fault:
            raise SupplyError(
                f"{origin.address} does not give {ref}: {fault.what}",
                remedy="Name another mirror in the host file.",
            ) from fault
    return copy


def regenerate(archive: SourceArchive, mirror: Path, target: Path) -> None:
    """Write `archive` to `target` from a bare mirror of its repository.

    GitHub's bytes are those of ``git archive`` through ``gzip -n``, and for zip those of git in the
    time zone of California, which its file times are written in. Raises SupplyError if the mirror
    lacks the ref or one of its files; whether the bytes are the pinned ones, the caller checks.
    """
    form = ("--format=zip",) if archive.form == "zip" else ("--format=tar",)
    _write(mirror, (*form, f"--prefix={archive.prefix}"), (archive.ref,), target)


def pack(wanted: Pack, mirror: Path, target: Path) -> None:
    """Write a commit, less the paths that are left out, to `target`: the same bytes on every host.

    A mirror may lack the files that are left out. Raises SupplyError as `regenerate` does.
    """
    paths: tuple[str, ...] = ()
    if wanted.exclude:
        # git takes exclusions only after a path that they are taken from.
        paths = (".", *(f":(exclude,literal){path}" for path in wanted.exclude))
    if paths_lacking := lacking(mirror, wanted):
        # git archive would name the first one only.
        listed = ", ".join(f'"{path}"' for path in paths_lacking)
        raise SupplyError(
            f"{mirror} lacks files of {wanted.ref[:12]}: {', '.join(paths_lacking)}",
            remedy=f"Name a mirror that has them, or leave them out: exclude = [{listed}].",
        )
    # Not compressed: the bytes would depend on git's zlib.
    form = ("--format=zip", "-0") if wanted.zipped else ("--format=tar",)
    _write(
        mirror,
        (*form, f"--prefix={wanted.prefix}"),
        (wanted.ref, "--", *paths),
        target,
    )


def _write(
    mirror: Path, options: Sequence[str], what: Sequence[str], target: Path
) -> None:
    """Let git pack a ref, or paths of it, and gzip compress what is not a zip."""
    environment = {
        "PATH": ":".join(SYSTEM_PATH),
        # git writes a zip's file times in the local time zone.
        "TZ": "America/Los_Angeles",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_NO_LAZY_FETCH": "1",
    }
    argv = ("git", f"--git-dir={mirror}", "archive", *options, *what)
    packing = Command(argv, target.parent, environment)
    with target.open("wb") as output:
        if "--format=zip" in options:
            ended = pipes.collect(packing, into=output)
        else:
            compressing = Command(("gzip", "-n"), target.parent, environment)
            ended = pipes.through(packing, compressing, output)
    if ended.status != 0:
        complaint = ended.complaint.strip().partition("\n")[0]
        raise SupplyError(
            f"{mirror} cannot give {what[0]}: {complaint}",
            remedy="Fetch the whole repository into the mirror.",
        )


def pack_ref(prefix: str, ref: str, mirror: Path, target: Path) -> None:
    """Write a commit or tag as GitLab and other forges do: into `prefix`, through ``gzip -n``.

    Raises SupplyError as `regenerate` does.
    """
    _write(mirror, ("--format=tar", f"--prefix={prefix}/"), (ref,), target)


def write_blob(blob: str, mirror: Path, target: Path) -> None:
    """Write a file's content, given by its id, to `target`.

    Raises SupplyError if the repository lacks it.
    """
    if git.kind(mirror, blob) != "blob":
        raise SupplyError(
            f"{mirror} has no file with the id {blob}",
            remedy="Fetch the whole repository into the mirror.",
        )
    content = git.run(git.command(mirror, "cat-file", "blob", blob))
    target.write_bytes(content.encode("utf-8", "surrogateescape"))


def lacking(mirror: Path, wanted: Pack) -> list[str]:
    """Return the paths of a commit that a repository lacks, without excluded ones."""
    if git.kind(mirror, wanted.ref) != "commit":
        return []
    missing = git.missing(mirror, wanted.ref)
    absent = [
        entry.path
        for entry in git.entries(mirror, wanted.ref)
        if entry.blob in missing
    ]
    return [path for path in absent if not git.left_out(path, wanted.exclude)]
