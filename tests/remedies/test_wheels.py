"""What is said of wheels, done to the letter."""

import errno
import os
import re
import shlex
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO

import pytest
from tests.making import Maker, find_text
from tests.remedies.following import CommandLine, add, commands, failing

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError
from tfwright.pipeline import engine
from tfwright.pipeline.results import SealedWheel
from tfwright.pipeline.stage import Artefact, Results
from tfwright.smoke import smoking as smoke
from tfwright.smoke.smoking import Request
from tfwright.tools.process import capacity
from tfwright.wheel import archive
from tfwright.wheel.seal.build_record import BuildRecord

pytestmark = pytest.mark.medium


def typed(command: str, *paths: Path) -> str:
    return shlex.join(["invoke", command, *map(str, paths)])


@pytest.mark.parametrize("way", ["no file", "cut off", "unsafe"])
def test_a_wheel_that_cannot_be_read_is_named_or_built_again(
    shell: CommandLine, make_wheel: Maker, way: str
) -> None:
    wheel = make_wheel()
    whole = wheel.read_bytes()
    if way == "no file":
        shell.remedy(typed("inspect", wheel.with_suffix(".zip")), ".whl")
    elif way == "cut off":
        wheel.write_bytes(whole[:-9])
    else:
        with zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr("../outside", "x")
    if way != "no file":
        shell.remedy(typed("compare", wheel, make_wheel(folder="other")), "wheel")
        shell.remedy(typed("inspect", wheel), "publish")
        wheel.write_bytes(whole)
    shell.succeeds(typed("inspect", wheel))


def test_a_disk_without_room_is_left_by_the_variable_that_is_named(
    shell: CommandLine, make_wheel: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel({"a.py": "x = 1\n"})
    other = make_wheel({"a.py": "x = 2\n"}, folder="other")

    def copy() -> IO[bytes]:
        if os.environ.get("TMPDIR") != str(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original()

    original = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", copy)
    # No member fits into memory: each is copied to the disk.
    monkeypatch.setattr(archive, "SMALL", 0)
    monkeypatch.setattr(capacity, "available_memory", lambda: 0)
    remedy = shell.remedy(typed("compare", wheel, other))
    (name,) = re.findall(r"set (\w+) to a directory", remedy)
    monkeypatch.setenv(name, str(tmp_path))
    assert shell.status(typed("compare", wheel, other)) == 1
    assert shell.fault is None


# smoke


def request(wheel: Path, host_file: Path, **options: object) -> Request:
    return Request(wheel, load(host_file, HostFile), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["--python", "[pythons]"])
def test_the_target_python_is_named(
    shell: CommandLine, make_wheel: Maker, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheel = make_wheel(name=f"small-1.0-{tag}-none-any.whl")
    monkeypatch.setattr("tfwright.host.pythons._candidates", lambda *_: [])
    fault = failing(lambda: smoke.target_python(request(wheel, shell.host_file)), HostError, way)
    own = Path(sys.executable)
    if way == "--python":
        found = smoke.target_python(request(wheel, shell.host_file, python=str(own)))
    else:
        line = find_text(r"(\[pythons\]) ('[\d.]+' = )'/path", fault.remedy)
        add(shell.host_file, f"{line[1]}\n{line[2]}'{own}'\n")
        found = smoke.target_python(request(wheel, shell.host_file))
    assert found[0] == own


def test_a_path_without_a_python_is_corrected(
    shell: CommandLine, make_wheel: Maker, tmp_path: Path
) -> None:
    wheel = make_wheel()
    wrong = request(wheel, shell.host_file, python=str(tmp_path / "none"))
    fault = failing(lambda: smoke.target_python(wrong), HostError, "--python")
    assert "[pythons]" not in fault.remedy
    right = request(wheel, shell.host_file, python=sys.executable)
    assert smoke.target_python(right)[0] == Path(sys.executable)


def test_a_renamed_wheel_gets_its_name_back(shell: CommandLine, make_wheel: Maker) -> None:
    wheel = make_wheel()
    renamed = wheel.rename(wheel.with_name("small.whl"))
    # Written as the others take it, too.
    for command in ("smoke", "smoke --wheel"):
        shell.remedy(f"invoke {command} {renamed}", "original")
    back = request(renamed.rename(wheel), shell.host_file)
    assert smoke.target_python(back)


def test_a_requirement_is_written_as_is_shown(shell: CommandLine, make_wheel: Maker) -> None:
    wheel = make_wheel(name="tensorflow-1.8.0-py3-none-any.whl")

    def bounds(requirement: str) -> tuple[str, ...]:
        given = request(wheel, shell.host_file, requirements=[requirement])
        return smoke.bounds_for(given)

    fault = failing(lambda: bounds("numpy=<1"), RecipeError)
    (shown,) = re.findall(r'"([^"]+)"', fault.remedy)
    assert not [line for line in bounds(shown) if line.startswith("numpy")]


# Reproducing


@pytest.fixture
def a_record(a_record: BuildRecord) -> BuildRecord:
    """Return the record of a recipe without patches."""
    return a_record.changed(files=())


@pytest.fixture
def reproducible(make_sealed: Maker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a wheel that each build gives again."""
    wheel = make_sealed()

    def build(*_: object, **__: object) -> Results:
        return Results({SealedWheel: SealedWheel(wheel=Artefact.of(wheel))})

    monkeypatch.setattr(engine, "build", build)
    return wheel


def test_a_recipe_is_named_for_a_wheel_without_a_record(
    shell: CommandLine, make_wheel: Maker, worded: Path
) -> None:
    command = f"invoke reproduce --wheel {make_wheel()}"
    remedy = shell.remedy(command)
    (option,) = re.findall(r"--recipe", remedy)
    shell.remedy(f"{command} {option} {shlex.quote(str(worded))}")


def test_another_recipe_is_checked_out_or_built_as_it_is(
    shell: CommandLine, worded: Path, reproducible: Path
) -> None:
    before = worded.read_text("utf-8")
    worded.write_text(re.sub(r"\d{40}", "1" * 40, before), "utf-8")
    command = f"invoke reproduce --wheel {reproducible} --recipe {shlex.quote(str(worded))}"
    (build,) = commands(shell.remedy(command))
    assert recipes.read(shlex.split(build)[-1]).source.commit == "1" * 40
    worded.write_text(before, "utf-8")
    shell.succeeds(command)


def test_a_recipe_without_a_wheel_is_built_or_a_wheel_is_named(
    shell: CommandLine, worded: Path, reproducible: Path
) -> None:
    named = f"--recipe {shlex.quote(str(worded))}"
    (build,) = commands(shell.remedy(f"invoke reproduce {named}"))
    assert shlex.split(build)[-1] == str(worded)
    shell.succeeds(f"invoke reproduce {named} --wheel {reproducible}")
