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
        ("--experimental_repo_remote_exec", "2.0.0 to 7.7.1 have --"),
        ("--experimental_cc_shared_library=true", "1.2.0 to 7.7.1 have --"),
        ("--local_resources=2048,.5,1.0", "0.17.2 to 3.5.1 and 7.7.1 have --local_resources"),
        ("--ram_utilization_factor=5", "0.17.2 to 2.1.0 have --"),
        ("--noincompatible_prohibit_aapt1", "1.2.0 to 4.2.3 have --"),
        ("--enable_bzlmod", "7.7.1 have --"),
        ("--noincompatible_do_not_split_linking_cmdline", "0.25.1 to 7.7.1 have --"),
        (
            "--action_env=PATH",
            "Every Bazel from 0.17.2 to 7.7.1 has --action_env: it stands with a command",
        ),
        ("--data_dir", "none takes --data_dir"),
    ],
)
def test_an_option_says_which_bazel_is_at_work(option: str, part: str) -> None:
    assert part in bazel_names.option(option)
    assert part in cause_of(f"ERROR: Unrecognized option: {option}")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("maven_jar", "0.17.2 to 1.2.0 have `maven_jar`"),
        ("CcInfo", "0.20.0 to 7.7.1 have `CcInfo`; a flag"),
        ("cc_library", "Every Bazel from 0.17.2 to 7.7.1 has `cc_library`: this one is newer"),
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
    assert "0.20.0 to 7.7.1 have the attribute `toolchain_config` of cc_toolchain" in cause_of(line)


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
