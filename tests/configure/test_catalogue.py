"""The prompt catalogue: which question is recognised as which."""

import pytest

from tfwright.configure import catalogue
from tfwright.configure.catalogue import Answers, Prompt, from_recipe
from tfwright.documents.recipe import PromptTable
from tfwright.documents.release import ExactRelease

MENU = (
    "Found possible Python library paths:\n  /lib\nPlease input the desired Python library path "
    "to use.  Default is [/lib]\n"
)
CAPABILITIES = (
    "Please specify a list of comma-separated {} compute capabilities you want to build with.\n"
    "You can find the compute capability of your device at: "
    "https://developer.nvidia.com/cuda-gpus.\n"
    "Please note that each additional compute capability significantly increases your build time "
    "and binary size."
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
        (
            "Please specify which gcc nvcc should use as the host compiler. [Default is "
            "/usr/bin/gcc]: "
        ),
        "GCC_HOST_COMPILER_PATH",
    ),
    (
        "0.11",
        (
            "Please specify the Cuda SDK version you want to use, e.g. 7.0. [Leave empty to use "
            "system default]: "
        ),
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
        (
            "Please specify the location where cuDNN 7 library is installed. Refer to README.md "
            "for more details. [Default is /usr/local/cuda]:"
        ),
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
        (
            "Please specify the locally installed NCCL version you want to use. [Default is to use "
            "https://github.com/nvidia/nccl]: "
        ),
        "TF_NCCL_VERSION",
    ),
    (
        "1.15",
        (
            "Please specify the comma-separated list of base paths to look for CUDA libraries and "
            "headers. [Leave empty to use the default]: "
        ),
        "TF_CUDA_PATHS",
    ),
    ("2.14", "Do you want to use Clang to build TensorFlow? [Y/n]: ", "TF_NEED_CLANG"),
    (
        "2.14",
        "Please specify the path to clang executable. [Default is /usr/lib/llvm-16/bin/clang]: ",
        "CLANG_COMPILER_PATH",
    ),
    (
        "2.18",
        (
            "Please specify the hermetic CUDA version you want to use or leave empty to use the "
            "default version. "
        ),
        "HERMETIC_CUDA_VERSION",
    ),
    (
        "2.18",
        CAPABILITIES.format("CUDA") + " [Default is: 3.5,7.0]: ",
        "HERMETIC_CUDA_COMPUTE_CAPABILITIES",
    ),
    (
        "2.18",
        (
            "Please specify the local CUDNN path you want to use or leave empty to use the default "
            "version. "
        ),
        "LOCAL_CUDNN_PATH",
    ),
    (
        "2.20",
        (
            "Please specify clang path that to be used as host compiler. [Default is "
            "/usr/lib/llvm-18/bin/clang]: "
        ),
        "CLANG_CUDA_COMPILER_PATH",
    ),
]


def asked(text: str, release: str = "1.8", system: str = "Linux") -> str | None:
    found = catalogue.match_question(text, catalogue.prompts(ExactRelease.parse(release), system))
    return found.variable if found else None


@pytest.mark.parametrize(("release", "question", "variable"), QUESTIONS)
def test_a_question_is_recognised_by_its_text_behind_whatever_stands_before_it_and_by_one_entry(
    release: str, question: str, variable: str
) -> None:
    reply = "No XLA support will be enabled for TensorFlow.\n\n"
    assert asked(reply + question, release) == variable
    # At the end only, and by no other entry.
    assert asked(f"{question}\nSomething else", release) != variable
    prompts = catalogue.prompts(ExactRelease.parse(release), "Linux")
    claims = [prompt for prompt in prompts if prompt.asked and prompt.pattern.search(question)]
    assert len(claims) == 1


def test_a_warning_about_capabilities_does_not_answer_the_question_about_clang() -> None:
    warning = "WARNING: XLA does not support CUDA compute capabilities lower than 3.5.\n"
    question = "Do you want to use clang as CUDA compiler? [y/N]: "
    assert asked(warning + question, "2.1") == "TF_CUDA_CLANG"


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
    prompt = catalogue.prompts_of_variable("TF_DOWNLOAD_CLANG")[-1]
    assert prompt.applies(answers) is applies


@pytest.mark.parametrize(
    "prompt", catalogue.all_prompts(), ids=lambda prompt: f"{prompt.variable}-{prompt.since}"
)
def test_every_entry_says_what_is_asked_or_that_nothing_is(prompt: Prompt) -> None:
    kinds = (prompt.question, prompt.support, prompt.environment, prompt.stated)
    assert sum(map(bool, kinds)) == 1
    assert prompt.pattern.pattern.endswith(r"\Z")


def test_a_forks_question_is_known_in_the_fork_alone() -> None:
    question = (
        "Do you wish to build TensorFlow with Horovod for IPU (requires MPI) support? [y/N]: "
    )
    assert asked(question, "2.4+ipu") == "TF_NEED_IPU_HOROVOD"
    assert asked(question, "2.4") is None


def test_a_recipes_question_is_plain_text_with_a_star_for_what_varies() -> None:
    table = PromptTable(variable="TF_FLUX", question="Where (exactly)? [Default is *]: ")
    pattern = from_recipe(table).pattern
    assert pattern.search("Some reply.\nWhere (exactly)? [Default is /dev/flux]: ")
    assert not pattern.search("Where exactly? [Default is /dev/flux]: ")


def test_a_question_is_looked_for_at_the_end_of_a_long_text_only() -> None:
    question = "Do you wish to build TensorFlow with GDR support? [y/N]: "
    assert asked("x" * 10_000_000 + question) == "TF_NEED_GDR"


@pytest.mark.parametrize(
    "prompt",
    [prompt for prompt in catalogue.all_prompts() if prompt.asked],
    ids=lambda prompt: f"{prompt.variable}-{prompt.since}",
)
def test_a_person_reads_each_question_in_plain_words(prompt: Prompt) -> None:
    assert not set(prompt.wording) & set("\\[]*|^\n")
    assert len(prompt.wording.split()) > 4


def test_of_a_question_with_variants_one_is_shown() -> None:
    def wording(variable: str) -> str:
        return catalogue.prompts_of_variable(variable)[0].wording

    assert wording("GCC_HOST_COMPILER_PATH") == (
        "Please specify which gcc nvcc should use as the host compiler."
    )
    assert wording("CC_OPT_FLAGS") == "Please specify optimization flags to use during compilation"
    assert wording("TF_CUDA_VERSION") == "Please specify the CUDA SDK version you want to use."
