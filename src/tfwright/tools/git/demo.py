"""The source trees that tfwright ships, as git commits that are the same wherever they are made."""

import io
from collections.abc import Mapping
from pathlib import Path

from tfwright.tools.git import program

TREE = Path(__file__).parents[2] / "demo/tree"
URL = "bundled:demo"
"""How a recipe names it."""
CUDA_TREE = TREE.parent / "cuda_tree"
CUDA_URL = "bundled:demo-cuda"
"""The tree with a CUDA kernel, which needs a toolkit."""
HERMETIC_TREE = TREE.parent / "hermetic_tree"
HERMETIC_URL = "bundled:demo-hermetic"
"""The tree whose Python, CUDA and packages come through Bazel 7."""
WHEN = "1514764800 +0000"
"""The first second of 2018, in UTC."""
WHO = "tfwright"
MESSAGE = "The tree that tfwright ships"


def bundled_trees() -> Mapping[str, Path]:
    """Return the bundled trees by the URL that a recipe names."""
    return {URL: TREE, CUDA_URL: CUDA_TREE, HERMETIC_URL: HERMETIC_TREE}


def commit_tree(repository: Path, url: str = URL) -> str:
    """Commit a bundled tree into a bare repository and return the commit's id.

    Nothing of the host takes part: neither its clock nor its user, nor the modes that an unpacked
    archive or a umask left the files with.
    """
    with program.gitpython():
        import git
    from git.index.typ import BaseIndexEntry
    from gitdb import IStream

    class Repo(git.Repo):
        # The user's settings would change the commit's encoding.
        config_level = ("repository",)  # type: ignore[assignment]

    root = bundled_trees()[url]
    repo = Repo(repository, expand_vars=False)
    index = git.IndexFile(repo, str(repository / "bundled.index"))
    entries = []
    for path in sorted(root.rglob("*")):
        # What a Python run leaves behind is no part of the tree.
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            # Not the file's own mode, which an unpacked archive may have lost.
            mode = 0o100755 if content.startswith(b"#!") else 0o100644
            blob = repo.odb.store(IStream("blob", len(content), io.BytesIO(content)))
            name = path.relative_to(root).as_posix()
            entries.append(BaseIndexEntry((mode, blob.binsha, 0, name)))
    index.add(entries, write=False)
    who = git.Actor(WHO, f"{WHO}@localhost")
    made = git.Commit.create_from_tree(
        repo,
        index.write_tree(),
        f"{MESSAGE}\n",
        parent_commits=[],
        author=who,
        committer=who,
        author_date=WHEN,
        commit_date=WHEN,
    )
    return made.hexsha
