"""The source trees that tfwright ships, as git commits that are the same wherever they are made."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tfwright.tools import git

TREE = Path(__file__).parents[2] / "demo/tree"
URL = "bundled:demo"
"""How a recipe names it."""
CUDA_TREE = TREE.parent / "cuda_tree"
CUDA_URL = "bundled:demo-cuda"
"""The tree with a CUDA kernel, which needs a toolkit."""
WHEN = "2018-01-01T00:00:00Z"
WHO = "tfwright"
PERSON = {
    "GIT_AUTHOR_NAME": WHO,
    "GIT_AUTHOR_EMAIL": f"{WHO}@localhost",
    "GIT_AUTHOR_DATE": WHEN,
    "GIT_COMMITTER_NAME": WHO,
    "GIT_COMMITTER_EMAIL": f"{WHO}@localhost",
    "GIT_COMMITTER_DATE": WHEN,
}
"""The environment in which a commit has this author and date, whoever makes it."""
MESSAGE = "The tree that tfwright ships"


def trees() -> Mapping[str, Path]:
    """Return the bundled trees by the URL that a recipe names."""
    return {URL: TREE, CUDA_URL: CUDA_TREE}


def commit_id(url: str = URL) -> str:
    """Return the commit that a bundled tree is now, which its recipe has to pin."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        git.run(git.command(repository, "init", "--quiet", "--bare"))
        return commit(repository, url)


def commit(repository: Path, url: str = URL) -> str:
    """Commit a bundled tree into a bare repository and return the commit's id.

    Nothing of the host takes part: neither its clock nor its user, nor the modes that an unpacked
    archive or a umask left the files with.
    """
    root = trees()[url]
    index = {"GIT_INDEX_FILE": str(repository / "bundled.index")}
    paths = sorted(_files(root))
    # No filters: the user's attributes could change line ends, and with them the commit.
    hashing = git.command(repository, "hash-object", "-w", "--no-filters", "--", *map(str, paths))
    blobs = git.run(hashing).split()
    words = []
    for path, blob in zip(paths, blobs, strict=True):
        name = path.relative_to(root).as_posix()
        words += ["--cacheinfo", f"{_mode(path)},{blob},{name}"]
    git.run(git.command(repository, "read-tree", "--empty", env=index))
    git.run(git.command(repository, "update-index", "--add", *words, env=index))
    tree = git.run(git.command(repository, "write-tree", env=index)).strip()
    return git.run(git.command(repository, "commit-tree", "-m", MESSAGE, tree, env=PERSON)).strip()


def _files(root: Path) -> Iterator[Path]:
    """Walk through a tree's files; what a Python run leaves behind is none of them."""
    return (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _mode(path: Path) -> str:
    # Not the file's own mode, which an unpacked archive may have lost.
    with path.open("rb") as stream:
        return "100755" if stream.read(2) == b"#!" else "100644"
