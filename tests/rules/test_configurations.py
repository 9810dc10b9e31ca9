"""Which flags of a .bazelrc a build has."""

from tfwright.rules import configurations

FLAG = "--distinct_host_configuration=false"


def test_a_flag_of_every_build_is_in_force_and_one_of_a_configuration_only_where_it_is_named() -> (
    None
):
    assert FLAG in configurations.flags_in_force(f"build {FLAG}\n", [])
    assert FLAG in configurations.flags_in_force(f"common {FLAG}\n", [])
    assert FLAG in configurations.flags_in_force(f"build:rbe {FLAG}\n", ["--config=rbe"])
    assert FLAG not in configurations.flags_in_force(f"build:rbe {FLAG}\n", [])


def test_a_line_for_the_platform_counts_where_the_tree_enables_such_lines() -> None:
    line = f"build:linux {FLAG}\n"
    assert FLAG not in configurations.flags_in_force(line, [])
    assert FLAG in configurations.flags_in_force(
        f"build --enable_platform_specific_config\n{line}", []
    )
