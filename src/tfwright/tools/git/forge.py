"""The pages of the forge that holds a repository: a commit, and the commits between two."""

import re

FORGES = (
    (r"gitlab", "/-/commit/{now}", "/-/compare/{before}...{now}"),
    (r"(^|\.)bitbucket\.org$", "/commits/{now}", "/branches/compare/{now}..{before}"),
    (r"\.googlesource\.com$", "/+/{now}", "/+log/{before}..{now}"),
    (r"^git\.sr\.ht$", "/commit/{now}", "/log/{now}"),
    (r"^git\.kernel\.org$", "/commit/?id={now}", "/log/?id={now}"),
    # GitHub, Gitea, Forgejo and Gogs, also under names of their own.
    (r"", "/commit/{now}", "/compare/{before}...{now}"),
)
"""What follows the address of a repository for a commit, and for the commits after one up to
another; by a pattern of the host's name, of which the first one that fits counts."""
_ADDRESS = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^@/\s]*@)?(?P<host>[\w.-]+\.[\w-]+)(?::\d+)?/"
    r"|[\w.-]+@(?P<scp>[\w.-]+\.[\w-]+):/?)(?P<path>[\w.~+/-]+)"
)


def commit_page(repository: str, now: str) -> str:
    """Return the page of a commit; empty for a repository that is at no forge."""
    return _page(repository, "", now)


def range_page(repository: str, before: str, now: str) -> str:
    """Return the page of the commits after `before` up to `now`; empty if there is none."""
    return _page(repository, before, now) if before and before != now else ""


def _page(repository: str, before: str, now: str) -> str:
    found = _ADDRESS.fullmatch(repository)
    if not (found and now):
        return ""
    host = found["host"] or found["scp"]
    _, commit, commits = next(row for row in FORGES if re.search(row[0], host))
    path = found["path"].rstrip("/").removesuffix(".git")
    page = commits if before else commit
    return f"https://{host}/{path}" + page.format(before=before, now=now)
