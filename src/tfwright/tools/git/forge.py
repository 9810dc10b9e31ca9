"""The pages of the forge that holds a repository: a commit, and the commits between two."""

import re
from typing import NamedTuple


class ForgePaths(NamedTuple):
    """What follows the address of a repository."""

    commit: str
    between: str
    """The commits after one up to another."""


FORGES: tuple[tuple[str, ForgePaths], ...] = (
    (r"gitlab", ForgePaths("/-/commit/{now}", "/-/compare/{before}...{now}")),
    (r"(^|\.)bitbucket\.org$", ForgePaths("/commits/{now}", "/branches/compare/{now}..{before}")),
    (r"\.googlesource\.com$", ForgePaths("/+/{now}", "/+log/{before}..{now}")),
    (r"^git\.sr\.ht$", ForgePaths("/commit/{now}", "/log/{now}")),
    (r"^git\.kernel\.org$", ForgePaths("/commit/?id={now}", "/log/?id={now}")),
    # GitHub, Gitea, Forgejo and Gogs, also under names of their own.
    (r"", ForgePaths("/commit/{now}", "/compare/{before}...{now}")),
)
"""By a pattern of the host's name; the first one that fits counts."""
_ADDRESS = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^@/\s]*@)?(?P<host>[\w.-]+\.[\w-]+)(?::\d+)?/"
    r"|[\w.-]+@(?P<scp>[\w.-]+\.[\w-]+):/?)(?P<path>[\w.~+/-]+)"
)


def commit(repository: str, now: str) -> str:
    """Return the page of a commit; empty for a repository that is at no forge."""
    return _page(repository, 0, "", now)


def between(repository: str, before: str, now: str) -> str:
    """Return the page of the commits after `before` up to `now`; empty if there is none."""
    return _page(repository, 1, before, now) if before and before != now else ""


def _page(repository: str, kind: int, before: str, now: str) -> str:
    found = _ADDRESS.fullmatch(repository)
    if not (found and now):
        return ""
    host = found["host"] or found["scp"]
    paths = next(paths for pattern, paths in FORGES if re.search(pattern, host))
    path = found["path"].rstrip("/").removesuffix(".git")
    return f"https://{host}/{path}" + paths[kind].format(before=before, now=now)
