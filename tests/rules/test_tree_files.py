"""What files of a tree state: its release, its Bazel, and what setup.py requires."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests import upstream
from tests.failing import fails

from tfwright.documents.recipe import Recipe, SourceTable
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.rules import tree_files
from tfwright.rules.tree_files import TreeBazel

CHECK = "check_bazel_version('0.19.0', '0.26.1')\n"
LIMITS = "_TF_MIN_BAZEL_VERSION = '3.1.0'\n_TF_MAX_BAZEL_VERSION = '3.99.0'\n"


@pytest.mark.parametrize(
    ("texts", "stated"),
    [
        (
            {".bazelversion": "3.7.2\n# NOTE: keep\n", "configure.py": LIMITS},
            TreeBazel("3.7.2", "3.7.2", ".bazelversion", "3.7.2"),
        ),
        (
            {".bazelversion": "latest\n", "configure.py": LIMITS},
            TreeBazel("3.1.0", "3.99.0", "configure.py"),
        ),
        (
            {".bazelversion": "0.26.1\n", "configure.py": LIMITS},
            TreeBazel("3.1.0", "3.99.0", "configure.py"),
        ),
        ({"configure.py": CHECK}, TreeBazel("0.19.0", "0.26.1", "configure.py")),
        (
            {"configure.py": "check_bazel_version('0.15.0')"},
            TreeBazel("0.15.0", "", "configure.py"),
        ),
        ({"configure": 'MIN_BAZEL_VERSION="0.5.4"\n'}, TreeBazel("0.5.4", "", "configure")),
        (
            {"WORKSPACE": '# check_version("9.9.9")\ncheck_version("0.4.2")\n'},
            TreeBazel("0.4.2", "", "WORKSPACE"),
        ),
        ({"WORKSPACE": "workspace(name = 'a')\n", ".bazelversion": ""}, None),
        ({}, None),
    ],
)
def test_a_tree_states_its_bazel_in_the_way_of_its_release(
    texts: dict[str, str], stated: TreeBazel | None
) -> None:
    assert tree_files.bazel_of(texts) == stated


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
    return {one.name for one in tree_files.required_packages(SETUP_3, python)}


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
    assert tree_files.required_packages(text, "3.6") == []


def test_each_pin_is_judged_and_what_to_resolve_is_named() -> None:
    pins = [
        "absl-py==0.2.0",
        "tensorboard==1.8.0 --hash=sha256:" + "0" * 64,
        "Keras-Applications==1.0.6",
        "wheel==0.37.1",
        "grpcio==1.12.0",
    ]
    judged = {pin.name: pin for pin in tree_files.judge_pins(pins, SETUP_3, "3.6")}
    assert judged["absl-py"].asks == judged["keras-applications"].asks == ""
    assert judged["tensorboard"].asks == "tensorboard<1.13.0,>=1.12.0"
    assert "(not pinned)" in judged["tensorflow-estimator"].says


def commit(folder: Path, version: str) -> str:
    """Commit a tree of a version, and return the commit."""
    text = f"_VERSION = '{version}'\n"
    return upstream.commit(folder, {"tensorflow/tools/pip_package/setup.py": text})


def source(recipe: Recipe, **keys: str) -> SourceTable:
    """Return the [source] of a recipe with these keys."""
    table = {"url": recipe.source.url, "commit": "0" * 40, "branch": "master"}
    return SourceTable.model_validate(table | keys)


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        ("1.8.0", {"branch": "r1.8"}),
        ("1.8.0-rc1", {"branch": "r1.8"}),
        ("1.8.0-rc1", {"branch": "r1.8", "version": "1.8.0-rc1"}),
        ("2.4.4", {"branch": "r2.4"}),
        ("2.4.4", {"branch": "r2.4", "version": "2.4.4"}),
        ("1.15.5", {"branch": "r1.15.5+nv22.12"}),
        ("1.15.5+nv22.12", {"release": "1.15.5+nv22.12"}),
    ],
)
def test_a_tree_of_the_stated_version_passes(
    tmp_path: Path, recipe: Recipe, tree: str, keys: dict[str, str]
) -> None:
    pinned = commit(tmp_path, tree)
    tree_files.check_release(tmp_path / ".git", pinned, source(recipe, **keys))


@pytest.mark.parametrize(
    ("tree", "keys", "says"),
    [
        ("1.9.0", {"branch": "r1.12"}, "TensorFlow 1.9.0, the recipe says 1.12"),
        ("2.4.0", {"branch": "r2.4", "version": "2.4.4"}, "2.4.0, the recipe says 2.4.4"),
        ("1.12.0-rc0", {"branch": "v1.12.0"}, "1.12.0-rc0, the recipe says 1.12.0"),
        ("1.12.0", {"branch": "v1.12.0-rc0"}, "1.12.0, the recipe says 1.12.0-rc0"),
        ("1.15.4", {"branch": "r1.15.5+nv22.12"}, "1.15.4, the recipe says 1.15.5"),
    ],
)
def test_a_tree_of_another_version_is_refused(
    tmp_path: Path, recipe: Recipe, tree: str, keys: dict[str, str], says: str
) -> None:
    pinned = commit(tmp_path, tree)
    with fails(RecipeError, says, "source.version"):
        tree_files.check_release(tmp_path / ".git", pinned, source(recipe, **keys))


@pytest.mark.parametrize("version", ["12345678901.1", "1.12345678901", "\u0661.\u0668"])
def test_a_version_that_none_can_be_says_nothing(
    tmp_path: Path, recipe: Recipe, version: str
) -> None:
    pinned = commit(tmp_path, version)
    tree_files.check_release(tmp_path / ".git", pinned, source(recipe, branch="r1.8"))


def test_the_release_of_a_tree_is_read_off_the_file_that_states_it() -> None:
    setup = "tensorflow/tools/pip_package/setup.py"
    bzl = "tensorflow/tf_version.bzl"
    assert set(tree_files.RELEASES) == {setup, bzl}
    old = {setup: "_VERSION = '1.8.0'\n"}
    new = {bzl: 'TF_VERSION = "2.20.0"\n', setup: "_VERSION = f()\n"}
    assert tree_files.release_of(old) == Release(1, 8)
    assert tree_files.release_of(new) == Release(2, 20)
    assert tree_files.release_of({"README": "1.8.0"}) is None


def test_another_project_states_its_version_as_it_likes(tmp_path: Path, recipe: Recipe) -> None:
    pinned = commit(tmp_path, "9.9.9")
    tree_files.check_release(tmp_path / ".git", pinned, source(recipe, interface="own"))


def test_a_nightly_package_that_no_release_stands_beside_is_named_with_what_a_release_wants() -> (
    None
):
    setup = """
REQUIRED_PACKAGES = [
    'keras-nightly >= 3.10.0.dev',
    'tb-nightly ~= 2.20.0.a',
    'tf-estimator-nightly ~= 2.14.0.dev',
    'tensorflow_estimator >= 2.13.0, < 2.14',
    'tensorboard >= 2.19',
    'numpy >= 1.26',
]
"""
    found = [[*map(str, pair)] for pair in tree_files.nightly_packages(setup, "3.12")]
    assert found == [["keras-nightly>=3.10.0.dev", "keras>=3.10.0"]]
    for pin in ("keras==3.12.0", "keras-nightly==3.12.0.dev2026"):
        (judged,) = (
            one for one in tree_files.judge_pins([pin], setup, "3.12") if "keras" in one.name
        )
        assert not judged.asks


def test_a_requirement_in_two_texts_is_one() -> None:
    setup = """
REQUIRED_PACKAGES = [
    'tensorflow-io >= 0.23.1;platform_machine!="none" or ' +
    'platform_system!="none"',
    'six >= 1.12',
]
"""
    names = [requirement.name for requirement in tree_files.required_packages(setup, "3.10")]
    assert names == ["tensorflow-io", "six"]


def test_a_build_imports_other_packages_than_setup_py_requires() -> None:
    required = [
        Requirement("packaging>=20"),
        Requirement("Keras_Preprocessing"),
        Requirement("h5py"),
    ]
    always = {"numpy": "", "wheel": "", "packaging": ">=20"}
    assert tree_files.build_packages(Release(2, 7), required) == always | {
        "keras-preprocessing": ""
    }
    assert tree_files.build_packages(Release(2, 10), required) == always | {"requests": ""}
