import pytest

from tfwright.match.releases import exclusions
from tfwright.match.wish import Wish


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"release": "2.18", "python": "3.13"}, ("Python 3.9 to 3.12", "TensorFlow 2.20")),
        ({"release": "2.7", "gpu": "3.0"}, ("3.5 to 8.6, and not for 3.0", "TensorFlow 2.3")),
        ({"release": "1.15", "gpu": "8.6"}, ("3.0 to 7.5", "TensorFlow 2.4")),
        ({"release": "2.13", "cuda": "12.1"}, ("CUDA 11", "TensorFlow 2.15")),
        ({"python": "2.7", "gpu": "12.0"}, ("Python 2.7", "12.0", "drop Python 2.7")),
        ({"cuda": "9.2", "python": "3.12"}, ("CUDA 9.2", "Python 3.12")),
        ({"system": "Darwin", "gpu": "8.6"}, ("Darwin", "8.6")),
        ({"system": "Darwin", "gpu": "3.0", "macos": "10.14"}, ("3.0 and macOS 10.14",)),
        ({"system": "Darwin", "macos": "10.13", "release": "2.12"}, ("macOS 10.15", "2.7")),
        ({"system": "Darwin", "macos": "10.9"}, ("10.9 is unknown", "macOS 10.11")),
        ({"release": "0.9"}, ("TensorFlow 0.9",)),
        ({"release": "2.20", "python": "3.14"}, ("Python 3.9 to 3.13",)),
        ({"cuda": "13.3"}, ("TensorFlow 2.21", "lists those to 13.1.0, and not 13.3")),
        ({"gpu": "2.0"}, ("3.0 and later",)),
        ({"gpu": "11.0", "release": "2.20"}, ("CUDA 12", "11.0", "TensorFlow 2.21")),
        ({"gpu": "3.7", "driver": "535"}, ("driver 470 or earlier", "drop driver 535")),
        ({"gpu": "7.0", "driver": "470", "release": "2.15"}, ("525.60.13 to 580", "2.14")),
        ({"gpu": "7.2", "machine": "aarch64", "release": "2.16"}, ("JetPack", "11.4", "2.14")),
        ({"system": "Windows"}, ("not on Windows",)),
        ({"system": "Windows", "release": "2.13"}, ("not on Windows",)),
        ({"glibc": "none"}, ("not with musl",)),
        ({"machine": "riscv64"}, ("Bazel", "riscv64")),
        # 2.10 wants CUDA 11, which dropped 3.0; and what takes CUDA 10.2 takes no Python 3.10.
        (
            {"release": "2.10", "gpu": "3.0", "cuda": "10.2", "python": "3.10"},
            (
                "made for CUDA 11, and not 10.2",
                "for which CUDA 8.0 to 10.2 compiles",
                "Python 3.10 and CUDA 10.2, which goes with Python 2.7 to 3.8",
                "if you drop Python 3.10, the nearest release that fits is TensorFlow 2.3",
            ),
        ),
        ({"cuda": "13.0", "release": "2.20"}, ("CUDA 12", "TensorFlow 2.21")),
        ({"cuda": "12.7"}, ("no toolkit of CUDA 12.7", "nvidia-smi")),
        ({"cuda": "12.7", "release": "2.20"}, ("no toolkit of CUDA 12.7", "drop CUDA 12.7")),
    ],
)
def test_wishes_that_exclude_each_other_are_named_with_the_nearest_that_fits(
    wanted: dict[str, str], named: tuple[str, ...]
) -> None:
    reasons = exclusions(Wish(**{"system": "Linux", **wanted}))
    assert len(reasons) == len(set(reasons))
    said = "\n".join(reasons)
    for value in named:
        assert value in said


def test_the_cuda_of_a_release_that_serves_the_gpu_is_not_refused() -> None:
    reasons = exclusions(Wish(system="Linux", gpu="8.9", cuda="12.4", release="2.13"))
    assert "TensorFlow 2.13 is made for CUDA 11, and not 12.4" in reasons
    assert not any("no CUDA 11" in reason for reason in reasons)


@pytest.mark.parametrize(
    "wanted",
    [
        # The tree of 2.21 lists it, though 2.21 was tested with another.
        {"cuda": "13.0", "gpu": "12.0"},
        {"gpu": "12.0", "python": "3.13", "release": "2.21"},
    ],
)
def test_a_wish_that_can_be_met_excludes_nothing(wanted: dict[str, str]) -> None:
    assert exclusions(Wish(system="Linux", **wanted)) == []


@pytest.mark.parametrize(
    ("wanted", "end"),
    [
        ({"release": "2.40"}, "2.40@COMMIT"),
        ({"python": "3.20"}, "3.13; tf-nightly may"),
        ({"cuda": "19.0"}, "13."),
        ({"cuda": "7.5"}, "8.0"),
        ({"gpu": "20.0"}, "12.1"),
    ],
)
def test_what_lies_behind_the_end_of_a_table_is_unknown(wanted: dict[str, str], end: str) -> None:
    (said,) = exclusions(Wish(system="Linux", **wanted))
    assert "unknown" in said
    assert end in said
