"""BUILD files as TensorFlow writes them, made small: what is compiled for a second configuration."""

from tfwright.rules import configurations

TARGET = "//pip:build_pip_package"
PACKAGES = {
    "pip/BUILD": """
COMMON = ["//tf/python/tools:tools_pip", ":licence"]
sh_binary(
    name = "build_pip_package",
    data = select({"//tf:windows": [":simple"], "//conditions:default": COMMON + ["//tf"]}),
)
""",
    "tf/python/tools/BUILD": """
py_library(name = "tools_pip", deps = [":freeze", ":strip"])
py_binary(name = "freeze", srcs = ["freeze.py"], python_version = "PY2", deps = ["//tf"])
py_binary(name = "strip", srcs = ["strip.py"], python_version = "PY3")
py_binary(name = "unreached", srcs = ["x.py"], python_version = "PY2")
""",
    "tf/BUILD": """
py_library(name = "tf", deps = ["//tf/core:kernels"])
""",
    "tf/core/BUILD": """
cc_library(name = "kernels", deps = [":script"])
py_binary(name = "script", python_version = "PY2")
""",
}


def found(packages: dict[str, str]) -> list[str]:
    places = configurations.for_python_2(TARGET, packages.get)
    return [f"{place} {place.rule}" for place in places]


def test_a_program_for_python_2_that_the_wheel_brings_along_is_found() -> None:
    assert found(PACKAGES) == ["tf/python/tools/BUILD:3 freeze"]


def test_a_tree_that_is_patched_to_python_3_has_one_configuration() -> None:
    patched = {path: text.replace("PY2", "PY3") for path, text in PACKAGES.items()}
    assert found(patched) == []


def test_a_build_file_that_cannot_be_read_hides_only_its_own_rules() -> None:
    assert found({**PACKAGES, "tf/BUILD": "def ("}) == ["tf/python/tools/BUILD:3 freeze"]


def test_tools_have_a_configuration_of_their_own_unless_a_flag_of_every_build_joins_them() -> None:
    joined = "--distinct_host_configuration=false"
    assert configurations.tools_apart("build -c opt\n", [])
    assert configurations.tools_apart(f"build:rbe {joined}\n", [])
    assert not configurations.tools_apart(f"build {joined}\n", [])
    assert not configurations.tools_apart(f"common {joined}\n", [])
    assert not configurations.tools_apart("", [joined])


def test_a_line_for_the_platform_counts_where_the_tree_enables_such_lines() -> None:
    line = "build:linux --distinct_host_configuration=false\n"
    assert configurations.tools_apart(line, [])
    assert not configurations.tools_apart(f"build --enable_platform_specific_config\n{line}", [])
