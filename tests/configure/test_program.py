"""How the program that asks is started."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.making import make_file

from tfwright.configure.program import ConfigureProgram


@pytest.mark.parametrize(
    ("name", "mode", "by"),
    [
        ("configure", 0o755, []),
        ("configure.py", 0o755, []),
        # As people type it: python configure.py.
        ("configure.py", 0o644, ["programs/python"]),
    ],
)
def test_a_program_in_python_that_is_not_executable_is_run_by_the_target_python(
    name: str, mode: int, by: list[str], tmp_path: Path
) -> None:
    program = make_file(tmp_path / name, "print('Fine?')\n")
    program.chmod(mode)
    recipe: Any = SimpleNamespace(configure=SimpleNamespace(program=name))
    interview: Any = SimpleNamespace(exports=dict)
    none = tmp_path / "none"
    started = ConfigureProgram(
        recipe, tmp_path, interview, none, none, tmp_path / "programs", none, none, 0
    ).command
    assert started.argv == (*(str(tmp_path / path) for path in by), str(program))
