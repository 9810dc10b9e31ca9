"""What Bazel writes about the repositories that it made."""

from tfwright.vault import resolved

TEXT = """\
resolved = \\
    [
        {
            "original_rule_class": "local_repository",
            "original_attributes": {"name": "bazel_tools", "path": "/somewhere"},
            "native": "local_repository(name = \\"bazel_tools\\")",
        },
        {
            "original_rule_class": "//third_party:repo.bzl%tf_http_archive",
            "original_attributes": {"name": "eigen_archive", "urls": ["https://example.org/a.tar.gz"], "sha256": "00"},
            "repositories": [{"rule_class": "x", "output_tree_hash": "12", "attributes": {"name": "eigen_archive"}}],
        },
    ]
"""


def test_the_names_are_read_without_running_it() -> None:
    assert resolved.names(TEXT) == {"bazel_tools", "eigen_archive"}


def test_no_repository_is_no_name() -> None:
    assert resolved.names("resolved = []\n") == frozenset()
