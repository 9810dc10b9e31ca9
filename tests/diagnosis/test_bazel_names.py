import tomllib

import pytest
from tests.diagnosis.reading import diagnose

from tfwright.diagnosis import bazel_names


def cause_of(line: str) -> str:
    found = diagnose(line)
    return found.matches[-1].cause


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("--experimental_repo_remote_exec", "came with Bazel 2.0.0: this one is older"),
        ("--experimental_cc_shared_library=true", "came with Bazel 1.2.0"),
        ("--local_resources=2048,.5,1.0", "0.17.2 to 3.5.1 and 7.7.1 have --local_resources"),
        (
            "--ram_utilization_factor=5",
            "gone by Bazel 3.5.1: this one is newer than 2.1.0, or older than 0.17.2",
        ),
        ("--noincompatible_prohibit_aapt1", "came with Bazel 1.2.0, and is gone by Bazel 7.7.1"),
        ("--enable_bzlmod", "came after Bazel 4.2.3, and by 7.7.1: this one is older"),
        ("--noincompatible_do_not_split_linking_cmdline", "came with Bazel 0.25.1"),
        ("--action_env=PATH", "Bazel 0.17.2 to 7.7.1 have --action_env"),
        ("--data_dir", "none takes --data_dir"),
    ],
)
def test_an_option_says_which_bazel_is_at_work(option: str, part: str) -> None:
    assert part in bazel_names.option(option)
    assert part in cause_of(f"ERROR: Unrecognized option: {option}")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("maven_jar", "gone by Bazel 2.0.0"),
        ("CcInfo", "came with Bazel 0.20.0"),
        ("cc_library", "Bazel 0.17.2 to 7.7.1 have"),
    ],
)
def test_a_name_of_the_build_language_is_dated(name: str, part: str) -> None:
    assert part in bazel_names.symbol(name)
    assert part in cause_of(f"ERROR: /w/BUILD:1:1: name '{name}' is not defined")


def test_an_attribute_is_looked_up_with_its_rule() -> None:
    line = (
        "ERROR: /w/BUILD:13:1: //w:x: missing value for mandatory attribute 'toolchain_config' in "
        "'cc_toolchain' rule"
    )
    assert "`toolchain_config` of cc_toolchain came with Bazel 0.20.0" in cause_of(line)


def test_what_no_version_has_is_said_to_be_unknown() -> None:
    assert bazel_names.symbol("tf_cc_test") == ""
    assert "None of Bazel" in bazel_names.member("Label.repo_names")
    assert bazel_names.member("MyProvider.files") == ""
    assert bazel_names.option("-c") == ""


def test_every_span_of_the_table_names_two_versions_that_were_asked() -> None:
    document = tomllib.loads(bazel_names.FILE.read_text("utf-8"))
    versions = document.pop("versions").split()

    for kind in document.values():
        for span in kind:
            first, last = span.split()
            assert versions.index(first) <= versions.index(last)
