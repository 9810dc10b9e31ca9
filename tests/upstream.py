"""Git repositories as upstream has them, made by the git of this host for tests."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.making import make_file

from tfwright.tools.git import demo
from tfwright.tools.git.repository import GitRepository

AUTHOR = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    # Whatever the developer has configured must not decide what a test sees.
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def run_git(*words: str | Path, cwd: Path, **variables: str) -> str:
    """Run git in a directory as a user does, and return what it printed."""
    done = subprocess.run(
        ["git", *words],
        cwd=cwd,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **AUTHOR, **variables},
    )
    return done.stdout.strip()


def bundled_commit(url: str = demo.URL) -> str:
    """Return the commit that a bundled tree is now, which its recipe has to pin."""
    with tempfile.TemporaryDirectory() as folder:
        return demo.commit_tree(GitRepository(Path(folder)).make().path, url)


def commit(folder: Path, contents: Mapping[str, str] | None = None, message: str = "one") -> str:
    """Write files into a work tree, commit all that is in it, and return the commit's id.

    The repository is made where there is none yet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (contents or {}).items():
        make_file(folder / name, text)
    if not (folder / ".git").exists():
        run_git("init", "--quiet", "--initial-branch=main", cwd=folder)
    run_git("add", "--all", cwd=folder)
    run_git("commit", "--quiet", "--allow-empty", f"--message={message}", cwd=folder)
    return run_git("rev-parse", "HEAD", cwd=folder)
