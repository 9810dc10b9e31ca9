"""Archives made from a git mirror: those of forges, bit for bit, and packed commits."""

import re
import shutil
from collections.abc import Mapping, Sequence
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
Form = Literal["tar.gz", "tar.bz2", "tar", "zip"]
_REF = r"(?:refs/(?:tags|heads)/)?(?P<ref>\w[\w./+-]*?)"
_FORM = r"(?P<form>tar\.gz|tgz|tar\.bz2|tar|zip)"
_URLS = (
    re.compile(
        r"https?://(?:.*/)?(?P<host>github\.com)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/archive/"
        rf"{_REF}\.{_FORM}"
    ),
    # Where the addresses above redirect to: some trees name these.
    re.compile(
        r"https?://(?:.*/)?codeload\.(?P<host>github\.com)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/"
        rf"{_FORM}/{_REF}"
    ),
    # Rules for Bazel are released as an archive that git made in the same way.
    re.compile(
        r"https?://(?:.*/)?(?P<host>github\.com)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/"
        rf"releases/download/{_REF}/(?P=name)-[\w.-]+?\.{_FORM}"
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
_FORMS: Mapping[str, Form] = {"tgz": "tar.gz", **{form: form for form in get_args(Form)}}
COMPRESSORS: Mapping[Form, str] = {"tar.gz": "gzip -cn", "tar.bz2": "bzip2"}
"""What forges compress with. gzip's header then has neither name nor time."""
LARGEST = 16 * 2**30
"""Bytes of all files of a commit that is packed. A few trees that repeat each other have any number
of files, and the checksum is known only at the end."""


@dataclass(frozen=True)
class SourceArchive:
    """What a forge packs at ``/OWNER/NAME/archive/REF.tar.gz`` or ``.zip``, or a release."""

    owner: str
    name: str
    ref: str
    """A commit, a tag or a branch."""
    form: Form
    host: str = "github.com"
    gitlab: bool = False
    """Whether it is named and packed as GitLab does."""

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Read an address of GitHub, or of a mirror that keeps GitHub's path, or of a GitLab.

        None for any other.
        """
        for pattern in (*_URLS, *_GITLABS):
            if found := pattern.fullmatch(url):
                return cls(
                    found["owner"],
                    found["name"],
                    found["ref"],
                    _FORMS[found["form"]],
                    found["host"],
                    pattern in _GITLABS,
                )
        return None

    @property
    def repository(self) -> str:
        """The url of the repository."""
        return f"https://{self.host}/{self.owner}/{self.name}.git"

    @property
    def prefix(self) -> str:
        """The directory in the archive: dashes for slashes, and of GitHub no leading v of a tag."""
        tag = self.ref if self.gitlab else re.sub(r"^v(?=[0-9])", "", self.ref)
        return f"{self.name}-{tag.replace('/', '-')}/"

    @property
    def zone(self) -> str:
        """The time zone that a zip's file times are written in."""
        return UTC if self.gitlab else CALIFORNIA


@dataclass(frozen=True)
class Layout:
    """How git packs the files of a commit."""

    form: Form
    prefix: str
    """The directory that everything is put into, with a slash at its end; empty for none."""
    zone: str = CALIFORNIA
    """The time zone that a zip's file times are written in."""
    stored: bool = False
    """Whether a zip is not compressed."""


def form_of(url: str) -> Form | None:
    """Return what the ending of a url says about its archive; None if git packs no such form."""
    found = re.search(rf"\.{_FORM}$", url)
    return _FORMS[found["form"]] if found else None


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
                f"{origin.local} is not a repository", remedy="Correct [mirrors] in the host file."
            )
        return origin.local
    copy = mirrors.place(store, f"{origin.address}#archives")
    with mirrors.held(copy, f"git fetch {origin.address}") as repository:
        mirrors.bring_ref(repository, origin, ref, f"refs/archives/{ref}", "--depth=1")
    return copy


class PartialMirrorError(SupplyError):
    """A mirror has a commit, and not all of its files."""

    def __init__(self, mirror: Path, repository: str, commit: str, absent: Sequence[str]) -> None:
        """Name the files; `repository` is the url that the mirror stands for."""
        self.repository, self.commit, self.absent = repository, commit, tuple(absent)
        listed = ", ".join(f'"{path}"' for path in absent)
        super().__init__(
            f"{mirror} lacks files of {commit[:12]}: {', '.join(absent)}",
            remedy=f"Name a mirror that has them, or leave them out: exclude = [{listed}].",
        )


def regenerate(archive: SourceArchive, mirror: Path, target: Path) -> None:
    """Write `archive` to `target` from a bare mirror of its repository.

    A forge's bytes are those of ``git archive`` through ``gzip -n``, and for zip those of git in
    the forge's time zone, which its file times are written in. Raises SupplyError if the mirror
    lacks the ref, PartialMirrorError if it lacks files of it; whether the bytes are the pinned
    ones, the caller checks.
    """
    layout = Layout(archive.form, archive.prefix, archive.zone)
    try:
        pack_ref(layout, archive.ref, mirror, target)
    except SupplyError:
        repository = GitRepository(mirror)
        if commit := repository.commit_named(archive.ref):
            _insist_on_files(repository, mirror, Pack(archive.repository, commit, ""))
        raise


def _insist_on_files(repository: GitRepository, mirror: Path, wanted: Pack) -> None:
    """Raise PartialMirrorError for files of a commit that are not there; all at once."""
    # git archive would name the first one only.
    absent = [entry.path for entry in repository.lacking(wanted.ref, wanted.exclude)]
    if absent:
        raise PartialMirrorError(mirror, wanted.repository, wanted.ref, absent)


def pack(wanted: Pack, mirror: Path, target: Path) -> None:
    """Write a commit, less the paths that are left out, to `target`: the same bytes on every host.

    A mirror may lack the files that are left out. Raises SupplyError as `regenerate` does.
    """
    paths: tuple[str, ...] = ()
    if wanted.exclude:
        # git takes exclusions only after a path that they are taken from.
        paths = (".", *(f":(exclude,literal){path}" for path in wanted.exclude))
    repository = GitRepository(mirror)
    if repository.kind(wanted.ref) == "commit":
        _insist_on_files(repository, mirror, wanted)
    # Not compressed: the bytes would depend on git's zlib.
    form: Form = "zip" if wanted.zipped else "tar.gz"
    layout = Layout(form, wanted.prefix, stored=wanted.zipped)
    pack_ref(layout, wanted.ref, mirror, target, paths)


def pack_ref(
    layout: Layout, ref: str, mirror: Path, target: Path, paths: Sequence[str] = ()
) -> None:
    """Let git pack a commit or tag, with another program that compresses what is not a zip.

    With `paths`, git's patterns, only what they match. Raises SupplyError as `regenerate` does.
    """
    repository = GitRepository(mirror)
    # git itself says best what is wrong with a ref that is not there.
    if repository.kind(ref) is not None and (size := repository.size(ref)) > LARGEST:
        raise SupplyError(
            f"{ref} of {mirror} has {size:,} bytes of files",
            remedy=f"Do not use this repository: no archive has more than {LARGEST:,}.",
        )
    # Another git would compress by its own zlib.
    compressor = COMPRESSORS.get(layout.form)
    name = (compressor or "").partition(" ")[0]
    if name and not shutil.which(name, path=":".join(SYSTEM_PATH)):
        raise SupplyError(f"{name} is not installed", remedy=f"Install {name}.")
    settings = ("-c", f"tar.{layout.form}.command={compressor}") if compressor else ()
    options = (f"--format={layout.form}", f"--prefix={layout.prefix}")
    stored = ("-0",) if layout.stored else ()
    argv = (*settings, "archive", *options, *stored, ref, "--", *paths)
    # git writes a zip's file times in the local time zone.
    packing = repository.command(*argv, env={"TZ": layout.zone})
    try:
        with target.open("wb") as output:
            program.collect(packing, into=output)
    except ToolError as fault:
        raise SupplyError(
            f"{mirror} cannot give {ref}: {program.reason(fault)}",
            remedy="Fetch the whole repository into the mirror.",
            evidence=fault.evidence,
        ) from fault


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
