"""The prompt catalogue, and who answers from it."""

import tomllib

import pytest

from tfwright.configure import answering, answers, bazelrc, catalogue
from tfwright.configure.catalogue import Answers
from tfwright.documents.release import Release
from tfwright.errors import RecipeError

R1_8 = Release(1, 8)
MENU = "Found possible Python library paths:\n  /lib\nPlease input the desired Python library path to use.  Default is [/lib]\n"
CAPABILITIES = (
    "Please specify a list of comma-separated {} compute capabilities you want to build with.\n"
    "You can find the compute capability of your device at: https://developer.nvidia.com/cuda-gpus.\n"
    "Please note that each additional compute capability significantly increases your build time and binary size."
)

QUESTIONS = [
    (
        "0.8",
        "Please specify the location of python. [Default is /usr/bin/python]: ",
        "PYTHON_BIN_PATH",
    ),
    ("0.8", "Do you wish to build TensorFlow with GPU support? [y/N] ", "TF_NEED_CUDA"),
    (
        "0.8",
        "Please specify which gcc nvcc should use as the host compiler. [Default is /usr/bin/gcc]: ",
        "GCC_HOST_COMPILER_PATH",
    ),
    (
        "0.11",
        "Please specify the Cuda SDK version you want to use, e.g. 7.0. [Leave empty to use system default]: ",
        "TF_CUDA_VERSION",
    ),
    (
        "0.11",
        "Please specify the Cudnn version you want to use. [Leave empty to use system default]: ",
        "TF_CUDNN_VERSION",
    ),
    (
        "0.11",
        CAPABILITIES.format("Cuda") + '\n[Default is: "3.5,5.2"]: ',
        "TF_CUDA_COMPUTE_CAPABILITIES",
    ),
    (
        "1.0",
        "Do you wish to use jemalloc as the malloc implementation? (Linux only) [Y/n] ",
        "TF_NEED_JEMALLOC",
    ),
    (
        "1.0",
        "Please specify optimization flags to use during compilation [Default is -march=native]: ",
        "CC_OPT_FLAGS",
    ),
    ("1.8", MENU, "PYTHON_LIB_PATH"),
    (
        "1.8",
        "Do you wish to build TensorFlow with jemalloc as malloc support? [Y/n]: ",
        "TF_NEED_JEMALLOC",
    ),
    (
        "1.8",
        "Please specify the location where cuDNN 7 library is installed. Refer to README.md for more details. [Default is /usr/local/cuda]:",
        "CUDNN_INSTALL_PATH",
    ),
    ("1.8", CAPABILITIES.format("Cuda") + " [Default is: 3.5,5.2]", "TF_CUDA_COMPUTE_CAPABILITIES"),
    (
        "1.8",
        "Do you wish to download a fresh release of clang? (Experimental) [y/N]: ",
        "TF_DOWNLOAD_CLANG",
    ),
    (
        "1.13",
        "Please specify the locally installed NCCL version you want to use. [Default is to use https://github.com/nvidia/nccl]: ",
        "TF_NCCL_VERSION",
    ),
    (
        "1.15",
        "Please specify the comma-separated list of base paths to look for CUDA libraries and headers. [Leave empty to use the default]: ",
        "TF_CUDA_PATHS",
    ),
    ("2.13", "Do you want to use Clang to build TensorFlow? [Y/n]: ", "TF_NEED_CLANG"),
    (
        "2.13",
        "Please specify the path to clang executable. [Default is /usr/lib/llvm-16/bin/clang]: ",
        "CLANG_COMPILER_PATH",
    ),
    (
        "2.18",
        "Please specify the hermetic CUDA version you want to use or leave empty to use the default version. ",
        "HERMETIC_CUDA_VERSION",
    ),
    (
        "2.18",
        CAPABILITIES.format("CUDA") + " [Default is: 3.5,7.0]: ",
        "HERMETIC_CUDA_COMPUTE_CAPABILITIES",
    ),
    (
        "2.18",
        "Please specify the local CUDNN path you want to use or leave empty to use the default version. ",
        "LOCAL_CUDNN_PATH",
    ),
    (
        "2.20",
        "Please specify clang path that to be used as host compiler. [Default is /usr/lib/llvm-18/bin/clang]: ",
        "CLANG_CUDA_COMPILER_PATH",
    ),
]


def asked(text: str, release: Release = R1_8, system: str = "Linux") -> str | None:
    found = catalogue.matching(text, catalogue.prompts(release, system))
    return found.variable if found else None


@pytest.mark.parametrize(("release", "question", "variable"), QUESTIONS)
def test_a_question_is_recognised_by_its_text_behind_whatever_stands_before_it(
    release: str, question: str, variable: str
) -> None:
    assert (
        asked(
            "No XLA support will be enabled for TensorFlow.\n\n" + question, Release.parse(release)
        )
        == variable
    )


@pytest.mark.parametrize(("release", "question", "variable"), QUESTIONS)
def test_a_question_that_is_not_at_the_end_is_no_question(
    release: str, question: str, variable: str
) -> None:
    assert asked(f"{question}\nSomething else", Release.parse(release)) != variable


@pytest.mark.parametrize(("release", "question", "variable"), QUESTIONS)
def test_no_two_entries_of_a_release_claim_the_same_question(
    release: str, question: str, variable: str
) -> None:
    claims = [
        prompt.variable
        for prompt in catalogue.prompts(Release.parse(release), "Linux")
        if not prompt.environment and prompt.pattern.search(question)
    ]
    assert claims == [variable]


def test_a_warning_about_capabilities_does_not_answer_the_question_about_clang() -> None:
    warning = "WARNING: XLA does not support CUDA compute capabilities lower than 3.5. Disable XLA when running on older GPUs.\n"
    assert (
        asked(warning + "Do you want to use clang as CUDA compiler? [y/N]: ", Release(2, 1))
        == "TF_CUDA_CLANG"
    )


def test_what_only_linux_is_asked_is_no_question_on_a_mac() -> None:
    jemalloc = "Do you wish to build TensorFlow with jemalloc as malloc support? [Y/n]: "
    assert asked(jemalloc) == "TF_NEED_JEMALLOC"
    assert asked(jemalloc, system="Darwin") is None


@pytest.mark.parametrize(
    ("answers", "applies"),
    [
        ({"TF_NEED_CUDA": False}, True),
        ({}, True),
        ({"TF_NEED_CUDA": True, "TF_CUDA_CLANG": False}, False),
        ({"TF_NEED_CUDA": True, "TF_CUDA_CLANG": True}, True),
    ],
)
def test_a_condition_decides_from_the_other_answers(answers: Answers, *, applies: bool) -> None:
    prompt = next(
        prompt for prompt in catalogue.everything() if prompt.variable == "TF_DOWNLOAD_CLANG"
    )
    assert prompt.applies(answers) is applies


@pytest.mark.parametrize(
    "prompt", catalogue.everything(), ids=lambda prompt: f"{prompt.variable}-{prompt.since}"
)
def test_every_entry_says_what_is_asked_or_that_nothing_is(prompt: catalogue.Prompt) -> None:
    assert sum(map(bool, (prompt.question, prompt.support, prompt.environment))) == 1
    assert prompt.since <= prompt.until


def test_all_missing_answers_are_known_before_configure_starts() -> None:
    given: Answers = {
        "TF_NEED_CUDA": False,
        **answers.UNKNOWN_PYTHON,
        "TF_NEED_MPI": False,
        "CC_OPT_FLAGS": "-O2",
    }
    lacking = [prompt.variable for prompt in catalogue.unanswered(Release(2, 0), "Linux", given)]
    assert lacking == [
        "TF_ENABLE_XLA",
        "TF_NEED_OPENCL_SYCL",
        "TF_NEED_ROCM",
        "TF_DOWNLOAD_CLANG",
        "TF_SET_ANDROID_WORKSPACE",
    ]


def typist(given: Answers) -> answering.Typist:
    return answering.Typist(R1_8, "Linux", given)


GDR = "Do you wish to build TensorFlow with GDR support? [y/N]: "


def test_yes_and_no_are_typed_as_letters_and_text_as_it_is() -> None:
    someone = typist({"TF_NEED_GDR": False, "TF_NEED_CUDA": True, "PYTHON_BIN_PATH": "/p"})
    questions = [
        GDR,
        "Do you wish to build TensorFlow with CUDA support? [y/N]: ",
        "Please specify the location of python. [Default is x]: ",
    ]
    assert [someone.answer(question) for question in questions] == ["n", "y", "/p"]
    assert someone.asked == ["TF_NEED_GDR", "TF_NEED_CUDA", "PYTHON_BIN_PATH"]


def test_a_question_without_an_answer_names_the_variable_and_the_line_to_add() -> None:
    with pytest.raises(RecipeError, match="TF_NEED_GDR") as caught:
        typist({}).answer(GDR)
    assert "TF_NEED_GDR = false" in caught.value.remedy


def test_a_second_asking_stops_and_shows_what_was_said_in_between() -> None:
    someone = typist({"TF_NEED_GDR": "yes"})
    someone.answer(GDR)
    with pytest.raises(RecipeError, match="does not take 'yes' for TF_NEED_GDR") as caught:
        someone.answer("Invalid selection: yes\n" + GDR)
    assert "Invalid selection: yes" in caught.value.evidence.lines


def test_the_lines_for_an_unknown_question_make_it_known_once_added() -> None:
    question = "Do you wish to build TensorFlow with Quantum (beta) support? [y/N]: "
    with pytest.raises(
        RecipeError, match=r"TensorFlow 1\.8 asks: Do you wish to build TensorFlow with Quantum"
    ) as caught:
        typist({}).answer("Some reply.\n\n" + question)
    lines = caught.value.remedy.split("Add to prompts.toml:\n")[1].split("\nand to the recipe")[0]
    prompt = catalogue.Catalogue.model_validate(tomllib.loads(lines)).prompt[0]
    assert prompt.variable == "TF_NEED_QUANTUM_BETA_"
    assert prompt.yes_no
    assert prompt.pattern.search(question)


def test_an_unknown_default_may_differ_on_the_next_host() -> None:
    with pytest.raises(RecipeError) as caught:
        typist({}).answer("Please specify the flux capacitor. [Default is /dev/flux]: ")
    assert r"\[Default is [^\n]*\]: " in caught.value.remedy


def test_a_question_of_another_release_is_named_by_its_variable() -> None:
    with pytest.raises(RecipeError) as caught:
        typist({}).answer("Do you wish to build TensorFlow with nGraph support? [y/N]: ")
    assert 'variable = "TF_NEED_NGRAPH"' in caught.value.remedy


def test_the_watcher_takes_any_question_for_an_error() -> None:
    watcher = answering.Watcher(R1_8, "Linux", {"TF_NEED_GDR": False})
    with pytest.raises(RecipeError, match="does not take TF_NEED_GDR='0' from the environment"):
        watcher.answer(GDR)


def test_what_a_release_does_not_know_is_not_exported() -> None:
    given: Answers = {"TF_NEED_S3": False, "TF_NEED_AWS": False, "TF_SET_ANDROID_WORKSPACE": False}
    assert answers.exports(R1_8, "Linux", given, everything=True) == {
        "TF_NEED_S3": "0",
        "TF_SET_ANDROID_WORKSPACE": "0",
    }


def test_1_5_is_told_no_android_in_the_only_way_it_understands() -> None:
    assert answers.exports(
        Release(1, 5), "Linux", {"TF_SET_ANDROID_WORKSPACE": False}, everything=True
    ) == {"TF_SET_ANDROID_WORKSPACE": ""}


def test_what_is_read_from_the_environment_alone_goes_there_in_a_dialogue_too() -> None:
    given: Answers = {"TF_ENABLE_XLA": True, "TF_NEED_ROCM": False}
    assert answers.exports(Release(2, 4), "Linux", given, everything=False) == {
        "TF_ENABLE_XLA": "1"
    }


def test_old_releases_hand_their_cuda_answers_on_in_the_environment() -> None:
    given: Answers = {"TF_NEED_CUDA": True, "TF_CUDA_VERSION": "8.0", "TF_NEED_GCP": False}
    assert bazelrc.exported(Release(0, 11), given) == {
        "TF_NEED_CUDA": "1",
        "TF_CUDA_VERSION": "8.0",
    }
    assert bazelrc.exported(R1_8, given) == {}
