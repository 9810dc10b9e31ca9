import re

import pytest

from tfwright.diagnosis import tables


def places_of(template: str) -> frozenset[tuple[str, str]]:
    """Return the parameters of a template, each with the table that is looked up, or none."""
    places = tables._PLACE.finditer(template)
    return frozenset((place["name"], place["table"] or "") for place in places)


def known_tables() -> frozenset[str]:
    return frozenset((*tables._tables(), *tables._COMPUTED))


@pytest.mark.parametrize(
    ("table", "value", "part"),
    [
        (
            "symbol_owner",
            "google::protobuf::internal::ArenaImpl::Allocate(unsigned long)",
            "protobuf",
        ),
        ("symbol_owner", "_ZN6google8protobuf7MessageC1Ev", "protobuf"),
        ("symbol_owner", "cublasCreate_v2", "CUDA"),
        ("symbol_cause", "_Z14tf_git_versionv", "version_info.cc"),
        ("symbol_owner", "clock_gettime", "librt"),
        ("header_owner", "cudnn.h", "cuDNN"),
        ("header_owner", "nccl.h", "NCCL"),
        ("header_owner", "third_party/gpus/cuda/include/cuda_fp16.h", "build tree"),
        ("module_remedy", "enum", "enum34"),
        ("module_remedy", "mock", "install mock"),
        ("gpu_architecture", "sm_30", "11.0"),
        ("gpu_architecture", "compute_120", "12.8"),
        ("file_place", "external/eigen_archive/Eigen/Core", "eigen_archive"),
        ("http_status", "503", "passes"),
    ],
)
def test_a_name_is_traced_to_what_it_belongs_to(table: str, value: str, part: str) -> None:
    assert part in tables.look_up(table, value)


def test_a_name_that_no_row_knows_adds_nothing() -> None:
    assert tables.look_up("http_status", "200") == ""


def test_a_sentence_takes_parameters_and_what_is_known_of_them() -> None:
    text = tables.fill("No {header}. {header|header_owner} {other}", {"header": "nccl.h"})
    assert text.startswith("No nccl.h. It comes with NCCL")
    assert "  " not in text


def test_a_long_parameter_is_cut() -> None:
    assert len(tables.fill("{symbol}", {"symbol": "x" * 5000})) == 300


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN2cv6String8allocateEm", "cv"),
        ("__ZNK5boost6system3endEv", "boost"),
        ("_ZTIN12a_long_space5ClassE", "a_long_space"),
        ("vtable for caffe::Net", "caffe"),
        ("cv::imread(int)", "cv"),
        ("_Z5plainv", ""),
        ("cublasCreate_v2", ""),
    ],
)
def test_the_outermost_name_of_a_symbol_is_read(symbol: str, name: str) -> None:
    assert tables.namespace(symbol) == name


def test_every_row_of_a_table_can_be_reached() -> None:
    for table, rows in tables._tables().items():
        earlier: list[re.Pattern[str]] = []
        for pattern, _ in rows:
            words = pattern.pattern.removeprefix("^").removesuffix("$").split("|")
            if all(re.fullmatch(r"[\w/ -]+", word) for word in words):
                names = [form for word in words for form in (word, f"{word}.h", f"x_{word}_")]
                hidden = [any(row.search(name) for row in earlier) for name in names]
                assert not all(hidden), (table, pattern.pattern)
            earlier.append(pattern)
