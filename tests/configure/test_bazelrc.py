"""Rendering, parsing and comparing bazelrc files."""

from pathlib import Path

import pytest

from tfwright.configure import bazelrc, catalogue
from tfwright.configure.bazelrc import By, Setting
from tfwright.configure.catalogue import Answer, Answers
from tfwright.documents.release import Release

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
    release: str, answers: Answers | None = None, *, system: str = "Linux", by: By = "dialogue"
) -> str:
    """Render with no for every question that is not answered."""
    found = Release.parse(release)
    prompts = [
        prompt
        for prompt in catalogue.prompts(found, system)
        if prompt.yes_no and not prompt.environment
    ]
    given: dict[str, Answer] = {prompt.variable: False for prompt in prompts}
    given |= {
        "PYTHON_BIN_PATH": "/p",
        "PYTHON_LIB_PATH": "/l",
        "CC_OPT_FLAGS": "-O2 -g",
        **(answers or {}),
    }
    return bazelrc.render(found, system, given, by=by, python="3.6.15")


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
            for setting in bazelrc.parse(text)
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


def test_releases_before_1_2_have_another_file() -> None:
    assert bazelrc.name(Release(1, 1)) == "tools/bazel.rc"
    assert bazelrc.name(Release(1, 2)) == ".tf_configure.bazelrc"


def test_a_file_is_read_as_a_set_of_settings() -> None:
    text = '# comment\nbuild:opt --copt=-O2 --host_copt=-O2\n\nbuild --action_env A="b c" # why\nbuild:mkl -c opt\nbuild --define x=y\n'
    assert bazelrc.parse(text) == {
        Setting("build", "opt", "--copt=-O2"),
        Setting("build", "opt", "--host_copt=-O2"),
        Setting("build", "", "--action_env=A=b c"),
        Setting("build", "mkl", "-c=opt"),
        Setting("build", "", "--define=x=y"),
    }


def test_order_repetition_quotes_and_spelling_make_no_difference() -> None:
    assert not bazelrc.compare(
        'build --define a="b"\nbuild --copt=-g',
        "build --copt=-g\nbuild --copt=-g\nbuild --define=a=b",
    )


def test_a_difference_shows_both_sides() -> None:
    difference = bazelrc.compare('build --action_env V="7.2"', 'build --action_env V="7"')
    assert difference.lines() == (
        "- rendered only: build --action_env=V=7.2",
        "+ written only:  build --action_env=V=7",
    )
