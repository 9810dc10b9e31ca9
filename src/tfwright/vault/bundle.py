"""The bundle: everything that one recipe's build needs in one file, for a host without a network.

It is a tar of one form only: the manifest, then the members that it lists, in its order, and
nothing else. Reading it, no header is interpreted: each has to be, byte for byte, the one that is
written for that member. A link, a device, a sparse file, a second member of one name or a path out
of the bundle cannot be said in this form.
"""

import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from tfwright.documents import faults, filesystem
from tfwright.documents.names import Commit, InnerPath, Line, RecipeName, Sha256, file_name
from tfwright.documents.toml import Table
from tfwright.errors import HostError, SupplyError, invoke
from tfwright.progress import Progress, Report
from tfwright.tools import files, json_text
from tfwright.tools.process import file_lock
from tfwright.vault.lock import LARGEST

MANIFEST = "manifest.json"
SOURCE = "source.bundle"
"""The member that holds the recipe's commit."""
LARGEST_MANIFEST = 16 * 2**20
"""In bytes: the manifest is read whole before anything of the bundle has been verified."""
MOST_MEMBERS = 10_000
"""TensorFlow's bundles have a few hundred; each member costs files and checksums."""
LONGEST_VERSION = 100
"""Characters of a version or a platform, which are shown and become parts of paths."""
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
MEMBER_TIME = 315532800
"""The time of all members, 1980-01-01: tar warns of earlier ones."""

Kind = Literal[
    "recipe",
    "lock",
    "patch",
    "source",
    "bazel",
    "archive",
    "clone",
    "package",
    "tool",
    "toolkit",
    "image",
    "added",
]
UNPACKING = "unbundling"
"""Directory of build_out in which a bundle is unpacked and verified before its files move on."""


class BundleMember(Table):
    """A file in a bundle."""

    kind: Kind
    """``patch``: a patch or an asset; ``source``: the pinned commit as a git bundle; ``clone``: a
    commit that a rule clones, as a git bundle too; ``tool``: a package that tfwright itself needs;
    ``toolkit``: one of CUDA, its libraries or its compiler; ``image``: a blob of the container
    image."""
    name: InnerPath
    """For a patch its path under patches/, for an archive and a part of a toolkit its checksum, for
    a clone its commit, else a file's name."""
    sha256: Sha256
    size: Annotated[int, Field(ge=0, le=LARGEST, strict=True)]
    """In bytes."""

    @model_validator(mode="after")
    def _only_patches_have_directories(self) -> Self:
        if self.kind != "patch":
            file_name(self.name)
        return self

    @property
    def path(self) -> str:
        """Where it is in the tar."""
        return f"{self.kind}/{self.name}"


Unpacked = Mapping[BundleMember, Path]
"""Where each member of a bundle was unpacked, or is taken from."""


@contextmanager
def unpacking_folder(build_out: Path, name: str) -> Iterator[Path]:
    """Give an empty directory on the disk that the files of a bundle go to.

    It is removed at the end.
    """
    folder = build_out / UNPACKING
    command = f"invoke bundle --unpack {name}"
    with file_lock.locked(_unpacking_lock(build_out), command, wait=True):
        # An unpacking that was killed leaves its files behind.
        files.remove(folder)
        folder.mkdir()
        try:
            yield folder
        finally:
            files.remove(folder)


def discard_leftovers(build_out: Path) -> None:
    """Remove what a killed `invoke bundle --unpack` left; a running one is not disturbed."""
    folder = build_out / UNPACKING
    if folder.is_dir():
        with (
            suppress(HostError),
            file_lock.locked(_unpacking_lock(build_out), "removing leftovers"),
        ):
            files.remove(folder)


def _unpacking_lock(build_out: Path) -> Path:
    return build_out / f"{UNPACKING}.lock"


def _check_distinct(members: tuple[BundleMember, ...]) -> tuple[BundleMember, ...]:
    """Refuse two members that some file system would take for one file."""
    # macOS ignores case: there the second of the two would replace the first.
    if len({member.path.casefold() for member in members}) != len(members):
        raise ValueError("two members have the same name")
    return members


class Absent(Table):
    """What a build needs and a bundle does not hold, because of its licence or login."""

    name: Line
    files: dict[InnerPath, Sha256] = {}
    """By path under its own root: what lay on the host where the bundle was made."""


class BundledClone(Table):
    """A commit that a rule clones, by the name of the member that holds it."""

    remote: Line
    """As the rule spells it."""
    commit: Commit


VersionText = Annotated[Line, Field(max_length=LONGEST_VERSION)]


class Manifest(Table):
    """What is in a bundle.

    Its digest stands for the whole bundle, each of whose bytes follows from it.
    """

    format: Literal[1] = 1
    tfwright: VersionText
    """The version that wrote it."""
    recipe: RecipeName
    platform: Annotated[
        str, StringConstraints(pattern=r"^[a-z]+-[a-z0-9_]+$", max_length=LONGEST_VERSION)
    ]
    """For which the programs and packages are, ``linux-x86_64``."""
    python: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$")]
    """For which tfwright's own packages are."""
    bazel: VersionText
    """Bazel's version."""
    members: Annotated[
        tuple[BundleMember, ...], Field(max_length=MOST_MEMBERS), AfterValidator(_check_distinct)
    ]
    clones: tuple[BundledClone, ...] = ()
    absent: tuple[Absent, ...] = ()

    def members_of(self, kind: Kind) -> list[BundleMember]:
        """Return the members of one kind."""
        return [member for member in self.members if member.kind == kind]

    def encode(self) -> bytes:
        """Return the manifest as it stands in the bundle."""
        return (json.dumps(self.model_dump(mode="json"), indent=1) + "\n").encode()

    @property
    def sha256(self) -> str:
        """The digest that stands for the whole bundle."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all members."""
        return sum(member.size for member in self.members)


Content = tuple[BundleMember, Path]
"""A member and the file that it is made from."""


def member_of(kind: Kind, source: Path, name: str = "", sha256: str = "") -> Content:
    """Describe a file that is to become a member; it is hashed unless its digest is known."""
    digest, size = sha256 or files.sha256(source), source.stat().st_size
    return BundleMember(kind=kind, name=name or source.name, sha256=digest, size=size), source


def remaking_remedy(recipe: str) -> str:
    """Return what to do about a bundle that was not made as it has to be."""
    return f"Make the bundle of {recipe} again on the host that it is from: '{invoke('bundle')}'."


def write(to: Path, manifest: Manifest, sources: Unpacked, report: Report) -> None:
    """Write a bundle, whole or not at all: the same bytes for the same manifest.

    Raises SupplyError if a file is not what the manifest says.
    """
    done = 0
    with files.replacing(to) as temporary, temporary.open("wb") as output:
        output.write(_packed_manifest(manifest))
        for member in manifest.members:
            source = sources[member]
            output.write(_header(member.path, member.size))
            with source.open("rb") as stream:
                # Its checksum was taken earlier, and somebody may have written to it since.
                reader = _ExactReader(
                    stream,
                    f"{source} changed while it was bundled",
                    "Run the command again when nothing writes to that file.",
                )
                _copy_member(reader, member, output)
            output.write(_padding(member.size))
            done += member.size
            report(Progress(done, manifest.size, "B", member.path))
        output.write(END)


def _packed_manifest(manifest: Manifest) -> bytes:
    content = manifest.encode()
    return _header(MANIFEST, len(content)) + content + _padding(len(content))


def _header(path: str, size: int) -> bytes:
    """Return the one header that a member can have."""
    info = tarfile.TarInfo(path)
    # Everything else keeps tarfile's default: mode 644, no user, no group, a plain file.
    info.size, info.mtime = size, MEMBER_TIME
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


@dataclass(frozen=True)
class _ExactReader:
    """A stream that must hold all expected bytes, and the message for one that does not."""

    stream: BinaryIO
    complaint: str
    remedy: str = "Copy the bundle again, and compare its size and checksum with the original."

    def read(self, count: int) -> bytes:
        piece = self.stream.read(count)
        if len(piece) != count:
            raise self.error("it ends there")
        return piece

    def expect(self, content: bytes, what: str) -> None:
        if self.read(len(content)) != content:
            raise self.error(what)

    def error(self, why: str) -> SupplyError:
        return SupplyError(f"{self.complaint}: {why}", remedy=self.remedy)


def _copy_member(source: _ExactReader, member: BundleMember, output: BinaryIO) -> None:
    """Copy a member's bytes, and insist on its digest."""
    digest = hashlib.sha256()
    # In pieces: a bundle holds files of several gigabytes.
    for piece in files.chunks(source.read, member.size):
        digest.update(piece)
        output.write(piece)
    if digest.hexdigest() != member.sha256:
        raise source.error(f"sha256 is {digest.hexdigest()}, not {member.sha256}")


def read(path: Path) -> Manifest:
    """Read a bundle's manifest.

    Its members are not looked at, but the file has just the length that they make.

    Raises SupplyError for anything that is not a whole bundle, naming the member where it goes
    wrong.
    """
    with _open(path) as stream:
        manifest = _read_manifest(_reader(path, stream, MANIFEST))
        length = path.stat().st_size
        expected = stream.tell() + len(END)
        for member in manifest.members:
            expected += len(_header(member.path, member.size)) + member.size
            expected += len(_padding(member.size))
        # Bytes after the end would be carried along unseen and unverified.
        if expected != length:
            why = f"it has {length:,} bytes, and its members make {expected:,}"
            raise _reader(path, stream, "its end").error(why)
        return manifest


def _open(path: Path) -> BinaryIO:
    try:
        return filesystem.open_file(path)
    except OSError as fault:
        raise SupplyError(
            f"{path} cannot be read: {fault.strerror}",
            remedy="Check the path and its permissions.",
            where=path,
        ) from fault


def _read_manifest(bundle: _ExactReader) -> Manifest:
    """Read the manifest, which has to be written as this version would write it."""
    head = bundle.stream.read(BLOCK)
    # Where tar keeps a size, in octal digits. The comparison below verifies the whole header. int()
    # alone would also take blanks, signs and underscores.
    digits = re.fullmatch(rb"[0-7]+", head[124:135])
    size = int(digits[0], 8) if digits else -1
    if not 0 <= size <= LARGEST_MANIFEST or head != _header(MANIFEST, size):
        raise bundle.error("it does not begin as one")
    content = bundle.read(size)
    bundle.expect(_padding(size), "it is not padded as it has to be")
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as fault:
        raise bundle.error(faults.first_line(fault)) from fault
    # One text for one manifest: its checksum identifies the bundle.
    if manifest.encode() != content:
        raise bundle.error("it is not written as this version writes it")
    return manifest


def _reader(path: Path, stream: BinaryIO, member: str) -> _ExactReader:
    return _ExactReader(stream, f"{path.name} is not a whole bundle, at {member}")


def unpack(path: Path, manifest: Manifest, into: Path, report: Report) -> Unpacked:
    """Write each member to a file in `into`, an empty directory, and return where it is.

    No name of the bundle becomes a path.

    Raises SupplyError at the first member that is not what the manifest says, HostError if there is
    no room for them.
    """
    # Before the first byte: unpacking takes minutes, and a full disk stops other builds too.
    free = shutil.disk_usage(into).free
    if free < manifest.size:
        raise HostError(
            f"The bundle needs {manifest.size:,} bytes in {into}, and {free:,} are free",
            remedy="Free some space, or name a larger disk with --into.",
        )
    placed: dict[BundleMember, Path] = {}
    done = 0
    with _open(path) as stream:
        # The file was opened a second time, so it may be another one than was read before.
        reader = _reader(path, stream, MANIFEST)
        reader.expect(_packed_manifest(manifest), "it changed while it was read")
        for number, member in enumerate(manifest.members):
            # A number for a name: nothing that the bundle says decides where a file is written.
            placed[member] = into / str(number)
            reader = _reader(path, stream, member.path)
            header = _header(member.path, member.size)
            reader.expect(header, "its header is not the one that the manifest asks for")
            with placed[member].open("xb") as output:
                _copy_member(reader, member, output)
            reader.expect(_padding(member.size), "it is not padded as it has to be")
            done += member.size
            report(Progress(done, manifest.size, "B", member.path))
        _reader(path, stream, "its end").expect(END, "it does not end as it has to")
    return placed


def write_folder(folder: Path, manifest: Manifest, sources: Unpacked) -> None:
    """Make a folder that reads like an unpacked bundle, of links to the files of its members."""
    files.write(folder / MANIFEST, manifest.encode())
    for member, source in sources.items():
        link = folder / member.path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source.absolute())


def read_folder(folder: Path) -> Manifest:
    """Return the manifest in a folder that another host fills. Raises SupplyError."""
    if (found := json_text.load_or_none(folder / MANIFEST, Manifest)) is None:
        raise SupplyError(
            f"{folder} does not hold the inputs of a build",
            remedy=f"'{invoke('build --on workers')}' fills such folders by itself.",
            where=folder / MANIFEST,
        )
    return found


def verified_folder(folder: Path, manifest: Manifest) -> Unpacked:
    """Return where the members are that a folder has.

    Raises SupplyError for one that is not what the manifest says.
    """
    found = {}
    for member in manifest.members:
        path = folder / member.path
        if not path.is_file():
            continue
        if files.sha256(path) != member.sha256:
            raise SupplyError(
                f"{member.path} came with other bytes than it was sent",
                remedy="Build it again; look at the disks of both machines.",
                where=path,
            )
        found[member] = path
    return found
