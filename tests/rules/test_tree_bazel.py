import pytest

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
