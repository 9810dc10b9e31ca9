"""The smoke programs on real TensorFlow wheels: those that lie in the folder $TFWRIGHT_WHEELS, whose Python is here."""

import os
from pathlib import Path

import pytest

from tfwright.documents.host_file import HostFile, read
from tfwright.host import pythons
from tfwright.smoke import PROGRAMS, run
from tfwright.smoke import smoking as smoke
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, clean_environment

pytestmark = pytest.mark.real

FOLDER = os.environ.get("TFWRIGHT_WHEELS", "")
WHEELS = sorted(Path(FOLDER).glob("tensorflow-*linux*x86_64.whl")) if FOLDER else []
COMPILE = "import sys; [compile(open(path).read(), path, 'exec') for path in sys.argv[1:]]"


def host_file(build_out: Path) -> HostFile:
    return read().changed(build_out=build_out)


@pytest.mark.skipif(not WHEELS, reason="TFWRIGHT_WHEELS names no folder with wheels of tensorflow")
@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.stem)
def test_an_official_wheel_stands_every_program(wheel: Path, tmp_path: Path) -> None:
    request = smoke.Request(wheel, host_file(tmp_path))
    version = smoke.pythons_in_name(wheel)[0]
    if pythons.find(version, request.host_file) is None:
        pytest.skip(f"no Python {version} is here")
    report = smoke.smoke(request, lambda _: None)
    assert report.failures == []
    assert {outcome.program for outcome in report.outcomes if outcome.status == "passed"} >= set(
        run.ORDER
    ) - {"two_gpus", "memory"}
    assert report.curves["CPU"][0].size == 32


@pytest.mark.parametrize("version", ["2.7", *(f"3.{minor}" for minor in range(5, 15))])
def test_every_target_python_understands_the_programs(version: str, tmp_path: Path) -> None:
    interpreter = pythons.find(version, host_file(tmp_path))
    if interpreter is None:
        pytest.skip(f"no Python {version} is here")
    command = Command(
        (str(interpreter), "-c", COMPILE, *map(str, PROGRAMS.glob("*.py"))),
        tmp_path,
        clean_environment(tmp_path),
    )
    runner.run(command, tmp_path / "log", remedy="-")
