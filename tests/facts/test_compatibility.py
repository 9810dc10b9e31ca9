import tomllib
from typing import Literal

import pytest

from tfwright.documents.release import ExactRelease, Release, range_end, range_start
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_newer, is_of_line, is_older, is_within
from tfwright.match.releases import KNOWN

TABLE = tomllib.loads(compatibility.TABLE.read_text("utf-8"))


def test_every_row_names_its_source() -> None:
    rows = [row for name, kind in TABLE.items() if name != "cuda" for row in kind]
    starts = ("https://", "host_config.h of ", "what ptxas of ", "docs/")
    assert all(row["source"].startswith(starts) for row in rows)


@pytest.mark.parametrize("column", ["driver", "gcc", "capabilities", "cudnn"])
def test_every_number_of_every_cuda_has_one_source(
    column: Literal["driver", "gcc", "capabilities", "cudnn"],
) -> None:
    spans = [row["cuda"] for row in TABLE["source"] if row["of"] == column]
    for row in compatibility.cudas():
        assert sum(is_within(row.version, *span) for span in spans) == 1
        assert row.source(column)


def test_a_number_that_no_source_confirmed_says_so() -> None:
    unread, read = compatibility.mac("10.2"), compatibility.mac("9.1")
    assert unread
    assert "not confirmed" in unread.why
    assert read
    assert read.why == read.source


def test_a_bazel_is_refused_with_the_script_of_its_own_release() -> None:
    for release in ("2.3", "2.4"):
        script = f"https://github.com/tensorflow/tensorflow/blob/r{release}/configure.py"
        for newer in (False, True):
            found = compatibility.unusual_bazel(ExactRelease.parse(release), "4.0.0", newer=newer)
            assert found == ("3.1.0 to 3.99.0", script, not newer)


def test_an_alpha_takes_the_bazel_of_its_own_script() -> None:
    alpha, release = ExactRelease.parse("2.0.0-alpha0"), ExactRelease.parse("2.0.0-beta0")
    assert compatibility.unusual_bazel(alpha, "0.19.1", newer=False)[0] == ""
    wanted, _, refused = compatibility.unusual_bazel(release, "0.19.1", newer=True)
    assert (wanted, refused) == ("0.24.1 to 0.26.1", True)


@pytest.mark.parametrize("kind", ["bazel", "python", "tested"])
def test_no_release_has_two_rows(kind: str) -> None:
    # A fork has rows of its own.
    rows = [row for row in TABLE[kind] if "fork" not in row]
    spans = [
        (range_start(first), range_end(last)) for first, last in (row["releases"] for row in rows)
    ]
    ranks = [ExactRelease(*release).rank for release in KNOWN]
    assert all(sum(first <= rank <= last for first, last in spans) <= 1 for rank in ranks)


@pytest.mark.parametrize("kind", ["python", "tested"])
def test_every_release_has_a_row(kind: str) -> None:
    # A fork has rows of its own.
    rows = [row for row in TABLE[kind] if "fork" not in row]
    spans = [tuple(map(Release.parse, row["releases"])) for row in rows]
    assert all(any(first <= release <= last for first, last in spans) for release in KNOWN)


@pytest.mark.parametrize(
    ("release", "version", "taken"),
    [
        ("1.8", "0.9.0", False),
        ("1.8", "0.17.2", True),
        ("1.14", "0.25.3", False),
        ("2.2", "2.0.0", True),
        ("2.2", "2.0.1", False),
        ("2.6", "3.99.0", True),
    ],
)
def test_bazel_is_bounded_as_configure_does(release: str, version: str, *, taken: bool) -> None:
    found = compatibility.bazel(Release.parse(release))
    assert found
    assert found.contains(version) is taken


def test_every_cuda_that_tensorflow_was_tested_with_is_known_and_takes_its_cudnn() -> None:
    for tested in TABLE["tested"]:
        row = compatibility.cuda(tested["cuda"])
        assert row
        assert is_within(tested["cudnn"], row.cudnn[0].partition(".")[0], row.cudnn[1])


@pytest.mark.parametrize(
    ("version", "line", "held"),
    [
        ("10.1.243", "10.1", True),
        ("10.2", "10.1", False),
        ("10", "10.0", True),
        ("3.10", "3.1", False),
    ],
)
def test_a_version_is_of_a_line_number_by_number(version: str, line: str, *, held: bool) -> None:
    assert is_of_line(version, line) is held


def test_a_ceiling_counts_as_far_as_it_is_written() -> None:
    assert not is_newer("7.5.0", "7")
    assert is_newer("8.1", "7")
    assert is_older("9.4.0", "9.10")


def test_a_recipe_without_a_version_of_cuda_is_held_against_none() -> None:
    assert compatibility.cuda("") is None


@pytest.mark.parametrize(
    ("release", "cuda", "measured"),
    [("1.4", False, "1.8"), ("1.12", False, "1.8"), ("1.15", True, "1.15"), ("2.10", False, "2.0")],
)
def test_the_cost_of_a_build_is_that_of_the_nearest_build_that_was_measured(
    release: str, *, cuda: bool, measured: str
) -> None:
    cost = compatibility.build_cost(Release.parse(release), cuda=cuda)
    assert (str(cost.release), cost.cuda) == (measured, cuda)
