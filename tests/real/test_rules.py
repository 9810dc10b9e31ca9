"""The rules of real TensorFlow trees, from bare repositories named in $TFWRIGHT_TENSORFLOW_MIRRORS (by colons).

The numbers were counted apart from the reader: grep for lines on which a known rule is called, less a
line of a docstring that looks like one, plus the one place that downloads Chromium's clang from a rule's
own code. The digests are all runs of 64 hexadecimal digits outside comments and container digests.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tfwright.rules import repositories
from tfwright.rules.patched_tree import relevant

pytestmark = pytest.mark.real
MIRRORS = [
    Path(path) for path in os.environ.get("TFWRIGHT_TENSORFLOW_MIRRORS", "").split(":") if path
]
V1_8, V1_15, V2_1 = (
    "93bc2e2072e0daccbcff7a90d397b704a9e8f778",
    "590d6eef7e91a6a7392c8ffffb7b58f2e0c8bc6b",
    "e5bf8de410005de06a7ff5393fafdf832ef1d4ad",
)
V1_0, V1_2, V2_4 = (
    "07bb8ea2379bd459832b23951fb20ec47f3fdbd4",
    "12f033df4c8fa3feb88ce936eb1581eaa92b303e",
    "582c8d236cb079023657287c318ff26adb239002",
)


def texts(commit: str) -> dict[str, str]:
    """Return the relevant files of a commit."""
    for mirror in MIRRORS:
        git = ["git", "-C", str(mirror)]
        if (
            subprocess.run(
                [*git, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            listed = subprocess.run(
                [*git, "ls-tree", "-r", "--name-only", commit],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
            paths = [path for path in listed if relevant(path)]
            return {
                path: subprocess.run(
                    [*git, "show", f"{commit}:{path}"], capture_output=True, text=True, check=True
                ).stdout
                for path in paths
            }
    pytest.skip(f"no repository in $TFWRIGHT_TENSORFLOW_MIRRORS holds {commit}")


def digests(files: dict[str, str]) -> set[str]:
    """Return what looks like a digest in the files that hold rules."""
    lines = [
        line.partition("#")[0]
        for path, text in files.items()
        if path == "WORKSPACE" or path.startswith(repositories.PLACES)
        for line in text.splitlines()
    ]
    return set(re.findall(r"(?<![0-9a-f:])[0-9a-f]{64}(?![0-9a-f])", "\n".join(lines)))


@pytest.mark.parametrize(
    ("commit", "places", "pinned"),
    [(V1_8, 68 + 1, 69), (V1_15, 107 + 1, 100), (V2_1, 106 + 1, 98)],
    ids=["1.8.0", "1.15.0", "2.1.0"],
)
def test_as_many_rules_are_found_as_were_counted_by_hand(
    commit: str, places: int, pinned: int
) -> None:
    found = repositories.read(texts(commit))
    assert len({(one.file, one.line) for one in found.repositories}) == places
    assert len({one.sha256 for one in found.repositories} - {""}) == pinned


@pytest.mark.parametrize(
    "commit",
    [V1_0, V1_2, V1_8, V1_15, V2_1, V2_4],
    ids=["1.0.0", "1.2.0", "1.8.0", "1.15.0", "2.1.0", "2.4.0"],
)
def test_every_digest_of_a_tree_is_found_and_nothing_is_unreadable(commit: str) -> None:
    files = texts(commit)
    found = repositories.read(files)
    assert {one.sha256 for one in found.repositories} - {""} == digests(files)
    assert found.unreadable == ()


def test_what_other_archives_declare_is_named() -> None:
    found = repositories.read(texts(V2_1))
    assert {(one.archive, one.symbol) for one in found.nested} == {
        ("io_bazel_rules_closure", "closure_repositories"),
        ("bazel_toolchains", "repositories"),
        ("io_bazel_rules_docker", "repositories"),
        ("build_bazel_rules_swift", "swift_rules_dependencies"),
        ("local_config_android", "android_workspace"),
    }
