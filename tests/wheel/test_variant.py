"""Variants of PEP 825: what code proves, and claims that it does not prove."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.nightly.wheels import write_wheel

from tfwright.errors import WheelError
from tfwright.index import labels
from tfwright.variant import variants
from tfwright.wheel import variant
from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.binary.elf import Elf
from tfwright.wheel.inspect import inspection
from tfwright.wheel.inspect.library import Library

CODE = {"nvidia": {"sm_arch": ["70_real", "86_virtual"]}, "x86_64": {"level": ["v2"]}}


def library(*architectures: str, level: str = "x86-64") -> Library:
    elf = Elf("x86_64", "", (), (), {}, architectures, cpu=Cpu(level, (), (), 0, 0))
    return Library("a.so", 1, elf=elf)


def test_only_what_every_library_with_gpu_code_has_is_proved() -> None:
    libraries = [
        library("sm_120", "sm_86", "compute_86", "lto_86"),
        library("sm_86", "sm_90a", "compute_86", "sm_120", level="x86-64-v3"),
        library(level="x86-64-v2"),
    ]
    assert variant.proved(libraries) == {
        "nvidia": {"sm_arch": ["86_virtual", "86_real", "120_real"]},
        "x86_64": {"level": ["v3"]},
    }


def test_a_wheel_without_machine_code_proves_nothing() -> None:
    assert variant.proved([]) == {}
    with pytest.raises(WheelError, match="no machine code"):
        variant.document({}, "null")


def test_a_label_holds_as_many_properties_as_fit() -> None:
    assert variant.label_of(CODE) == "sm70_ptx86_v2"
    many = {"nvidia": {"sm_arch": [f"{number}_real" for number in (70, 75, 80, 86, 90)]}}
    assert variant.label_of(many) == "sm70_sm75_sm80"


@pytest.mark.parametrize("label", ["", "SM86", "a-b", "../x", "x" * 17])
def test_a_label_that_a_file_name_cannot_hold_is_refused(label: str) -> None:
    with pytest.raises(WheelError, match="not a variant label"):
        variant.document(CODE, label)


def claiming(folder: Path, text: bytes) -> Path:
    """Return a variant wheel with this text as its ``variant.json``."""
    return labels.with_variant(write_wheel(folder), folder, "x", text)


def test_a_variant_wheel_is_whole(tmp_path: Path) -> None:
    made = claiming(tmp_path, variant.document(CODE, "sm70"))
    assert made.name == "demo-1.0-py3-none-any-x.whl"
    with zipfile.ZipFile(made) as wheel:
        assert wheel.testzip() is None
        assert variant.claimed(wheel) == CODE
    # The reader of wheels compares every file with RECORD, the new one too.
    faults = inspection.inspect(made).faults
    assert not [fault for fault in faults if "RECORD" in fault]


def test_a_claim_that_is_not_in_the_code_is_refused(tmp_path: Path) -> None:
    made = claiming(tmp_path, variant.document(CODE, "sm70"))
    with pytest.raises(WheelError, match=r"claims nvidia :: sm_arch :: 70_real") as caught:
        variants.variant_of(made)
    assert "not in its code: x86_64 :: level :: v2" in caught.value.evidence.lines


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"variants": {}}',
        '{"variants": {"a": {}, "b": {}}}',
        '{"variants": {"a": []}}',
        '{"variants": {"a": {"nvidia": 1}}}',
        '{"variants": {"a": {"nvidia": {"sm_arch": "86"}}}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_claim_is_an_error_of_the_wheel(text: str, tmp_path: Path) -> None:
    with pytest.raises(WheelError, match="cannot be read"):
        variants.variant_of(claiming(tmp_path, text.encode()))


REFEREE = """
import sys
from variantlib.variant_dist_info import VariantDistInfo
read = VariantDistInfo(open(sys.argv[1], "rb").read(), expected_label="sm70")
print([value.to_str() for value in read.variant_desc.properties])
"""


def test_variantlib_reads_the_same_properties(tmp_path: Path) -> None:
    pytest.importorskip("variantlib")
    file = tmp_path / variant.FILE
    file.write_bytes(variant.document(CODE, "sm70"))
    argv = [sys.executable, "-c", REFEREE, str(file)]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    stated = [
        f"{name} :: {feature} :: {value}"
        for name, features in CODE.items()
        for feature, values in features.items()
        for value in values
    ]
    assert sorted(json.loads(printed.replace("'", '"'))) == sorted(stated)
