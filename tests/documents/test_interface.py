"""What a recipe says of a source that is not, or not quite, TensorFlow's."""

import pytest
from pydantic import ValidationError

from tfwright.documents.recipe import BazelrcTable, PromptTable, Recipe, SourceTable
from tfwright.documents.release import NO_RELEASE, ExactRelease, Release, range_end, range_start

COMMIT = "0123456789" * 4
URL = "https://github.com/tensorflow/tensorflow.git"


def source(**keys: str) -> SourceTable:
    return SourceTable.model_validate({"url": URL, "commit": COMMIT, **keys})


@pytest.mark.parametrize(
    ("keys", "exact"),
    [
        ({"branch": "r2.4"}, ExactRelease(2, 4, 0)),
        ({"branch": "v2.4.4"}, ExactRelease(2, 4, 4)),
        ({"branch": "r2.4", "version": "2.4.4"}, ExactRelease(2, 4, 4)),
        ({"branch": "master", "release": "2.4.4"}, ExactRelease(2, 4, 4)),
        ({"branch": "r1.15.5+nv22.12"}, ExactRelease(1, 15, 5, "nv22.12")),
        ({"branch": "r2.4/sdk-release-2.4"}, ExactRelease(2, 4, 0, "ipu")),
        (
            {"branch": "r2.4", "url": "https://github.com/graphcore/t.git"},
            ExactRelease(2, 4, 0, "ipu"),
        ),
    ],
)
def test_the_exact_version_is_read_off_whatever_says_it(
    keys: dict[str, str], exact: ExactRelease
) -> None:
    table = source(**keys)
    assert table.exact == exact
    assert table.release == Release(exact.major, exact.minor)


def test_versions_are_ordered_by_their_numbers() -> None:
    versions = ["2.10.0", "2.4.4", "2.4", "1.15.5+nv22.12"]
    ordered = sorted(versions, key=lambda text: ExactRelease.parse(text).numbers)
    assert ordered == ["1.15.5+nv22.12", "2.4", "2.4.4", "2.10.0"]


def test_candidates_come_before_their_release_in_their_own_order() -> None:
    versions = ["2.4.0", "1.1.0-rc2", "1.1", "1.1.0-rc10", "1.1.0-beta1", "1.1.0-alpha", "1.0.1"]
    ordered = sorted(versions, key=lambda text: ExactRelease.parse(text).rank)
    assert ordered == [
        "1.0.1",
        "1.1.0-alpha",
        "1.1.0-beta1",
        "1.1.0-rc2",
        "1.1.0-rc10",
        "1.1",
        "2.4.0",
    ]


@pytest.mark.parametrize(
    ("version", "since", "until", "inside"),
    [
        ("1.4.0-rc0", "1.4", "1.4", True),
        ("1.4.0-rc0", "1.4.0-rc1", "99.0", False),
        ("1.4.0-rc1", "1.4.0-rc1", "99.0", True),
        ("1.4.1", "1.4.0-rc1", "1.4", True),
        ("1.1.0", "1.1.0-rc1", "1.1.0-rc2", False),
        ("1.1.0-rc1", "1.0", "1.1.0", True),
    ],
)
def test_a_range_may_begin_or_end_with_a_candidate(
    version: str, since: str, until: str, *, inside: bool
) -> None:
    rank = ExactRelease.parse(version).rank
    assert (range_start(since) <= rank <= range_end(until)) is inside


def test_an_interface_of_its_own_has_no_release() -> None:
    table = source(branch="master", interface="own")
    assert table.release == NO_RELEASE
    assert SourceTable.model_validate(table.model_dump(mode="json")) == table


def recipe(**tables: object) -> Recipe:
    document = {
        "name": "small",
        "summary": "A recipe for tests",
        "source": {"url": URL, "commit": COMMIT, "branch": "master", "interface": "own"},
        "host": {"system": "any", "python": "any"},
        "bazel": {"version": "0.26.1"},
        "compile": {"target": "//:wheel"},
    }
    return Recipe.model_validate({**document, **tables})


def test_another_repository_is_packaged_by_what_it_compiles_unless_it_says_otherwise() -> None:
    usual = recipe(compile={"target": "//tools:build_pip_pkg"}, configure={})
    assert usual.package.program == "bazel-bin/tools/build_pip_pkg"
    assert usual.configure.writes == ".bazelrc"
    stated = recipe(
        configure={"writes": "user.bazelrc"},
        package={"program": "pack.sh"},
        verify={"smoke": ["matmul"]},
    )
    assert stated.configure.writes == "user.bazelrc"
    assert stated.package.program == "pack.sh"
    assert stated.verify.smoke == ("matmul",)
    assert recipe(verify={}).verify.smoke == ()


def test_a_program_of_its_own_takes_no_name_in_tensorflows_way() -> None:
    with pytest.raises(ValidationError, match=r"state the name in package\.arguments"):
        recipe(package={"program": "pack.sh", "project_name": "mine"})


@pytest.mark.parametrize("question", ["*", " * ", "*?*", "a\x1bb", "* * * * * asks"])
def test_a_question_that_would_match_any_text_or_take_long_is_refused(question: str) -> None:
    with pytest.raises(ValidationError):
        PromptTable(variable="TF_FLUX", question=question)


@pytest.mark.parametrize("line", ["import /etc/bazel.bazelrc", "startup --foo", "build", "rm -rf"])
def test_a_line_that_does_more_than_set_flags_is_refused(line: str) -> None:
    with pytest.raises(ValidationError, match="must be a line of flags"):
        BazelrcTable(adds=(line,))


def test_a_line_may_name_a_config_and_hold_quotes() -> None:
    lines = ("build:opt -c opt", 'build --action_env A="@PYTHON_LIB_PATH@/b c"')
    assert BazelrcTable(lines=lines).lines == lines


def test_what_is_no_version_is_refused_with_an_example() -> None:
    with pytest.raises(ValueError, match=r"'one' is not .* such as '1\.8'"):
        Release.parse("one")
    with pytest.raises(ValueError, match=r"'r2' is not .* such as .*'2\.4\.4'"):
        ExactRelease.parse("r2")
    assert Release.parse("none") == NO_RELEASE
