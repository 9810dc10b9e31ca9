import platform
import zipfile
from pathlib import Path

import pytest
from packaging.tags import Tag, parse_tag, platform_tags
from tests.making import Maker

from tfwright.wheel.inspect import tags
from tfwright.wheel.inspect.library import Library

HERE = next(iter(platform_tags()))


def faults(path: Path, python: str, *libraries: Library) -> list[str]:
    with zipfile.ZipFile(path) as wheel:
        return tags.misfits(path, wheel, libraries, python)


@pytest.mark.parametrize(
    ("tag", "python", "said"),
    [
        (f"cp36-cp36m-{HERE}", "3.6.15", ""),
        (f"cp36-cp36m-{HERE}", "3.7.16", "{} is not for CPython 3.7.16 on this machine"),
        ("cp36-cp36m-win_amd64", "3.6.15", "{} is not for CPython 3.6.15 on this machine"),
    ],
)
def test_a_wheel_fits_the_python_and_the_machine_of_its_tag(
    make_wheel: Maker, tag: str, python: str, said: str
) -> None:
    path = make_wheel({"small.so": ""}, f"small-1.0-{tag}.whl")
    assert faults(path, python) == ([said.format(tag)] if said else [])


def test_machine_code_in_a_wheel_for_any_machine_is_a_fault(make_wheel: Maker) -> None:
    path = make_wheel({"lib/small.so": ""})
    assert faults(path, "3.11.7", Library("lib/small.so", 0)) == [
        "lib/small.so is machine code, and the tag says any machine"
    ]


def test_a_name_that_differs_from_the_file_wheel_is_a_fault(make_wheel: Maker) -> None:
    path = make_wheel()
    renamed = path.rename(path.with_name("small-1.0-py2.py3-none-any.whl"))
    assert faults(renamed, "3.11.7") == [
        "the file WHEEL says py3-none-any, the name says py2-none-any, py3-none-any"
    ]


def test_a_name_that_is_no_wheels_is_a_fault(make_wheel: Maker) -> None:
    path = make_wheel()
    assert len(faults(path.rename(path.with_name("small.whl")), "3.11.7")) == 1


@pytest.mark.parametrize(
    ("python", "abis"),
    [
        ("2.7.18", {"cp27mu", "cp27m"}),
        ("3.6.15", {"cp36m", "cp36"}),
        ("3.8.18", {"cp38"}),
        ("3.14.0", {"cp314"}),
    ],
)
@pytest.mark.skipif(platform.system() != "Linux", reason="the platform's tag is Linux's here")
def test_each_python_has_its_own_abis(python: str, abis: set[str]) -> None:
    interpreter = "cp" + "".join(python.split(".")[:2])
    supported = tags.supported_tags(python)
    assert {Tag(interpreter, abi, HERE) for abi in abis} <= supported
    assert Tag("py" + python[0], "none", "any") in supported


@pytest.mark.parametrize(
    ("tag", "meant"),
    [
        ("cp310-cp310-macosx_arm64", "macosx_12_0_arm64"),
        ("cp310-cp310-macosx_12_3_arm64", "macosx_12_0_arm64"),
        ("cp310-cp310-macosx_10_15_arm64", "macosx_12_0_arm64"),
        ("cp310-cp310-manylinux_x86_64", "manylinux_2_17_x86_64"),
        ("cp310-cp310-musllinux_x86_64", "musllinux_1_2_x86_64"),
        ("cp310-cp310-ubuntu_22_04_x86_64", "no installer"),
        ("cp310-cp39-linux_x86_64", "another Python's"),
    ],
)
def test_a_tag_that_no_pip_takes_is_a_fault(tag: str, meant: str) -> None:
    (fault,) = tags.impossible_tags(frozenset(parse_tag(tag)))
    assert meant in fault


@pytest.mark.parametrize(
    "tag",
    [
        "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "cp36-cp36m-macosx_10_11_x86_64",
        "cp312-abi3-macosx_11_0_universal2",
        "cp313-cp313t-musllinux_1_2_aarch64",
        "cp310-cp310-win_amd64",
        "py3-none-any",
    ],
)
def test_a_tag_that_some_pip_takes_is_none(tag: str) -> None:
    assert list(tags.impossible_tags(frozenset(parse_tag(tag)))) == []


def test_every_tag_of_this_machine_is_possible() -> None:
    assert list(tags.impossible_tags(tags.supported_tags("3.11.7"))) == []
