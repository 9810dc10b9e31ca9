"""TensorFlow's own history, from bare repositories named in $TFWRIGHT_TENSORFLOW_MIRRORS (by colons)."""

import os
from pathlib import Path

import pytest

from tfwright.rules.patched_tree import is_relevant
from tfwright.tools.git.repository import GitRepository

MIRRORS = [
    Path(path) for path in os.environ.get("TFWRIGHT_TENSORFLOW_MIRRORS", "").split(":") if path
]
V1_0 = "07bb8ea2379bd459832b23951fb20ec47f3fdbd4"
V1_2 = "12f033df4c8fa3feb88ce936eb1581eaa92b303e"
V1_8 = "93bc2e2072e0daccbcff7a90d397b704a9e8f778"
V1_15 = "590d6eef7e91a6a7392c8ffffb7b58f2e0c8bc6b"
V2_1 = "e5bf8de410005de06a7ff5393fafdf832ef1d4ad"
V2_4 = "582c8d236cb079023657287c318ff26adb239002"


def mirror_of(commit: str) -> Path:
    """Return a repository that holds a commit; skip the test where there is none."""
    found = next((path for path in MIRRORS if GitRepository(path).kind(commit) == "commit"), None)
    return found or pytest.skip(f"no repository in $TFWRIGHT_TENSORFLOW_MIRRORS holds {commit}")


def texts(commit: str) -> dict[str, str]:
    """Return the files of a commit that can hold rules."""
    return GitRepository(mirror_of(commit)).texts(commit, is_relevant)
