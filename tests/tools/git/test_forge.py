"""Addresses of commits at the forges that hold repositories."""

import pytest

from tfwright.tools.git import forge


@pytest.mark.parametrize(
    ("repository", "page"),
    [
        ("https://github.com/org/name.git", "https://github.com/org/name/commit/c1"),
        ("git@github.com:org/name.git", "https://github.com/org/name/commit/c1"),
        ("ssh://git@forge.example:2222/org/name", "https://forge.example/org/name/commit/c1"),
        ("https://user@gitlab.example/a/b/c.git", "https://gitlab.example/a/b/c/-/commit/c1"),
        ("https://bitbucket.org/org/name", "https://bitbucket.org/org/name/commits/c1"),
        ("https://x.googlesource.com/name", "https://x.googlesource.com/name/+/c1"),
        ("https://codeberg.org/org/name/", "https://codeberg.org/org/name/commit/c1"),
        ("/srv/git/name.git", ""),
        ("file:///srv/git/name.git", ""),
        ("https://example/<script>", ""),
        ("", ""),
    ],
)
def test_a_commit_is_linked_where_its_repository_has_a_page(repository: str, page: str) -> None:
    assert forge.commit_page(repository, "c1") == page


@pytest.mark.parametrize(
    ("repository", "path"),
    [
        ("https://github.com/org/name", "/compare/c0...c1"),
        ("https://gitlab.com/org/name", "/-/compare/c0...c1"),
        ("https://x.googlesource.com/name", "/+log/c0..c1"),
    ],
)
def test_the_commits_between_two_builds_are_one_page(repository: str, path: str) -> None:
    assert forge.range_page(repository, "c0", "c1") == repository + path
    assert not forge.range_page(repository, "c1", "c1")
    assert not forge.range_page(repository, "", "c1")
