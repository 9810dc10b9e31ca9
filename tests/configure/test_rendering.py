"""The file that each version writes, rendered from answers."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.configure import catalogue, dialect, rendering, traits
from tfwright.configure.catalogue import Answer, Answers
from tfwright.configure.interview import By, Interview
from tfwright.configure.traits import Scripts
from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError
from tfwright.rules.configurations import settings

CUDA: Answers = {
    "TF_NEED_CUDA": True,
    "TF_CUDA_VERSION": "9.2.148",
    "TF_CUDNN_VERSION": "7.2",
    "TF_NCCL_VERSION": "1.3",
    "CUDA_TOOLKIT_PATH": "/opt/cuda-9.2",
    "CUDNN_INSTALL_PATH": "/opt/cuda-9.2",
    "TF_CUDA_COMPUTE_CAPABILITIES": "3.0,6.1",
    "GCC_HOST_COMPILER_PATH": "/opt/gcc",
}


def render(
    version: str,
    answers: Answers | None = None,
    *,
    system: str = "Linux",
    by: By = "dialogue",
    scripts: Scripts | None = None,
) -> str:
    """Render with no for every question that is not answered."""
    spoken = dialect.of_tensorflow(ExactRelease.parse(version), system, (), scripts)
    prompts = [prompt for prompt in spoken.prompts if prompt.yes_no and prompt.asked]
    given: dict[str, Answer] = {prompt.variable: False for prompt in prompts}
    given |= {"PYTHON_BIN_PATH": "/p", "PYTHON_LIB_PATH": "/l", "CC_OPT_FLAGS": "-O2 -g"}
    return rendering.render(Interview(spoken, {**given, **(answers or {})}, by, "3.6.15"))


def test_a_candidate_of_0_9_leaves_the_python_of_tools_to_bazel() -> None:
    forced = "build --host_force_python=py3"
    assert forced in render("0.9.0").splitlines()
    assert forced not in render("0.9.0rc0").splitlines()


def test_a_release_before_the_first_known_one_is_refused() -> None:
    with fails(RecipeError, "0.7", "0.8"):
        render("0.7.1")


OWN = traits.OWN_FUNCTION + "line):\n"
"""What every configure.py of TensorFlow's holds."""

RELEASES = (
    [f"0.{minor}" for minor in range(8, 13)]
    + [f"1.{minor}" for minor in range(16)]
    + [f"2.{minor}" for minor in range(21)]
)


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
@pytest.mark.parametrize("release", RELEASES)
def test_every_release_renders_without_a_line_that_bazel_cannot_read(
    release: str, system: str
) -> None:
    for answers in (None, CUDA):
        text = render(release, answers, system=system)
        assert "/p" in text
        assert all(
            setting.command in {"build", "test", "run"} and setting.flag.startswith("-")
            for setting in settings(text)
        ), text


def test_versions_are_cut_where_configure_cuts_them() -> None:
    assert 'TF_CUDA_VERSION="9.2.148"' in render("1.6", CUDA)
    assert 'TF_CUDA_VERSION="9.2"' in render("1.8", CUDA)
    assert 'TF_CUDNN_VERSION="7"' in render("1.8", CUDA)
    assert 'TF_NCCL_VERSION="1"' in render("1.8", CUDA)
    assert 'TF_CUDA_VERSION="9.2.148"' in render("1.15", CUDA)


def test_a_no_leaves_a_config_to_switch_the_feature_on() -> None:
    assert "build:gcp --define with_gcp_support=true" in render("1.8")
    assert "gcp" not in render("1.3")


def test_cuda_selects_its_config_from_1_3_on() -> None:
    assert "--config=cuda" not in render("1.2", CUDA)
    assert "build --config=cuda\ntest --config=cuda" in render("1.8", CUDA)
    assert "test --config=cuda" not in render("2.6", CUDA)


def test_nccl_and_tensorrt_are_no_matter_on_a_mac() -> None:
    text = render("1.8", CUDA, system="Darwin")
    assert "NCCL" not in text
    assert 'TF_CUDNN_VERSION="7"' in text


def test_links_are_followed_where_configure_follows_them(tmp_path: Path) -> None:
    (tmp_path / "cuda-9.2").mkdir()
    (tmp_path / "cuda").symlink_to("cuda-9.2")
    link = str(tmp_path / "cuda")
    text = render("1.8", {**CUDA, "CUDA_TOOLKIT_PATH": link, "CUDNN_INSTALL_PATH": link})
    assert f'CUDA_TOOLKIT_PATH="{link}"' in text
    assert f'CUDNN_INSTALL_PATH="{link}-9.2"' in text


def test_the_environment_reaches_the_test_filters_of_1_15_and_the_dialogue_does_not() -> None:
    assert "--test_tag_filters=-gpu" in render("1.15", CUDA)
    assert "--test_tag_filters=-no_gpu" in render("1.15", CUDA, by="environment")


def test_xla_is_on_by_silence_in_2_4_and_says_nothing_in_2_6() -> None:
    assert "build --config=xla" in render("2.4")
    assert "build --config=xla" not in render("2.4", {"TF_ENABLE_XLA": False})
    assert "xla" not in render("2.6")


def test_hermetic_cuda_is_named_by_version_and_not_by_place() -> None:
    text = render("2.20", {**CUDA, "HERMETIC_CUDA_VERSION": "12.8.1", "HERMETIC_CUDNN_VERSION": ""})
    assert 'build:cuda --repo_env HERMETIC_CUDA_VERSION="12.8.1"' in text
    assert "HERMETIC_CUDNN_VERSION" not in text
    assert "/opt/cuda" not in text


def test_a_patch_release_may_write_other_lines_than_the_first_of_its_line() -> None:
    assert "build:opt --host_copt=-march=native" in render("2.4.0")
    assert "build:opt --host_copt=-march=native" not in render("2.4.1")
    assert "build:opt --host_copt=-O2" in render("2.4.4")


def test_a_fork_is_known_by_what_follows_the_plus_sign() -> None:
    text = render("1.15.5+nv22.12")
    assert "build --copt=-O2" in text
    assert 'build --action_env TF_USE_CCACHE="0"' in text
    assert "TF_USE_CCACHE" not in render("1.15.2+nv20.06")
    assert "build:opt --copt=-O2" in render("1.15.5")


def test_the_script_of_the_tree_decides_before_the_version_does() -> None:
    script = OWN + "def set_cc_opt_flags():\n  write_to_bazelrc('build:opt --host_copt=%s' % opt)\n"
    text = render("2.4.0", scripts={"configure.py": script})
    assert "build:opt --host_copt=-O2" in text
    assert "-march=native" not in text


def test_the_folder_of_tensorrts_library_is_written_instead_of_its_prefix(tmp_path: Path) -> None:
    make_file(tmp_path / "lib/libnvinfer.so.5.1.5", "")
    (tmp_path / "lib/libnvinfer.so").symlink_to("libnvinfer.so.5.1.5")
    tensorrt: Answers = {
        "TF_NEED_TENSORRT": True,
        "TENSORRT_INSTALL_PATH": str(tmp_path),
        "TF_TENSORRT_VERSION": "5.1.5",
    }
    text = render("1.12", {**CUDA, **tensorrt, "NCCL_INSTALL_PATH": "/opt/nccl"})
    assert f'TENSORRT_INSTALL_PATH="{tmp_path}/lib"' in text
    assert 'TF_TENSORRT_VERSION="5.1.5"' in text


def test_a_linked_toolkit_is_followed_by_the_releases_that_follow_it(tmp_path: Path) -> None:
    (tmp_path / "cuda-10.1").mkdir()
    (tmp_path / "cuda").symlink_to("cuda-10.1")
    link = str(tmp_path / "cuda")
    toolkit: Answers = {**CUDA, "CUDA_TOOLKIT_PATH": link, "TF_CUDA_PATHS": link}
    assert f'CUDA_TOOLKIT_PATH="{link}"' in render("2.1", toolkit)
    assert f'CUDA_TOOLKIT_PATH="{link}-10.1"' in render("2.6", toolkit)


def test_system_libraries_are_sorted_as_configure_sorts_them() -> None:
    assert 'TF_SYSTEM_LIBS=" curl,zlib"' in render("2.6", {"TF_SYSTEM_LIBS": "zlib, curl"})
    assert 'TF_SYSTEM_LIBS="curl,zlib"' in render("2.6", {"TF_SYSTEM_LIBS": "zlib curl"})


@pytest.mark.parametrize(
    ("release", "written"),
    [
        ("2.7", ["--flaky_test_attempts=3"]),
        ("2.12", ["--flaky_test_attempts=3"]),
        ("2.13", ["--flaky_test_attempts=3", "-oss_excluded", "-mac_excluded"]),
        ("2.14", ["-oss_excluded", "-mac_excluded"]),
    ],
)
def test_releases_from_2_7_on_leave_out_the_tests_that_their_scripts_name(
    release: str, written: list[str]
) -> None:
    text = render(release, system="Darwin")
    for flag in ("--flaky_test_attempts=3", "-oss_excluded", "-mac_excluded"):
        assert (flag in text) is (flag in written)
    assert "--flaky_test_attempts=2" not in text


@pytest.mark.parametrize(
    ("release", "lines"),
    [
        ("2.8", ["ROCBLAS_TENSILE_LIBPATH"]),
        ("2.9", ["ROCBLAS_TENSILE_LIBPATH", "HIP_PLATFORM"]),
        ("2.12", ["HIP_PLATFORM"]),
    ],
)
def test_what_is_written_of_rocm_depends_on_the_release(release: str, lines: list[str]) -> None:
    rocm: Answers = {"TF_NEED_ROCM": True, "ROCM_PATH": "/opt/rocm", "HIP_PLATFORM": "amd"}
    text = render(release, rocm)
    for variable in ("ROCBLAS_TENSILE_LIBPATH", "HIP_PLATFORM"):
        assert (variable in text) is (variable in lines)


def test_a_compiler_in_a_linked_directory_is_followed_from_2_12_on(tmp_path: Path) -> None:
    make_file(tmp_path / "bin/gcc-9", "")
    (tmp_path / "bin/gcc").symlink_to("gcc-9")
    (tmp_path / "linked").symlink_to("bin")

    def compiler(release: str, name: str) -> str:
        path = str(tmp_path / "linked" / name)
        text = render(release, {**CUDA, "GCC_HOST_COMPILER_PATH": path})
        return text.partition('GCC_HOST_COMPILER_PATH="')[2].partition('"')[0]

    assert compiler("2.0", "gcc") == f"{tmp_path}/linked/gcc"
    assert compiler("2.11", "gcc") == f"{tmp_path}/bin/gcc-9"
    assert compiler("2.11", "gcc-9") == f"{tmp_path}/linked/gcc-9"
    assert compiler("2.12", "gcc-9") == f"{tmp_path}/bin/gcc-9"


def test_clang_17_is_warned_of_by_the_releases_that_know_it() -> None:
    for release, expected in (("2.14", False), ("2.18", True)):
        clang: Answers = {
            "TF_NEED_CLANG": True,
            "CLANG_COMPILER_PATH": "/usr/lib/llvm-17/bin/clang",
        }
        assert ("-Wno-gnu-offsetof" in render(release, clang)) is expected


ASKS_GCP = OWN + "set_build_var(environ_cp, 'TF_NEED_GCP', 'Google Cloud Platform')\n"
OFFERS = "  elif bazel_config_name is not None:\n"


def test_a_feature_that_a_release_candidate_does_not_have_yet_is_not_rendered() -> None:
    text = render("1.4", scripts={"configure.py": ASKS_GCP + OFFERS})
    assert "with_gcp_support" in text
    assert "with_s3_support" not in text


def test_a_feature_of_the_next_release_is_known_once_the_script_asks_for_it() -> None:
    asks_aws = OWN + "set_build_var(\n    environ_cp, 'TF_NEED_AWS', 'Amazon AWS Platform')\n"
    text = render("1.9", {"TF_NEED_AWS": False}, scripts={"configure.py": asks_aws + OFFERS})
    assert "build:aws --define with_aws_support=true" in text
    assert "aws" not in render("1.9", {"TF_NEED_AWS": False})


DOWNLOADS_CLANG = (
    OWN
    + """set_action_env_var(
      environ_cp,
      'TF_DOWNLOAD_CLANG',
      None,
      False,
      question='Do you wish to download a fresh release of clang? (Experimental)')
"""
)


def test_the_script_tells_how_it_words_a_question_and_what_it_never_names() -> None:
    spoken = dialect.of_tensorflow(
        ExactRelease.parse("1.7.0-rc1"), "Linux", (), {"configure.py": DOWNLOADS_CLANG}
    )
    text = "Do you wish to download a fresh release of clang? (Experimental) [y/N]: "
    found = catalogue.match_question(text, spoken.prompts)
    assert found
    assert found.variable == "TF_DOWNLOAD_CLANG"
    optional = {
        prompt.variable: prompt.optional
        for prompt in spoken.prompts
        if prompt.variable in {"TF_CUDA_CLANG", "TF_SET_ANDROID_WORKSPACE"}
    }
    assert all(optional.values())


def test_a_commit_between_2_1_and_2_2_names_the_tests_in_one_filter() -> None:
    script = (
        OWN
        + "def system_specific_test_config(env):\n"
        + "  write_to_bazelrc('test --test_tag_filters=%s' % filters)\n"
    )
    text = render("2.0", scripts={"configure.py": script})
    joined = "test --test_tag_filters=-benchmark-test,-no_oss,-gpu,-oss_serial"
    assert joined in text
    assert joined not in render("2.0")
    assert "test:v1" not in text


def test_what_only_the_script_wants_is_asked_of_the_recipe_without_a_traceback() -> None:
    tensorrt: Answers = {"TF_NEED_TENSORRT": True, "TF_TENSORRT_VERSION": "5"}
    asks = OWN + "# TF_NEED_CUDA TF_NEED_TENSORRT\n"
    with fails(RecipeError, 'TENSORRT_INSTALL_PATH = "..."'):
        render("2.0", {**CUDA, **tensorrt}, scripts={"configure.py": asks})


OPENCL: Answers = {
    "TF_NEED_OPENCL": True,
    "HOST_CXX_COMPILER": "/c++",
    "HOST_C_COMPILER": "/c",
    "COMPUTECPP_TOOLKIT_PATH": "/sycl",
}


@pytest.mark.parametrize(
    ("candidate", "cuda", "opencl"),
    [
        ("1.1.0-rc0", False, False),
        ("1.1.0-rc1", True, False),
        ("1.1.0-rc2", True, True),
        ("1.1.0", False, False),
    ],
)
def test_two_candidates_of_1_1_wrote_what_came_with_1_2(
    candidate: str, *, cuda: bool, opencl: bool
) -> None:
    line = 'build --action_env TF_CUDA_VERSION="9.2.148"'
    assert (line in render(candidate, CUDA)) is cuda
    assert ("build:cuda_clang" in render(candidate)) is cuda
    line = 'build --action_env COMPUTECPP_TOOLKIT_PATH="/sycl"'
    assert (line in render(candidate, OPENCL)) is opencl


@pytest.mark.parametrize(
    ("candidate", "variable", "release"),
    [
        ("1.0.0-alpha", "CC_OPT_FLAGS", "1.0.0-rc0"),
        ("1.0.0-alpha", "TF_ENABLE_XLA", "1.0"),
        ("1.4.0-rc0", "TF_NEED_S3", "1.4.0-rc1"),
        ("1.1.0-rc0", "TF_CUDA_CLANG", "1.1.0-rc2"),
    ],
)
def test_a_candidate_is_not_asked_for_what_came_after_it(
    candidate: str, variable: str, release: str
) -> None:
    def asked(version: str) -> set[str]:
        spoken = dialect.of_tensorflow(ExactRelease.parse(version), "Linux")
        return {prompt.variable for prompt in spoken.prompts}

    assert variable not in asked(candidate)
    assert variable in asked(release)


def test_an_alpha_of_1_0_writes_no_flags_for_the_compiler() -> None:
    assert "-c opt" not in render("1.0.0-alpha")
    assert "build:opt" not in render("1.0.0-alpha")
    assert "build -c opt" in render("1.0")
