"""Repositories that rules clone: the pinned commit with its history, in a local bare repository.

A rule of Bazel's asks for branches and then looks for its commit, so that a shallow repository
would not do; git refuses to take those in unasked. Bazel is led here by git's own ``insteadOf``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import SupplyError, invoke
from tfwright.tools.git import mirror
from tfwright.tools.git.mirror import Origin
from tfwright.tools.git.repository import GitRepository


@dataclass(frozen=True, order=True)
class Clone:
    """What a rule clones."""

    remote: str
    """As the rule spells it."""
    commit: str

    @property
    def branch(self) -> str:
        """The branch that keeps the commit, and lets others find it."""
        return f"refs/heads/pinned-{self.commit}"


def path_of(store: Path, remote: str) -> Path:
    """Return where the commits of a remote are kept."""
    return mirror.path_of(store, f"{remote}#clones")


def fetch(wanted: Clone, store: Path, origin: Origin, *, offline: bool) -> Path:
    """See to it that a commit is there with its history, and return its repository.

    Offline no server is asked.

    Raises SupplyError if the commit cannot be fetched.
    """
    kept = path_of(store, wanted.remote)
    with mirror.locked_repository(kept, f"git fetch {wanted.remote}") as repository:
        # By our branch and not by the commit, which may be there without its history.
        if not repository.kind(wanted.branch):
            if offline:
                raise SupplyError(
                    f"{wanted.commit} of {wanted.remote} is not here",
                    remedy=f"Run '{invoke('fetch')}' once with a network.",
                )
            mirror.fetch_ref(repository, origin, wanted.commit, wanted.branch)
    return kept


def has_commit(wanted: Clone, store: Path) -> bool:
    """Say whether a commit is here already."""
    kept = GitRepository(path_of(store, wanted.remote))
    return kept.path.is_dir() and bool(kept.kind(wanted.branch))


def read_bundle(wanted: Clone, bundle: Path, store: Path) -> None:
    """Put a commit that came as a git bundle where `fetch` finds it.

    Raises ToolError if the bundle does not have it with all its history.
    """
    kept = path_of(store, wanted.remote)
    with mirror.locked_repository(kept, f"unbundling {wanted.commit}") as repository:
        repository.run("bundle", "unbundle", str(bundle))
        mirror.verify_history(repository, wanted.commit)
        # Last: the branch says that the commit is there with its history.
        repository.run("update-ref", wanted.branch, wanted.commit)


def clone_configuration(kept: Mapping[str, Path]) -> str:
    """Return the user's git configuration that leads clones of remotes to this host."""

    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"')

    return "".join(
        f'[url "{quoted(str(path))}"]\n\tinsteadOf = "{quoted(remote)}"\n'
        for remote, path in sorted(kept.items())
    )
