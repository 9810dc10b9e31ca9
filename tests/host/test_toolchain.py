"""Compilers, and the flags that they are given."""

import pytest

from tfwright.host import toolchain


@pytest.mark.parametrize(
    ("flags", "native"),
    [
        ("--copt=-march=native", True),
        ("-O2 -mcpu=native", True),
        ("--copt=-arch=native", True),
        ("-march=haswell", False),
        ("--incompatible_disable_native_apple_binary_rule", False),
        ("--incompatible_use_native_patch=native", False),
    ],
)
def test_only_flags_of_compilers_tie_code_to_this_processor(flags: str, *, native: bool) -> None:
    assert toolchain.is_native(flags) == native
