"""What Bazel writes about the repositories that it made."""

import pytest

from tfwright.rules import repositories

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
            "original_attributes": {
                "name": "eigen_archive",
                "urls": ["https://example.org/a.tar.gz"],
                "sha256": "00"
            },
            "repositories": [
                {
                    "rule_class": "x",
                    "output_tree_hash": "12",
                    "attributes": {"name": "eigen_archive"},
                }
            ],
        },
        {
            "original_rule_class": "@bazel_tools//tools/build_defs/repo:git.bzl%git_repository",
            "original_attributes": {
                "name": "docker",
                "remote": "https://example.org/d.git",
                "commit": "11",
            },
        },
    ]
"""


def test_names_and_digests_are_read_without_running_it() -> None:
    assert repositories.resolved_pins(TEXT) == {
        "bazel_tools": "",
        "eigen_archive": "00",
        "docker": "11",
    }


def test_no_repository_is_no_name() -> None:
    assert repositories.resolved_pins("resolved = []\n") == {}


def test_entries_without_a_name_are_passed_over() -> None:
    text = 'resolved = [{}, 1, {"original_attributes": 2}, {"original_attributes": {}}]'
    assert repositories.resolved_pins(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "resolved = x",
        "resolved = resolved",
        "resolved = [",
        "\0",
        "a = 1",
        "resolved = ['a'] * 100000000",
    ],
)
def test_a_file_without_a_list_names_nothing(text: str) -> None:
    assert repositories.resolved_pins(text) == {}


def test_an_entry_that_cannot_be_read_is_passed_over() -> None:
    sound = '{"original_attributes": {"name": "b", "sha256": "00"}}'
    text = f'resolved = [{{"original_attributes": {{"name": x, "commit": 1}}}}, {sound}]'
    assert repositories.resolved_pins(text) == {"b": "00"}
