"""What is wrong with answers, told from the recipe alone."""

import pytest
from tests.failing import fails

from tfwright.configure import dialect, expected, validation
from tfwright.configure.catalogue import Answer, Answers
from tfwright.configure.interview import By, Interview
from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError

CUDA: Answers = {"TF_NEED_CUDA": True}


def faults(version: str, given: Answers, by: By = "dialogue") -> list[validation.AnswerFault]:
    spoken = dialect.of_tensorflow(ExactRelease.parse(version), "Linux")
    return validation.faults(Interview(spoken, given, by))


@pytest.mark.parametrize(
    ("version", "variable", "answer", "what"),
    [
        ("1.12", "TF_NEED_BANANA", True, "no ./configure of TensorFlow 1.12 reads it"),
        (
            "2.18",
            "HERMETIC_PYTHON_VERSION",
            "3.11",
            "Bazel reads it, and no ./configure of TensorFlow 2.18",
        ),
        ("1.12", "TF_NEED_CUDAA", False, "did you mean TF_NEED_CUDA?"),
        ("1.8", "TF_NEED_MPI", "perhaps", "'perhaps' is neither true nor false"),
        ("1.8", "CC_OPT_FLAGS", True, "takes a text"),
        ("1.8", "CC_OPT_FLAGS", "", "is empty"),
        ("1.8", "CC_OPT_FLAGS", '-DX="a b"', "splits flags at blanks"),
        ("1.3", "CC_OPT_FLAGS", "-DX=*", "for names of files"),
        ("1.8", "CC_OPT_FLAGS", "-O2 -DX=#1", "for a comment"),
        ("1.12", "PREFIX", "/opt/a b", "without quotes"),
        ("2.6", "LIBDIR", "/opt/#lib", "without quotes"),
        ("1.8", "GCC_HOST_COMPILER_PATH", '/opt/"gcc"', "in double quotes"),
        ("1.8", "TF_CUDA_VERSION", "", "is empty"),
        ("1.8", "TF_CUDA_VERSION", "nine", "'nine' is not a version"),
        ("1.8", "TF_NCCL_VERSION", "", "is empty"),
        ("1.8", "TF_CUDA_COMPUTE_CAPABILITIES", "turing", "not a compute capability"),
        ("1.8", "TF_CUDA_COMPUTE_CAPABILITIES", "3.5, 6.1", "' 6.1' is not a compute"),
        ("2.6", "TF_CUDA_COMPUTE_CAPABILITIES", "2.1", "only 3.0 and higher"),
        ("2.1", "TF_CUDA_COMPUTE_CAPABILITIES", "sm_70", "does not know the spelling"),
    ],
)
def test_an_answer_that_cannot_be_meant_is_refused(
    version: str, variable: str, answer: Answer, what: str
) -> None:
    (fault,) = faults(version, {**CUDA, variable: answer})
    assert what in str(fault)
    assert not fault.harmless


@pytest.mark.parametrize(
    ("version", "variable", "answer"),
    [
        ("1.14", "TF_NCCL_VERSION", ""),
        ("2.6", "TF_CUDA_COMPUTE_CAPABILITIES", "sm_70,compute_80"),
        ("2.6", "TF_CUDA_COMPUTE_CAPABILITIES", "3.5, 7.0"),
        ("1.8", "CC_OPT_FLAGS", '-DX="a" -O2'),
        ("1.8", "TF_CUDA_VERSION", "9.2.148"),
    ],
)
def test_an_answer_in_a_form_that_configure_takes_has_no_fault(
    version: str, variable: str, answer: Answer
) -> None:
    assert faults(version, {**CUDA, variable: answer}) == []


def test_a_no_to_what_is_built_in_anyway_is_refused_as_untrue() -> None:
    (fault,) = faults("1.12", {"TF_NEED_KAFKA": False})
    assert not fault.harmless
    assert "1.6 to 1.11 did" in fault.what
    assert "Kafka is built in, whatever the recipe answers" in fault.what


def test_a_no_that_is_true_all_the_same_is_only_remarked() -> None:
    (fault,) = faults("2.6", {"TF_NEED_GDR": False})
    assert fault.harmless
    (fault,) = faults("2.6", {"TF_NEED_GDR": True})
    assert not fault.harmless


def test_an_answer_that_depends_on_another_names_it() -> None:
    (fault,) = faults("1.8", {"TF_NEED_CUDA": False, "TF_CUDA_VERSION": "9.0"})
    assert str(fault) == "TF_CUDA_VERSION: TensorFlow 1.8 asks for it only with TF_NEED_CUDA"
    assert fault.harmless


def test_two_platforms_at_once_are_refused_before_all_the_questions() -> None:
    (fault,) = faults("2.6", {"TF_NEED_CUDA": True, "TF_NEED_ROCM": True})
    assert "excludes TF_NEED_ROCM" in fault.what


def test_a_terminal_would_cut_a_long_answer() -> None:
    given: Answers = {"CC_OPT_FLAGS": "-O2 " * 1200}
    (fault,) = faults("1.8", given)
    assert "4095 bytes" in fault.what
    assert faults("1.8", given, "environment") == []


@pytest.mark.parametrize(
    ("version", "variable", "says", "harmless"),
    [
        ("1.13", "TF_NEED_IGNITE", "Apache Ignite is built in", False),
        ("1.13", "TF_NEED_KAFKA", "--config=nokafka in compile.flags leaves", False),
        ("2.6", "TF_NEED_KAFKA", "dropped contrib, and Kafka with it", True),
        ("2.6", "TF_NEED_S3", "moved to the package tensorflow-io", True),
        ("2.5", "TF_NEED_HDFS", "HDFS is built in", False),
        ("2.6", "TF_NEED_GCP", "Google Cloud Platform is built in", False),
        ("1.11", "TF_NEED_S3", "TF_NEED_AWS asks for it", True),
        ("2.1", "TF_NEED_MPI", "dropped contrib, and MPI with it", True),
    ],
)
def test_what_became_of_a_feature_is_true_of_the_version(
    version: str, variable: str, says: str, *, harmless: bool
) -> None:
    spoken = dialect.of_tensorflow(ExactRelease.parse(version), "Linux")
    found = {
        fault.variable: fault for fault in validation.faults(Interview(spoken, {variable: False}))
    }
    assert says in found[variable].what
    assert found[variable].harmless is harmless


@pytest.mark.parametrize(
    ("version", "variable", "asked"),
    [
        # Three entries: for candidates, and with another wording.
        ("1.15", "TF_NEED_JEMALLOC", "(1.0 to 1.11 did)"),
        ("1.15", "TF_NEED_IGNITE", "(1.12 did)"),
        ("1.8", "TF_NEED_ROCM", "(1.12 and later did)"),
        ("2.20", "TF_DOWNLOAD_CLANG", "(1.6 to 2.13 did)"),
    ],
)
def test_the_releases_that_ask_a_question_are_named_once(
    version: str, variable: str, asked: str
) -> None:
    (fault,) = faults(version, {variable: False})
    assert asked in fault.what


def test_faults_and_missing_answers_come_to_light_together() -> None:
    spoken = dialect.of_tensorflow(ExactRelease.parse("1.8"), "Linux")
    given: Answers = {"TF_NEED_MPI": "perhaps"}
    with fails(RecipeError, "2 faults", "neither") as found:
        expected.check_answers(Interview(spoken, given, "dialogue"))
    assert len(found.value.remedy.splitlines()) >= 2
