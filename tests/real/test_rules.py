"""The rules of real TensorFlow trees, from bare repositories named in $TFWRIGHT_TENSORFLOW_MIRRORS (by colons).

The numbers were counted apart from the reader: grep for lines on which a known rule is called, less a
line of a docstring that looks like one, plus the one place that downloads Chromium's clang from a rule's
own code. The digests are all runs of 64 hexadecimal digits outside comments and container digests.
"""

import re

import pytest
from tests.real.mirrors import V1_0, V1_2, V1_8, V1_15, V2_1, V2_4, texts

from tfwright.rules import repositories

pytestmark = pytest.mark.real


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
    assert {(one.archive, one.symbol) for one in found.calls} == {
        ("io_bazel_rules_closure", "closure_repositories"),
        ("bazel_toolchains", "repositories"),
        ("io_bazel_rules_docker", "repositories"),
        ("build_bazel_rules_swift", "swift_rules_dependencies"),
        ("local_config_android", "android_workspace"),
    }
