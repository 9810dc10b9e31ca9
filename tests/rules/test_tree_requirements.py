import pytest

from tfwright.rules import tree_files

SETUP = """\
print 'for Python 2 as well' if False else ''
"""
SETUP_3 = """\
import sys
REQUIRED_PACKAGES = [
    'absl-py >= 0.1.6',  # 'not >= 1'
    'keras_applications >= 1.0.5',
    'tensorboard >= 1.12.0, < 1.13.0',
    'enum34 >= 1.1.6; python_version < "3.4"',
    ('tensorflow_estimator ~= 1.14', 'tf-estimator-nightly'),
    'grpcio >= 1.24.3, < 2.0' if sys.byteorder == 'little' else None,
    'here' if collaborator_build == 'there' else 'elsewhere',
]
if sys.byteorder == 'little':
  REQUIRED_PACKAGES.append('grpcio >= 1.8.6')
if sys.version_info.major == 3:
  REQUIRED_PACKAGES.append('wheel >= 0.26')
else:
  REQUIRED_PACKAGES.append('mock >= 2.0.0')
if sys.version_info < (3, 4):
  REQUIRED_PACKAGES.append('backports.weakref >= 1.0rc1')
if 'tf_nightly' in project_name:
  REQUIRED_PACKAGES.append('never')
"""


def names(python: str) -> set[str]:
    return {one.name for one in tree_files.required(SETUP_3, python)}


def test_the_requirements_of_a_python_are_read_off_setup_py() -> None:
    always = {"absl-py", "keras_applications", "tensorboard", "grpcio"}
    either = {"here", "elsewhere"}
    assert names("3.6") == {*always, *either, "tensorflow_estimator", "wheel"}
    assert {"mock", "enum34", "backports.weakref"} <= names("2.7")


def test_the_template_of_setup_py_is_read_where_there_is_no_other() -> None:
    plain, template = tree_files.SETUPS
    assert tree_files.setup_of({template: "x"}) == "x"
    assert tree_files.setup_of({plain: "y", template: "x"}) == "y"
    assert tree_files.setup_of({}) == ""


@pytest.mark.parametrize("text", ["", SETUP, "x = (", "\0", "[" * 10_000])
def test_a_setup_py_that_cannot_be_read_requires_nothing(text: str) -> None:
    assert tree_files.required(text, "3.6") == []


def test_each_pin_is_judged_and_what_to_resolve_is_named() -> None:
    pins = [
        "absl-py==0.2.0",
        "tensorboard==1.8.0 --hash=sha256:" + "0" * 64,
        "Keras-Applications==1.0.6",
        "wheel==0.37.1",
        "grpcio==1.12.0",
    ]
    judged = {pin.name: pin for pin in tree_files.judged(pins, SETUP_3, "3.6")}
    assert judged["absl-py"].state == judged["keras-applications"].state == "fits"
    assert judged["tensorboard"].state == "change"
    assert judged["tensorboard"].asks == "tensorboard<1.13.0,>=1.12.0"
    assert "has no such pin" in judged["tensorflow-estimator"].says
