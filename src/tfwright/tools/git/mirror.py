"""Bare mirrors of source repositories: one per url, with what the pins of all recipes need."""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import filesystem
from tfwright.documents.recipe import SourceTable
from tfwright.errors import RecipeError, SilentServerError, SupplyError, ToolError, invoke
from tfwright.printable import listed, shell_word
from tfwright.progress import Listener
from tfwright.tools import files, trees
from tfwright.tools.git import demo, program, transport
from tfwright.tools.git.repository import LINK, REGULAR, GitRepository, TreeEntry, is_excluded
from tfwright.tools.git.transport import SILENT
from tfwright.tools.process import file_lock
from tfwright.tools.process.command import Command

ALL_OF_IT = "--depth=2147483647"
"""The depth that git takes for the whole history."""
SHOWN = 4
"""Paths that a message names before it only counts."""
LEFTOVERS = (
    "*.lock",
    "refs/**/*.lock",
    "objects/pack/tmp_*",
    "objects/??/tmp_obj_*",
    "objects/obj*",
)
"""What a git that was killed leaves behind, and GitPython."""
REMEDY = "Correct [source] of the recipe, or name a mirror that has it in the host file: [mirrors]."


@dataclass(frozen=True)
class Pin:
    """What a recipe wants of a repository."""

    url: str
    branch: str
    commit: str
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: SourceTable) -> "Pin":
        """Return what a recipe's ``[source]`` pins."""
        return cls(source.url, source.branch, source.commit, source.exclude)

    def __str__(self) -> str:
        return f"{self.branch} at {self.commit[:12]}"


class IdleExclusionError(RecipeError):
    """A path that is to be left out is not in the commit."""

    def __init__(self, path: str, pin: Pin) -> None:
        """Name the path."""
        super().__init__(
            f"source.exclude names {path}, which {pin} does not have",
            remedy="Correct the path, or drop it.",
        )
        self.path = path


class IncompleteError(SupplyError):
    """A server lacks files of the commit."""

    def __init__(self, absent: Sequence[TreeEntry], pin: Pin, address: str) -> None:
        """Name the files."""
        self.paths = [entry.path for entry in absent]
        # What a recipe has to exclude, to be copied; many paths are left to a person.
        excluding = "[...]" if len(self.paths) > SHOWN else json.dumps([*pin.exclude, *self.paths])
        super().__init__(
            f"{address} lacks {len(self.paths)} of the files of {pin}: {listed(self.paths, SHOWN)}",
            remedy=f"{REMEDY} Or leave out what the build does not need, in [source]: "
            f"exclude = {excluding}",
            lines=self.paths,
        )


@dataclass(frozen=True)
class Origin:
    """Who is asked: the url itself, or a mirror that the host file names in its place."""

    address: str

    @classmethod
    def of(cls, named: str) -> "Origin":
        """Read a url, or the path of a repository on this host.

        Raises RecipeError for anything that git might take for an option or a command.
        """
        path = filesystem.expand_home(named)
        address = f"file://{path}" if path.is_absolute() else named
        # git also knows transports that run a command, such as ext::, and ssh takes a host that
        # begins with a dash for an option.
        if address not in demo.bundled_trees() and not re.match(
            r"(https|ssh|file)://(?!-)", address
        ):
            raise RecipeError(
                f"tfwright cannot fetch from {named!r}",
                remedy=(
                    "Give a url that begins with https://, ssh:// or file://; "
                    f"the bundled ones are {' and '.join(demo.bundled_trees())}."
                ),
            )
        return cls(address)

    @property
    def local(self) -> Path | None:
        """The repository's directory, if it is one on this host."""
        if not self.address.startswith("file://"):
            return None
        path = Path(self.address.removeprefix("file://"))
        return path / ".git" if (path / ".git").is_dir() else path


def path_of(store: Path, url: str) -> Path:
    """Return where the mirror of a url lies."""
    # The name is for people; the checksum keeps two hosts' repositories of one name apart.
    name = re.sub(r"[^\w.-]", "-", url.removesuffix(".git").rpartition("/")[2])
    return store / f"{name}-{hashlib.sha256(url.encode()).hexdigest()[:8]}.git"


def fetch_command(mirror: Path, pin: Pin) -> Command:
    """Return the command that brings the pinned commit.

    With paths left out, the other files come after it. So they do where another pin leaves some
    out: of files that are not here, a server may send what has changed.
    """
    repository = GitRepository(mirror)
    return transport.fetch_command(
        repository, *_one_commit_arguments(repository, pin), progress=True
    )


def _one_commit_arguments(repository: GitRepository, pin: Pin) -> tuple[str, ...]:
    partial = repository.path.is_dir() and repository.answer(
        "config", "--get", "remote.origin.promisor"
    )
    wanted = "--filter=blob:none" if pin.exclude or partial else "--no-filter"
    return ("--depth=1", wanted, "origin", pin.commit)


def fetch(  # noqa: PLR0913 each is a fact of its own
    pin: Pin,
    store: Path,
    origin: Origin,
    listener: Listener,
    *,
    offline: bool,
    about_branch: bool = False,
) -> Path:
    """See to it that the mirror of a url holds what a pin needs, and return its directory.

    Nothing is transferred twice, and offline no server is asked. `about_branch` says whether to
    note where the branch is now. Recipes that share a mirror wait for each other. Raises
    SupplyError if the commit, or one of its files, cannot be fetched.
    """
    mirror = path_of(store, pin.url)
    pinned = PinnedMirror(mirror, pin, origin, listener)
    try:
        with locked_repository(mirror, f"git fetch {pin.url}"):
            pinned.fetch(offline=offline, about_branch=about_branch)
    except ToolError as fault:
        raise ToolError(
            fault.what,
            remedy=(
                f"Run 'invoke vault --verify': if it names {mirror}, add --repair and fetch again. "
                "Otherwise read what git said."
            ),
            evidence=fault.evidence,
        ) from fault
    return mirror


@contextmanager
def locked_repository(mirror: Path, by: str) -> Iterator[GitRepository]:
    """Hold the lock of a mirror, and give a repository that git can open.

    One that is not there yet is made; one that a kill or a bad disk damaged is mended.
    """
    with file_lock.locked(mirror.with_suffix(".lock"), by, wait=True):
        yield _open_repaired(mirror)


def _open_repaired(mirror: Path) -> GitRepository:
    repository = GitRepository(mirror)
    new = GitRepository(mirror.with_suffix(".new"))
    if not mirror.exists():
        files.remove(new.path)
        new.make().check_version()
        # Renamed at the end, so that a kill leaves no half-made mirror.
        new.path.rename(mirror)
    # The refs of pins that do not name their commit: git would not write them again.
    for pin in mirror.glob("refs/pins/*"):
        if not pin.is_file() or pin.read_bytes().strip() != pin.name.encode():
            files.remove(pin)
    try:
        repository.run("config", "--local", "--get", "core.bare")
        repository.run("for-each-ref", "--count=1")
    except ToolError:
        # It gets its HEAD and settings again; its objects, which took the time, stay. Every pin is
        # verified by its commit, so nothing of the mirror is believed for that.
        files.remove(new.path)
        new.make()
        for name in ("HEAD", "config"):
            files.remove(mirror / name)
            (new.path / name).rename(mirror / name)
        for name in ("refs", "objects"):
            (mirror / name).mkdir(exist_ok=True)
        # Only git's garbage collection asks for the pins of other recipes; each build sets its own.
        files.remove(mirror / "packed-refs")
        files.remove(new.path)
    # We hold the mirror's lock, so no git that is still running needs them.
    for pattern in LEFTOVERS:
        for leftover in mirror.glob(pattern):
            leftover.unlink(missing_ok=True)
    return repository


def fetch_ref(
    repository: GitRepository, origin: Origin, wanted: str, ref: str, *options: str
) -> None:
    """Bring a commit or a name of a server into a repository, under a ref of its own.

    Raises SupplyError if the server does not give it.
    """
    transport.check_host(origin.address)
    try:
        transport.fetch(repository, *options, origin.address, f"+{wanted}:{ref}")
    except ToolError as fault:
        raise SupplyError(
            f"{origin.address} does not give {wanted}: {program.reason(fault)}",
            remedy="Name a mirror that has it in the host file: [mirrors].",
            evidence=fault.evidence,
        ) from fault


def missing_files(repository: GitRepository, pin: Pin) -> list[TreeEntry] | None:
    """Return the wanted files that a repository lacks; None if it lacks the commit itself.

    Raises RecipeError if the pin is not a commit, has submodules, or has not what it leaves out.
    """
    kind = repository.kind(pin.commit)
    if not kind:
        return None
    if kind != "commit":
        commit = repository.commit_named(pin.commit)
        asked = f"git ls-remote {shell_word(pin.url)} {shell_word(pin.branch)}"
        raise RecipeError(
            f"{pin.commit} is a {kind}, not a commit",
            remedy=f'Write commit = "{commit}" into [source].'
            if commit
            else f"Pin a commit: '{asked}' names the newest one of the branch.",
        )
    entries = repository.entries(pin.commit)
    for entry in entries:
        # Any other mode is a commit of a submodule.
        if entry.mode not in {*REGULAR, LINK}:
            raise RecipeError(
                f"{pin} has another repository at {entry.path}",
                remedy="tfwright fetches no submodules; pin a commit that has none.",
            )
    for excluded in pin.exclude:
        # A path that leaves out nothing is probably misspelt, and too much would be fetched.
        if not any(is_excluded(entry.path, [excluded]) for entry in entries):
            raise IdleExclusionError(excluded, pin)
    return repository.missing_entries(pin.commit, pin.exclude)


def size(repository: Path) -> int:
    """Return the bytes that a repository's objects take on disk."""
    return trees.size(repository / "objects")


class PinnedMirror(GitRepository):
    """A mirror that is brought to what a recipe pins; its lock is held."""

    def __init__(self, mirror: Path, pin: Pin, origin: Origin, listener: Listener) -> None:
        """Name what is wanted, and who is asked for it."""
        super().__init__(mirror)
        self._pin, self._origin, self._listener = pin, origin, listener

    def fetch(self, *, offline: bool, about_branch: bool) -> None:
        """Bring what the mirror lacks, and name the commit in it."""
        pin = self._pin
        if pin.url in demo.bundled_trees():
            made = demo.commit_tree(self.path, pin.url)
            if pin.commit != made:
                raise RecipeError(
                    f"{pin.url} is commit {made} now, and the recipe pins {pin.commit}",
                    remedy=f'Write commit = "{made}" into [source].',
                )
        elif not offline:
            self._fetch_missing()
            if about_branch:
                self._note_branch()
        elif missing_files(self, pin) != []:
            raise SupplyError(
                f"{pin} is not in the mirror of {pin.url}, and an offline build downloads nothing",
                remedy=(
                    f"Run '{invoke('fetch')}' once with a network, "
                    "or copy the mirror's directory from a host that has it."
                ),
                where=self.path,
            )
        # A ref of its own, or git's garbage collection would remove the commit.
        self.run("update-ref", f"refs/pins/{pin.commit}", pin.commit)

    def _fetch_missing(self) -> None:
        """Transfer what the mirror lacks, and note what that took."""
        pin, origin = self._pin, self._origin
        self.run("config", "remote.origin.url", origin.address)
        if (absent := missing_files(self, pin)) == []:
            return
        before, begun = size(self.path), time.monotonic()
        # The commit, then the wanted files that did not come with it.
        try:
            transport.check_host(origin.address)
            if absent is None:
                self._fetch_commit()
                absent = missing_files(self, pin)
            if absent:
                self._fetch_files(absent)
                absent = missing_files(self, pin)
        except (ToolError, SilentServerError) as fault:
            # A partial clone answers like a server that is broken; here it can be looked into.
            local = GitRepository(origin.local) if origin.local else None
            if local and local.exists() and (absent := missing_files(local, pin)):
                raise IncompleteError(absent, pin, origin.address) from fault
            raise SupplyError(
                f"{pin} could not be fetched from {origin.address}: {program.reason(fault)}",
                remedy=SILENT if isinstance(fault, SilentServerError) else REMEDY,
                evidence=fault.evidence,
            ) from fault
        if absent is None:
            raise SupplyError(
                f"{pin} was not found at {origin.address}: the branch does not lead to it",
                remedy=REMEDY,
            )
        if absent:
            raise IncompleteError(absent, pin, origin.address)
        seconds, new_bytes = time.monotonic() - begun, size(self.path) - before
        self._listener.note(f"Fetched {pin} in {seconds:.0f} s: {new_bytes / 1e6:.1f} MB")

    def _fetch_commit(self) -> None:
        """Ask for the commit alone.

        A server that gives none but its branches is asked for the whole branch.
        """
        try:
            transport.fetch(self, *_one_commit_arguments(self, self._pin), listener=self._listener)
        except ToolError as fault:
            # One that only has git's files to give knows no depth.
            plain = _complains_of(fault, "not support shallow")
            if not (plain or _complains_of(fault, UNNAMED)):
                raise
            branch = self._pin.branch
            # Servers with git's protocol of before 2018 only give the tips of branches and tags.
            self._listener.note(
                f"The server gives whole branches only, so all of {branch} is fetched"
            )
            # The pinned commit may lie far behind the tip: without its history it would not come
            # along.
            depth = () if plain else (ALL_OF_IT,)
            whole = (*depth, "--no-filter", "origin", f"refs/heads/{branch}")
            transport.fetch(self, *whole, listener=self._listener)

    def _fetch_files(self, wanted: Sequence[TreeEntry]) -> None:
        """Ask for the missing files by their ids.

        A server that gives no single files is asked for all.
        """
        some = ("--filter=blob:none", "--stdin", "origin")
        # On standard input: TensorFlow's thousands of ids are too long for a command line.
        ids = sorted({entry.blob for entry in wanted})
        try:
            transport.fetch(self, *some, listener=self._listener, lines=ids, claiming=False)
        except ToolError as fault:
            if not _complains_of(fault, UNNAMED):
                raise
            # Without --refetch git sees the commit here, and asks for nothing.
            all_of_them = ("--refetch", "--depth=1", "--no-filter", "origin", self._pin.commit)
            transport.fetch(self, *all_of_them, listener=self._listener)

    def _note_branch(self) -> None:
        """Note that the branch has moved, is gone, or does not lead to the pinned commit any more.

        It is never followed.
        """
        pin, note = self._pin, self._listener.note
        try:
            transport.check_host(self._origin.address)
            tip = transport.list_refs(self, "origin", f"refs/heads/{pin.branch}").partition("\t")[0]
        except (ToolError, SupplyError):
            note(
                f"The server did not say whether branch {pin.branch} has moved; "
                "the pinned commit is in the mirror"
            )
            return
        if not tip:
            note(f"The server has no branch {pin.branch}; the pinned commit decides")
        elif tip != pin.commit:
            lost = (
                " and does not contain the pinned commit (it never did, or it was rewritten)"
                if self._lacks_commit()
                else ""
            )
            note(
                f"Branch {pin.branch} is at {tip[:12]} now{lost}; {pin.commit[:12]} is built, "
                "as pinned"
            )

    def _lacks_commit(self) -> bool:
        """Say whether the branch is known not to contain the pinned commit; no file is fetched."""
        # No history is needed from before the pinned commit, and none of the files.
        since = f"--shallow-since={self.epoch(self._pin.commit)}"
        look = GitRepository(self.path.with_suffix(".look"))
        files.remove(look.path)
        branch = f"refs/heads/{self._pin.branch}"
        try:
            look.make()
            transport.fetch(look, since, "--filter=tree:0", self._origin.address, branch)
        except SupplyError:
            return False
        except ToolError as fault:
            return _complains_of(fault, "no commits selected")
        else:
            return not look.kind(self._pin.commit)
        finally:
            files.remove(look.path)


UNNAMED = "unadvertised object"
"""How a server says that it gives only what its branches and tags name, as old ones do."""


def _complains_of(fault: ToolError, words: str) -> bool:
    return any(words in line for line in (fault.what, *fault.evidence.lines))


BUNDLE_SIGNATURE = "# v2 git bundle"


def write_bundle(repository: Path, commit: str, to: Path, *, history: bool = False) -> None:
    """Write a commit, or all its history, and what the repository has of the files.

    Raises ToolError with git's complaint.
    """
    extent = () if history else ("--no-walk",)
    source = GitRepository(repository)
    objects = source.run("rev-list", "--objects", *extent, "--missing=print", commit)
    # rev-list marks what the mirror lacks with "?"; pack-objects would fail over it.
    present = [line for line in objects.splitlines() if not line.startswith("?")]
    with to.open("wb") as output:
        output.write(_bundle_header(commit))
        # git writes to the same file, past this process's buffer.
        output.flush()
        # One thread, so that the same commit gives the same bytes on every host.
        options = ("--stdout", "--quiet", "--threads=1")
        source.collect("pack-objects", *options, lines=present, into=output)


def _bundle_header(commit: str) -> bytes:
    """Return all that stands before the pack: the commit under one name, without prerequisites."""
    return f"{BUNDLE_SIGNATURE}\n{commit} refs/pins/{commit}\n\n".encode()


def verify_bundle(bundle: Path, commit: str, scratch: Path, pin: Pin | None) -> None:
    """Read a git bundle into an empty repository in `scratch`, which is made.

    Raises ToolError unless the file begins as `write_bundle` writes it, and holds what a pin wants
    of the commit; without a pin, the commit with all its history.
    """
    header = _bundle_header(commit)
    with filesystem.open_file(bundle) as stream:
        # Other headers can switch on what git knows besides: a filter, after which it takes missing
        # objects for promised ones, or another form of ids.
        if stream.read(len(header)) != header:
            raise ToolError(f"{bundle} does not begin as a bundle of {commit}", remedy=REMEDY)
    repository = GitRepository(scratch).make()
    repository.run("bundle", "unbundle", str(bundle))
    repository.run("cat-file", "-e", f"{commit}^{{commit}}")
    if pin is None:
        verify_history(repository, commit)
    elif missing_files(repository, pin) != []:
        raise ToolError(f"{bundle} lacks files of {commit}", remedy=REMEDY)


def verify_history(repository: GitRepository, commit: str) -> None:
    """Raise ToolError if an object of a commit, or of one before it, is missing."""
    # unbundle accepts a pack that lacks objects; rev-list fails over the first one missing.
    repository.run("rev-list", "--objects", "--quiet", commit)


def read_bundle(bundle: Path, place: Path, commit: str) -> None:
    """Bring a commit into a mirror, which is made if need be.

    What the file lacks, whoever needs it has to look for.
    """
    with locked_repository(place, f"unbundling {commit}") as repository:
        known = repository.kind(commit)
        repository.run("bundle", "unbundle", str(bundle))
        if not known:
            # What came before the commit is not here, as after a shallow fetch.
            shallow = place / "shallow"
            before = files.text(shallow) if shallow.is_file() else ""
            files.write(shallow, f"{before}{commit}\n")
