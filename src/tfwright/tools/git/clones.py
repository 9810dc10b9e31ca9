"""Repositories that rules clone: the pinned commit with its history, in a local bare repository.

A rule of Bazel's asks for branches and then looks for its commit, so that a shallow repository
would not do; git refuses to take those in unasked. Bazel is led here by git's own ``insteadOf``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import SupplyError, ToolError, invoke
from tfwright.tools import git
from tfwright.tools.git import git_bundle, mirror, transport
from tfwright.tools.git.mirror import Origin
from tfwright.tools.process import file_lock


@dataclass(frozen=True, order=True)
class Clone:
    """What a rule clones."""

    remote: str
    """As the rule spells it."""
    commit: str


def place(store: Path, remote: str) -> Path:
    """Return where the commits of a remote are kept."""
    return mirror.place(store, f"{remote}#clones")


def bring(wanted: Clone, store: Path, origin: Origin, *, offline: bool) -> Path:
    """See to it that a commit is there with its history, and return its repository.

    Offline no server is asked.

    Raises SupplyError if the commit cannot be fetched.
    """
    kept = place(store, wanted.remote)
    with file_lock.held(kept.with_suffix(".lock"), f"git fetch {wanted.remote}", wait=True):
        mirror.open_or_make(kept)
        # By our branch and not by the commit, which may be there without its history.
        if git.kind(kept, _branch(wanted)) is None:
            if offline:
                raise SupplyError(
                    f"{wanted.commit} of {wanted.remote} is not here",
                    remedy=f"Run '{invoke('fetch')}' once with a network.",
                )
            transport.insist_on_host(origin.address)
            _transfer(wanted, kept, origin)
    return kept


def holds(wanted: Clone, store: Path) -> bool:
    """Say whether a commit is here already."""
    kept = place(store, wanted.remote)
    return kept.is_dir() and git.kind(kept, _branch(wanted)) is not None


def _transfer(wanted: Clone, kept: Path, origin: Origin) -> None:
    # Nothing but the commit: no tags, no submodules, no FETCH_HEAD.
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    try:
        asked = git.command(
            kept,
            "fetch",
            *options,
            origin.address,
            f"+{wanted.commit}:{_branch(wanted)}",
            env=git.network(),
        )
        transport.fetch(asked, kept)
    except ToolError as fault:
        why = fault.what.removeprefix("git failed: ")
        message = f"{origin.address} does not give {wanted.commit}: {why}"
        raise SupplyError(
            message,
            remedy="Name a mirror that has it in the host file: [mirrors].",
            evidence=fault.evidence,
        ) from fault


def _branch(wanted: Clone) -> str:
    """Return the branch that keeps a commit, and lets others find it."""
    return f"refs/heads/pinned-{wanted.commit}"


def pack(wanted: Clone, repository: Path, to: Path) -> None:
    """Write a commit with its history as a git bundle."""
    git_bundle.pack(repository, wanted.commit, to, history=True)


def verify(commit: str, bundle: Path, scratch: Path) -> None:
    """Read a git bundle into an empty repository in `scratch`, which is made.

    Raises ToolError unless it has the commit with all its history.
    """
    git_bundle.verify(bundle, commit, scratch)
    _insist_on_history(scratch, commit)


def _insist_on_history(repository: Path, commit: str) -> None:
    # unbundle accepts a pack that lacks objects; rev-list fails over the first one missing.
    git.run(git.command(repository, "rev-list", "--objects", "--quiet", commit))


def unpack(wanted: Clone, bundle: Path, store: Path) -> None:
    """Put a commit that came as a git bundle where `bring` finds it.

    Raises ToolError if the bundle does not have it with all its history.
    """
    kept = place(store, wanted.remote)
    with file_lock.held(kept.with_suffix(".lock"), f"unbundling {wanted.commit}", wait=True):
        mirror.open_or_make(kept)
        git.run(git.command(kept, "bundle", "unbundle", str(bundle)))
        _insist_on_history(kept, wanted.commit)
        # Last: the branch says that the commit is there with its history.
        git.run(git.command(kept, "update-ref", _branch(wanted), wanted.commit))


def configuration(kept: Mapping[str, Path]) -> str:
    """Return the user's git configuration that leads clones of remotes to this host."""
    sections = []
    for remote, path in sorted(kept.items()):
        url = _quoted(str(path))
        replaced = _quoted(remote)
        sections.append(f'[url "{url}"]\n\tinsteadOf = "{replaced}"\n')
    return "".join(sections)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
