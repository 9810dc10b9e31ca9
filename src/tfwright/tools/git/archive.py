"""Archives made from a git mirror: those of forges, bit for bit, and packed commits."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from tfwright.errors import SupplyError, ToolError
from tfwright.tools.git import mirror as mirrors
from tfwright.tools.git import program
from tfwright.tools.git.mirror import Origin
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.process.command import SYSTEM_PATH

CALIFORNIA, UTC = "America/Los_Angeles", "UTC"
"""The time zones in which GitHub, and other forges, write the file times of a zip."""
ZONES = (UTC, CALIFORNIA)
Form = Literal["tar.gz", "tar.bz2", "tar.xz", "tar", "zip"]
FORMS: tuple[Form, ...] = get_args(Form)
"""The first one is the usual one."""
_REF = r"(?:refs/(?:tags|heads)/)?(?P<ref>\w[\w./+-]*?)"
_FORM = r"(?P<form>tar\.gz|tgz|tar\.bz2|tar|zip)"
_OF_GITHUB = r"(?P<host>github\.com)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/"
_URLS = (
    # The forge takes what follows such a ref for the name of the file alone.
    re.compile(
        rf"https?://(?:.*/)?{_OF_GITHUB}archive/"
        rf"(?P<ref>v?(?P<version>[\w.+-]+?))/(?P=name)-v?(?P=version)\.{_FORM}"
    ),
    re.compile(rf"https?://(?:.*/)?{_OF_GITHUB}archive/{_REF}\.{_FORM}"),
    # Where the addresses above redirect to: some trees name these.
    re.compile(rf"https?://(?:.*/)?codeload\.{_OF_GITHUB}{_FORM}/{_REF}"),
    # Rules for Bazel are released as an archive that git made in the same way.
    re.compile(
        rf"https?://(?:.*/)?{_OF_GITHUB}releases/download/{_REF}/(?P=name)[.-][\w.-]+?\.{_FORM}"
    ),
)
_GITLABS = tuple(
    re.compile(
        rf"https?://{host}/(?P<owner>[\w./-]+)/(?P<name>[\w.-]+)/-/archive/"
        rf"{_REF}/[\w.+-]+?\.{_FORM}"
    )
    # A mirror keeps the forge's path below its own host, so the last host counts.
    for host in (r"(?:.*/)?(?P<host>gitlab\.[\w.-]+)", r"(?P<host>[\w.-]+)")
)
_ENDINGS: Mapping[str, Form] = {
    **{form: form for form in FORMS},
    "tgz": "tar.gz",
    "txz": "tar.xz",
    **dict.fromkeys(("jar", "war", "aar", "nupkg", "whl"), "zip"),
}
COMPRESSORS: Mapping[Form, str] = {
    "tar.gz": "gzip -cn",
    "tar.bz2": "bzip2",
    # By one thread: several ones make other blocks.
    "tar.xz": "xz -cT1",
}
"""What forges compress with. gzip's header then has neither name nor time."""
LARGEST = 16 * 2**30
"""Bytes of all files of a commit that is packed. A few trees that repeat each other have any number
of files, and the checksum is known only at the end."""


@dataclass(frozen=True)
class Pack:
    """A commit's files as one archive, as git packs them."""

    repository: str
    """The url of the repository."""
    ref: str
    """A commit, a tag or a branch."""
    prefix: str
    """The directory that everything is put into, with a slash at its end; empty for none."""
    exclude: tuple[str, ...] = ()
    """Paths of the commit that are left out."""
    form: Form = "tar.gz"
    zone: str = CALIFORNIA
    """The time zone that a zip's file times are written in."""
    stored: bool = False
    """Whether a zip is not compressed, so that its bytes do not depend on git's zlib."""

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Read an address of GitHub, or of a mirror that keeps GitHub's path, or of a GitLab.

        A forge packs what is at ``/OWNER/NAME/archive/REF.tar.gz`` or ``.zip``, or a release. None
        for any other address.
        """
        for pattern in (*_URLS, *_GITLABS):
            if found := pattern.fullmatch(url):
                gitlab = pattern in _GITLABS
                # Dashes for slashes, and of GitHub no leading v of a tag.
                tag = found["ref"] if gitlab else re.sub(r"^v(?=[0-9])", "", found["ref"])
                return cls(
                    f"https://{found['host']}/{found['owner']}/{found['name']}.git",
                    found["ref"],
                    f"{found['name']}-{tag.replace('/', '-')}/",
                    form=_ENDINGS[found["form"]],
                    zone=UTC if gitlab else CALIFORNIA,
                )
        return None


def form_of(url: str) -> Form | None:
    """Return what the ending of a url says about its archive; None if git packs no such form."""
    found = re.search(r"\.(tar\.\w+|\w+)$", url)
    return _ENDINGS.get(found[1]) if found else None


def repository_with(ref: str, origin: Origin, store: Path) -> Path:
    """Return a bare repository that holds `ref`: a local mirror, or a copy in `store`.

    Raises SupplyError if the mirror does not give it.
    """
    if origin.local:
        if not origin.local.is_dir():
            raise SupplyError(
                f"{origin.local} is not a repository", remedy="Correct [mirrors] in the host file."
            )
        return origin.local
    copy = mirrors.path_of(store, f"{origin.address}#archives")
    with mirrors.locked_repository(copy, f"git fetch {origin.address}") as repository:
        mirrors.fetch_ref(repository, origin, ref, f"refs/archives/{ref}", "--depth=1")
    return copy


@dataclass(frozen=True)
class PackedCommit:
    """The commit of which an archive was packed, or could be."""

    repository: str
    """The url of the repository."""
    commit: str
    absent: tuple[str, ...] = ()
    """The files that the mirror lacks of it."""


class PartialMirrorError(SupplyError):
    """A mirror has a commit, and not all of its files."""

    def __init__(self, mirror: Path, found: PackedCommit) -> None:
        """Name all files that a mirror lacks of what is wanted."""
        self.found = found
        listed = ", ".join(f'"{path}"' for path in found.absent)
        super().__init__(
            f"{mirror} lacks files of {found.commit[:12]}: {', '.join(found.absent)}",
            remedy=f"Name a mirror that has them, or leave them out: exclude = [{listed}].",
        )


def write_archive(wanted: Pack, mirror: Path, target: Path) -> PackedCommit:
    """Let git write an archive to `target`, with another program that compresses what is not a zip.

    A forge's bytes are those of ``git archive`` through ``gzip -n``, and for zip those of git in
    the forge's time zone. Raises SupplyError if the mirror lacks the ref, PartialMirrorError if it
    lacks files of it that are not left out; whether the bytes are the pinned ones, the caller
    checks.
    """
    repository = GitRepository(mirror)
    # git itself says best what is wrong with a ref that is not there.
    if repository.kind(wanted.ref) and (size := repository.size(wanted.ref)) > LARGEST:
        raise SupplyError(
            f"{wanted.ref} of {mirror} has {size:,} bytes of files",
            remedy=f"Do not use this repository: no archive has more than {LARGEST:,}.",
        )
    # Another git would compress by its own zlib.
    compressor = COMPRESSORS.get(wanted.form)
    name = (compressor or "").partition(" ")[0]
    if name and not shutil.which(name, path=":".join(SYSTEM_PATH)):
        raise SupplyError(f"{name} is not installed", remedy=f"Install {name}.")
    settings = ("-c", f"tar.{wanted.form}.command={compressor}") if compressor else ()
    stored = ("-0",) if wanted.stored else ()
    options = (f"--format={wanted.form}", f"--prefix={wanted.prefix}", *stored)
    # git takes exclusions only after a path that they are taken from.
    paths = (".", *(f":(exclude,literal){path}" for path in wanted.exclude))
    argv = (*settings, "archive", *options, wanted.ref, "--", *(paths if wanted.exclude else ()))
    # git writes a zip's file times in the local time zone.
    packing = repository.command(*argv, env={"TZ": wanted.zone})
    try:
        with target.open("wb") as output:
            program.collect(packing, into=output)
    except ToolError as fault:
        # git names only the first file that is not there.
        commit = repository.commit_named(wanted.ref)
        absent = repository.missing_entries(commit, wanted.exclude) if commit else ()
        if commit and absent:
            paths = tuple(entry.path for entry in absent)
            raise PartialMirrorError(
                mirror, PackedCommit(wanted.repository, commit, paths)
            ) from fault
        raise SupplyError(
            f"{mirror} cannot give {wanted.ref}: {program.reason(fault)}",
            remedy="Fetch the whole repository into the mirror.",
            evidence=fault.evidence,
        ) from fault
    return PackedCommit(wanted.repository, repository.commit_named(wanted.ref) or wanted.ref)


def write_blob(blob: str, mirror: Path, target: Path) -> None:
    """Write a file's content, given by its id, to `target`.

    Raises SupplyError if the repository lacks it.
    """
    repository = GitRepository(mirror)
    if repository.kind(blob) != "blob":
        raise SupplyError(
            f"{mirror} has no file with the id {blob}",
            remedy="Fetch the whole repository into the mirror.",
        )
    # Into the file and not into memory: an archive may have a gigabyte.
    with target.open("wb") as output:
        repository.collect("cat-file", "blob", blob, into=output)
