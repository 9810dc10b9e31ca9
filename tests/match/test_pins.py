"""What a recipe for a release pins: the same for `match`, which names it, and `new`, which writes it."""

import pytest
from tests.failing import fails

from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.facts import compatibility
from tfwright.match import pins
from tfwright.match.pins import Toolkit, bazel_pin
from tfwright.match.wish import Wish


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (
            Wish(system="Linux", gpu="3.0", python="3.6"),
            {
                "TensorFlow": "2.3 (the newest that fits)",
                "host.cuda": "10.1 (tested with this release)",
                "host.gcc": "8 (the newest for this CUDA)",
            },
        ),
        (
            Wish(system="Linux", gpu="12.0"),
            {
                "TensorFlow": "2.21 (the newest that fits)",
                "host.cuda": "12.8 (this release was tested with 12.5)",
                "host.driver": "570.26 (drivers 570.26 or later run it)",
                "compute capabilities": "12.0",
            },
        ),
        (
            Wish(system="Linux", cuda="9.2", python="2.7"),
            {
                "TensorFlow": "1.12 (the newest that fits)",
                "host.cuda": "9.2 (this release was tested with 9.0)",
                "host.python": "2.7 (TensorFlow 1.12 takes 2.7 to 3.6)",
            },
        ),
        (
            Wish(system="Darwin", gpu="3.0", cuda="9.2"),
            {
                "host.xcode": "9.2 (the newest for this CUDA, with Apple clang 9.0 or earlier)",
                "host.macos": "10.13 (for this CUDA)",
            },
        ),
        (
            Wish(system="Linux", python="2.7", glibc="2.17"),
            {"verify.glibc": "2.17 (built in an image that has no newer one)"},
        ),
    ],
)
def test_a_new_recipe_is_told_what_to_pin(wanted: Wish, named: dict[str, str]) -> None:
    assert named.items() <= {pin.name: str(pin) for pin in pins.new_recipe_pins(wanted)}.items()


def test_every_pin_of_the_tables_has_a_source() -> None:
    needs = pins.new_recipe_pins(Wish(system="Linux", gpu="6.1", glibc="2.17"))
    bare = [pin.name for pin in needs if not (pin.source or pin.open)]
    assert bare == ["TensorFlow", "verify.glibc"]


def test_what_was_never_made_for_each_other_has_no_recipe() -> None:
    assert pins.new_recipe_pins(Wish(gpu="3.0", cuda="12.8")) == []


@pytest.mark.parametrize(
    ("release", "version", "why"),
    [
        ("1.4", "0.5.4", "TensorFlow 1.4 was tested with it; ./configure takes 0.5.4 or"),
        ("2.6", "3.7.2", "was tested with it; ./configure takes 3.7.2 to 3.99.0"),
        ("2.20", "7.4.1", "TensorFlow 2.20 was tested with it: https://"),
    ],
)
def test_bazel_is_one_that_the_release_was_tested_with(
    release: str, version: str, why: str
) -> None:
    found = bazel_pin(Release.parse(release), {})
    assert found.value == version
    assert why in found.reason


def test_the_tree_decides_about_bazel_before_the_tables_do() -> None:
    release = Release(2, 6)
    exact = bazel_pin(release, {".bazelversion": "3.7.1\n# why\n"})
    assert (exact.value, exact.reason) == ("3.7.1", "what .bazelversion of this commit says")
    newer = "_TF_MIN_BAZEL_VERSION = '4.0.0'\n_TF_MAX_BAZEL_VERSION = '4.2.1'\n"
    least = bazel_pin(release, {"configure.py": newer})
    assert least.value == "4.0.0"
    assert "configure.py of this commit takes 4.0.0 to 4.2.1" in least.reason
    old = bazel_pin(Release(0, 12), {"WORKSPACE": 'check_version("0.3.2")\n'})
    assert old.value == "0.3.2"
    assert "newer ones are untested" in old.reason


def test_without_any_knowledge_a_person_has_to_name_bazel() -> None:
    with fails(RecipeError, "--bazel VERSION"):
        bazel_pin(Release(2, 99), {})
    assert bazel_pin(Release(2, 99), {}, "8.0.0").value == "8.0.0"
    with fails(RecipeError, "--bazel"):
        bazel_pin(Release(2, 99), {}, "x y")


def test_a_downloaded_cuda_is_tried_with_the_packages_of_pip_that_hold_it() -> None:
    def of_pip(cuda: str, release: Release) -> list[str]:
        toolkit = Toolkit.of(compatibility.cuda(cuda), release)
        assert toolkit
        return toolkit.pip_packages(extra)

    extra = "['nvidia-cuda-runtime-cu12 >= 12.5', 'nvidia-cublas-cu12', 'nvidia-cudnn-cu12', 'six']"
    for cuda, whole, cudnn in (("12.8", "12.8.1", "9.7.0"), ("13.0", "13.0.2", "9.12.0")):
        assert of_pip(cuda, Release(2, 21)) == [
            f"cuda-toolkit[cudart,cublas]=={whole}",
            f"nvidia-cudnn-cu{cuda[:2]}=={cudnn}.*",
        ]
    # Up to 2.17 the wheel is tried with the toolkit that it was built with.
    assert of_pip("12.8", Release(2, 17)) == []
