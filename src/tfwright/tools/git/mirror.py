"""Bare mirrors of source repositories: one per url, with what the pins of all recipes need."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import account
from tfwright.documents.recipe import SourceTable
from tfwright.errors import (
    Evidence,
    RecipeError,
    SilentServerError,
    SupplyError,
    TfwrightError,
    ToolError,
    invoke,
)
from tfwright.printable import listed, shell_word
from tfwright.progress import Listener, Progress
from tfwright.tools import files, git, trees
from tfwright.tools.git import TreeEntry, demo, transport
from tfwright.tools.process import file_lock
from tfwright.tools.process.command import Command

MOST_OBJECTS = 10**12
"""What no repository has; progress that counts further is made up."""
ALL_OF_IT = "--depth=2147483647"
"""The depth that git takes for the whole history."""
SHOWN = 4
"""Paths that a message names before it only counts."""
LEFTOVERS = ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*", "objects/??/tmp_obj_*")
"""What a git that was killed leaves behind."""
REMEDY = "Correct the recipe, or name a mirror that has it in the host file: [mirrors]"


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


@dataclass(frozen=True)
class Origin:
    """Who is asked: the url itself, or a mirror that the host file names in its place."""

    address: str

    @classmethod
    def of(cls, named: str) -> "Origin":
        """Read a url, or the path of a repository on this host.

        Raises RecipeError for anything that git might take for an option or a command.
        """
        path = account.expanded(named)
        address = f"file://{path}" if path.is_absolute() else named
        # git also knows transports that run a command, such as ext::, and ssh takes a host that
        # begins with a dash for an option.
        if address not in demo.trees() and not re.match(r"(https|ssh|file)://(?!-)", address):
            raise RecipeError(
                f"tfwright cannot fetch from {named!r}",
                remedy=(
                    "Give a url that begins with https://, ssh:// or file://; "
                    f"the bundled ones are {' and '.join(demo.trees())}."
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


def place(store: Path, url: str) -> Path:
    """Return where the mirror of a url lies."""
    # The name is for people; the checksum keeps two hosts' repositories of one name apart.
    name = re.sub(r"[^\w.-]", "-", url.removesuffix(".git").rpartition("/")[2])
    return store / f"{name}-{hashlib.sha256(url.encode()).hexdigest()[:8]}.git"


def fetching(mirror: Path, pin: Pin) -> Command:
    """Return the command that brings the pinned commit.

    With paths left out, the other files come after it.
    """
    return _fetch(
        mirror,
        "--depth=1",
        "--filter=blob:none" if pin.exclude else "--no-filter",
        "origin",
        pin.commit,
    )


def bring(  # noqa: PLR0913 each is a fact of its own
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
    mirror = place(store, pin.url)
    with (
        file_lock.held(mirror.with_suffix(".lock"), f"git fetch {pin.url}", wait=True),
        _explaining_damage(mirror),
    ):
        open_or_make(mirror)
        if pin.url in demo.trees():
            _insist_on_bundled(pin, demo.commit(mirror, pin.url))
        elif offline:
            _insist_on_all(mirror, pin)
        else:
            _update(mirror, pin, origin, listener)
            if about_branch:
                _tell_of_branch(mirror, pin, origin, listener)
        # A ref of its own, or git's garbage collection would remove the commit.
        git.run(git.command(mirror, "update-ref", f"refs/pins/{pin.commit}", pin.commit))
    return mirror


@contextmanager
def _explaining_damage(mirror: Path) -> Iterator[None]:
    """Name the command that helps where git cannot use a mirror of ours."""
    try:
        yield
    except ToolError as fault:
        raise ToolError(
            fault.what,
            remedy=(
                f"Run 'invoke vault --verify': if it names {mirror}, add --repair and fetch again. "
                "Otherwise read what git said."
            ),
            evidence=fault.evidence,
        ) from fault


def open_or_make(mirror: Path) -> None:
    """Make a mirror that is not there yet; mend one that a kill or a bad disk damaged.

    Its lock has to be held.
    """
    if not mirror.exists():
        _make(mirror)
    _drop_broken_pins(mirror)
    if not _opens(mirror):
        _mend(mirror)
    # We hold the mirror's lock, so no git that is still running needs them.
    for pattern in LEFTOVERS:
        for leftover in mirror.glob(pattern):
            leftover.unlink(missing_ok=True)


def _make(mirror: Path) -> None:
    new = _empty(mirror.with_suffix(".new"))
    git.insist_on_version(new)
    git.run(git.command(new, "init", "--quiet", "--bare"))
    # Renamed at the end, so that a kill leaves no half-made mirror.
    new.rename(mirror)


def _opens(mirror: Path) -> bool:
    """Tell whether git takes a directory for a repository, and can read its settings and refs."""
    try:
        git.run(git.command(mirror, "config", "--local", "--get", "core.bare"))
        git.run(git.command(mirror, "for-each-ref", "--count=1"))
    except ToolError:
        return False
    return True


def _mend(mirror: Path) -> None:
    """Give a mirror its HEAD and settings again; its objects, which took the time, stay.

    Every pin is verified by its commit, so nothing of the mirror is believed for that.
    """
    new = _empty(mirror.with_suffix(".new"))
    git.run(git.command(new, "init", "--quiet", "--bare"))
    for name in ("HEAD", "config"):
        files.remove(mirror / name)
        (new / name).rename(mirror / name)
    for name in ("refs", "objects"):
        (mirror / name).mkdir(exist_ok=True)
    # Only git's garbage collection asks for the pins of other recipes; each build sets its own.
    files.remove(mirror / "packed-refs")
    files.remove(new)


def _drop_broken_pins(mirror: Path) -> None:
    """Remove the refs of pins that do not name their commit: git would not write them again."""
    for pin in mirror.glob("refs/pins/*"):
        named = pin.read_bytes().strip() if pin.is_file() else b""
        if named != pin.name.encode():
            files.remove(pin)


def _empty(folder: Path) -> Path:
    files.remove(folder)
    folder.mkdir()
    return folder


def _insist_on_bundled(pin: Pin, made: str) -> None:
    if pin.commit != made:
        raise RecipeError(
            f"{pin.url} is commit {made} now, and the recipe pins {pin.commit}",
            remedy=f'Write commit = "{made}" into [source].',
        )


def is_complete(repository: Path, pin: Pin) -> bool:
    """Tell whether a repository has the commit and all files that the pin wants of it.

    Raises ToolError if git cannot list the commit's files, RecipeError as `bring` does.
    """
    return _lacking(repository, pin) == []


def _insist_on_all(mirror: Path, pin: Pin) -> None:
    if not is_complete(mirror, pin):
        raise SupplyError(
            f"{pin} is not in the mirror of {pin.url}, and an offline build downloads nothing",
            remedy=(
                f"Run '{invoke('fetch')}' once with a network, "
                "or copy the mirror's directory from a host that has it."
            ),
            evidence=Evidence(where=str(mirror)),
        )


def _update(mirror: Path, pin: Pin, origin: Origin, listener: Listener) -> None:
    """Transfer what the mirror lacks."""
    git.run(git.command(mirror, "config", "remote.origin.url", origin.address))
    lacking = _lacking(mirror, pin)
    if lacking is None or lacking:
        before, begun = size(mirror), time.monotonic()
        _transfer(mirror, pin, origin, listener)
        listener.note(_bill(pin, origin, size(mirror) - before, time.monotonic() - begun))


def _lacking(repository: Path, pin: Pin) -> list[TreeEntry] | None:
    """Return the wanted files that a repository lacks; None if it lacks the commit itself.

    Raises RecipeError if the pin is not a commit, has submodules, or has not what it leaves out.
    """
    kind = git.kind(repository, pin.commit)
    if kind is None:
        return None
    if kind != "commit":
        commit = git.commit_named(repository, pin.commit)
        asked = f"git ls-remote {shell_word(pin.url)} {shell_word(pin.branch)}"
        raise RecipeError(
            f"{pin.commit} is a {kind}, not a commit",
            remedy=f'Write commit = "{commit}" into [source].'
            if commit
            else f"Pin a commit: '{asked}' names the newest one of the branch.",
        )
    entries = git.entries(repository, pin.commit)
    _refuse_submodules(pin, entries)
    _refuse_idle(pin, entries)
    missing = git.missing(repository, pin.commit)
    lacking = [entry for entry in entries if entry.blob in missing]
    return [entry for entry in lacking if not git.left_out(entry.path, pin.exclude)]


def _refuse_submodules(pin: Pin, entries: Sequence[TreeEntry]) -> None:
    # Any other mode is a commit of a submodule.
    known = {*git.REGULAR, git.LINK}
    for entry in entries:
        if entry.mode not in known:
            raise RecipeError(
                f"{pin} has another repository at {entry.path}",
                remedy="tfwright fetches no submodules; pin a commit that has none.",
            )


def _refuse_idle(pin: Pin, entries: Sequence[TreeEntry]) -> None:
    # A path that leaves out nothing is probably misspelt, and too much would be fetched.
    for excluded in pin.exclude:
        if not any(git.left_out(entry.path, [excluded]) for entry in entries):
            raise IdleExclusionError(excluded, pin)


def _transfer(mirror: Path, pin: Pin, origin: Origin, listener: Listener) -> None:
    """Bring the commit, then the wanted files that did not come with it."""
    try:
        transport.insist_on_host(origin.address)
        if _lacking(mirror, pin) is None:
            _bring_commit(mirror, pin, listener)
        _bring_files(mirror, pin, listener)
    except (ToolError, SilentServerError) as fault:
        raise _unobtainable(pin, origin, fault) from fault
    lacking = _lacking(mirror, pin)
    if lacking is None:
        raise SupplyError(
            f"{pin} was not found at {origin.address}: the branch does not lead to it",
            remedy=f"{REMEDY}.",
        )
    if lacking:
        raise _incomplete(pin, origin, lacking)


def _bring_commit(mirror: Path, pin: Pin, listener: Listener) -> None:
    """Ask for the commit alone.

    A server that gives none but its branches is asked for the whole branch.
    """
    try:
        _follow(fetching(mirror, pin), listener)
    except ToolError as fault:
        plain = _plain(fault)
        if not _restrained(fault) and not plain:
            raise
        # Servers with git's protocol of before 2018 only give the tips of branches and tags.
        listener.note(f"The server gives whole branches only, so all of {pin.branch} is fetched")
        # The pinned commit may lie far behind the tip: without its history it would not come along.
        branch = f"refs/heads/{pin.branch}"
        depth = () if plain else (ALL_OF_IT,)
        whole = _fetch(mirror, *depth, "--no-filter", "origin", branch)
        _follow(whole, listener)


def _bring_files(mirror: Path, pin: Pin, listener: Listener) -> None:
    """Ask for the missing files by their ids.

    A server that gives no single files is asked for all.
    """
    lacking = _lacking(mirror, pin)
    if not lacking:
        return
    try:
        # On standard input: TensorFlow's thousands of ids are too long for a command line.
        ids = sorted({entry.blob for entry in lacking})
        some = _fetch(mirror, "--filter=blob:none", "--stdin", "origin", claiming=False)
        _follow(some, listener, ids)
    except ToolError as fault:
        if not _restrained(fault):
            raise
        # Without --refetch git sees the commit here, and asks for nothing.
        everything = _fetch(mirror, "--refetch", "--depth=1", "--no-filter", "origin", pin.commit)
        _follow(everything, listener)


def _fetch(mirror: Path, *arguments: str, claiming: bool = True) -> Command:
    """Return a transfer.

    `claiming` tells the server which commits are here, whose files it then takes to be here too.
    """
    host_file = () if claiming else ("-c", "fetch.negotiationAlgorithm=noop")
    options = ("--progress", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    return git.command(mirror, *host_file, "fetch", *options, *arguments, env=git.network())


def _restrained(fault: ToolError) -> bool:
    """Say whether a server gives only what its branches and tags name, as old ones do."""
    return any("unadvertised object" in line for line in fault.evidence.lines)


def _plain(fault: ToolError) -> bool:
    """Say whether a server knows no depth, as one that only has git's files to give."""
    return any("not support shallow" in line for line in fault.evidence.lines)


def _follow(command: Command, listener: Listener, given: Iterable[str] = ()) -> None:
    """Run a transfer and pass on how far it is; raise as `transport.fetch` does."""
    with git.input_of(given) as stream:
        transport.fetch(command, command.cwd, lambda lines: _watch(lines, listener), stream)


def _watch(lines: Iterable[str], listener: Listener) -> list[str]:
    """Read git's progress as it comes; return what else git said."""
    try:
        import git as gitpython
    except ImportError:
        # On its import GitPython runs git with the caller's configuration, which may be faulty.
        # Our own git never reads that, and goes on without showing its progress.
        return [line.rstrip() for line in lines]

    class Heard(gitpython.RemoteProgress):
        def update(
            self, _code: int, done: str | float, total: str | float | None = None, message: str = ""
        ) -> None:
            # A server can send these lines too, with numbers that no float holds.
            counted = float(done or 0)
            whole = float(total or 0)
            if counted < MOST_OBJECTS and whole < MOST_OBJECTS:
                listener.progress(Progress(int(counted), int(whole) or None, "objects", message))

    heard = Heard()
    hear: Callable[[str], None] = heard.new_message_handler()
    for line in lines:
        hear(line.rstrip())
    return [*heard.other_lines, *heard.error_lines]


def _unobtainable(pin: Pin, origin: Origin, fault: TfwrightError) -> TfwrightError:
    """Say why a transfer failed; of a mirror on this host, what it lacks."""
    # A partial clone answers like a server that is broken; here it can be looked into.
    if origin.local and git.is_repository(origin.local):
        lacking = _lacking(origin.local, pin)
        if lacking:
            return _incomplete(pin, origin, lacking)
    return SupplyError(
        f"{pin} could not be fetched from {origin.address}: "
        f"{fault.what.removeprefix('git failed: ')}",
        remedy=f"{REMEDY}.",
        evidence=fault.evidence,
    )


def _incomplete(pin: Pin, origin: Origin, lacking: Sequence[TreeEntry]) -> SupplyError:
    paths = [entry.path for entry in lacking]
    return SupplyError(
        f"{origin.address} lacks {len(paths)} of the files of {pin}: {listed(paths, SHOWN)}",
        remedy=f"{REMEDY}; or leave out what the build does not need, in [source]: "
        f"exclude = {_excluding(pin, paths)}",
        evidence=Evidence(lines=paths),
    )


def _excluding(pin: Pin, paths: Sequence[str]) -> str:
    """Return what a recipe has to exclude then, to be copied; many paths are left to a person."""
    if len(paths) > SHOWN:
        return "[...]"
    return json.dumps([*pin.exclude, *paths])


def _bill(pin: Pin, origin: Origin, transferred: int, seconds: float) -> str:
    """Say what a transfer cost, and the size of the whole repository if it is local."""
    whole = f", of a repository of {size(origin.local) / 1e6:.1f} MB" if origin.local else ""
    return f"Fetched {pin} in {seconds:.0f} s: {transferred / 1e6:.1f} MB{whole}"


def size(repository: Path) -> int:
    """Return the bytes that a repository's objects take on disk."""
    stored = trees.files_below(repository / "objects")
    return sum(state.st_size for _, state in stored)


def _tell_of_branch(mirror: Path, pin: Pin, origin: Origin, listener: Listener) -> None:
    """Note that the branch has moved, is gone, or does not lead to the pinned commit any more.

    It is never followed.
    """
    try:
        transport.insist_on_host(origin.address)
        asked = git.command(
            mirror, "ls-remote", "origin", f"refs/heads/{pin.branch}", env=git.network()
        )
        listed = transport.ask(asked, mirror)
    except (ToolError, SupplyError):
        listener.note(
            f"The server did not say whether branch {pin.branch} has moved; "
            "the pinned commit is in the mirror"
        )
        return
    tip = listed.partition("\t")[0]
    if not tip:
        listener.note(f"The server has no branch {pin.branch}; the pinned commit decides")
    elif tip != pin.commit:
        lost = (
            " and does not contain the pinned commit (it never did, or it was rewritten)"
            if _leads_elsewhere(mirror, pin, origin)
            else ""
        )
        listener.note(
            f"Branch {pin.branch} is at {tip[:12]} now{lost}; {pin.commit[:12]} is built, as pinned"
        )


def _leads_elsewhere(mirror: Path, pin: Pin, origin: Origin) -> bool:
    """Say whether the branch is known not to contain the pinned commit; no file is fetched."""
    # No history is needed from before the pinned commit, and none of the files.
    since = f"--shallow-since={git.epoch(mirror, pin.commit)}"
    look = _empty(mirror.with_suffix(".look"))
    try:
        git.run(git.command(look, "init", "--quiet", "--bare"))
        git.run(git.command(look, "config", "remote.origin.url", origin.address))
        branch = f"refs/heads/{pin.branch}"
        transport.fetch(_fetch(look, since, "--filter=tree:0", "origin", branch), look)
    except SupplyError:
        return False
    except ToolError as fault:
        return any("no commits selected" in line for line in fault.evidence.lines)
    else:
        return git.kind(look, pin.commit) is None
    finally:
        files.remove(look)
