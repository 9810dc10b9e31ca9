"""What ./configure is expected to ask, and what it finds in its environment."""

import pytest

from tfwright.configure import dialect, rendering
from tfwright.configure.answers import UNKNOWN_PYTHON
from tfwright.configure.catalogue import Answers
from tfwright.configure.interview import By, Interview
from tfwright.documents.recipe import PromptTable
from tfwright.documents.release import ExactRelease


def interview(version: str, given: Answers, by: By = "dialogue") -> Interview:
    return Interview(dialect.of_tensorflow(ExactRelease.parse(version), "Linux"), given, by)


def test_all_missing_answers_are_known_before_configure_starts() -> None:
    given: Answers = {
        "TF_NEED_CUDA": False,
        **UNKNOWN_PYTHON,
        "TF_NEED_MPI": False,
        "CC_OPT_FLAGS": "-O2",
    }
    assert [prompt.variable for prompt in interview("2.0", given).unanswered()] == [
        "TF_ENABLE_XLA",
        "TF_NEED_OPENCL_SYCL",
        "TF_NEED_ROCM",
        "TF_DOWNLOAD_CLANG",
        "TF_SET_ANDROID_WORKSPACE",
    ]


@pytest.mark.parametrize(("release", "asks"), [("2.13", True), ("2.14", False)])
def test_2_13_is_the_last_release_that_asks_whether_to_download_a_clang(
    release: str, *, asks: bool
) -> None:
    lacking = [prompt.variable for prompt in interview(release, {}).unanswered()]
    assert ("TF_DOWNLOAD_CLANG" in lacking) is asks


def test_the_version_of_tensorrt_is_missing_where_configure_would_find_it_on_the_host() -> None:
    given: Answers = {"TF_NEED_CUDA": True, "TF_NEED_TENSORRT": True}
    lacking = [prompt.variable for prompt in interview("1.8", given).unanswered()]
    assert "TF_TENSORRT_VERSION" in lacking


def test_what_a_release_does_not_know_is_not_exported() -> None:
    given: Answers = {"TF_NEED_S3": False, "TF_NEED_AWS": False, "TF_SET_ANDROID_WORKSPACE": False}
    exported = interview("1.8", given, "environment").exports()
    assert exported == {"TF_NEED_S3": "0", "TF_SET_ANDROID_WORKSPACE": "0"}


def test_1_5_gets_no_for_android_in_the_only_way_it_understands() -> None:
    given: Answers = {"TF_SET_ANDROID_WORKSPACE": False}
    exported = interview("1.5", given, "environment").exports()
    assert exported == {"TF_SET_ANDROID_WORKSPACE": ""}


def test_what_is_read_from_the_environment_alone_goes_there_in_a_dialogue_too() -> None:
    given: Answers = {"TF_ENABLE_XLA": True, "TF_NEED_ROCM": False}
    assert interview("2.4", given).exports() == {"TF_ENABLE_XLA": "1"}


@pytest.mark.parametrize("by", ["dialogue", "environment"])
def test_a_no_is_left_out_where_configure_asks_only_whether_the_variable_is_there(by: By) -> None:
    yes: Answers = {"TF_IGNORE_MAX_BAZEL_VERSION": True}
    no: Answers = {"TF_IGNORE_MAX_BAZEL_VERSION": False}
    assert interview("2.6", yes, by).exports() == {"TF_IGNORE_MAX_BAZEL_VERSION": "1"}
    assert interview("2.6", no, by).exports() == {}


def test_a_release_that_looks_for_cuda_before_it_asks_finds_the_pinned_version() -> None:
    given: Answers = {"TF_NEED_CUDA": True, "TF_CUDA_VERSION": "10.1"}
    assert interview("2.1", given).exports() == {"TF_CUDA_VERSION": "10.1"}
    assert interview("1.13", given).exports() == {}


def test_an_interface_of_its_own_gets_every_answer_that_no_question_asks_for() -> None:
    table = PromptTable(variable="TF_NEED_CUDA", question="CUDA? ", kind="yes-no")
    given: Answers = {"TF_NEED_CUDA": False, "PIP_MANYLINUX2010": True}
    own = dialect.of_recipe("Linux", [table])
    assert Interview(own, given).exports() == {"PIP_MANYLINUX2010": "1"}
    everything = Interview(own, given, "environment").exports()
    assert everything == {"TF_NEED_CUDA": "0", "PIP_MANYLINUX2010": "1"}


def test_old_releases_hand_their_cuda_answers_on_in_the_environment() -> None:
    given: Answers = {"TF_NEED_CUDA": True, "TF_CUDA_VERSION": "8.0", "TF_NEED_GCP": False}
    handed_on = rendering.exported_answers(interview("0.11", given))
    assert handed_on == {"TF_NEED_CUDA": "1", "TF_CUDA_VERSION": "8.0"}
    assert rendering.exported_answers(interview("1.8", given)) == {}
