"""What a night says of its orders, its timer and its index, done to the letter."""

import re
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.making import make_file, make_folder
from tests.nightly import test_fleet, test_timer
from tests.nightly.wheels import write_wheel
from tests.remedies.following import CommandLine, commands, failing

from tfwright.documents.nightly import NightlyFile
from tfwright.documents.nightly import targets as targets_of
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError, SupplyError, WheelError
from tfwright.index import matching
from tfwright.match.wish import Wish
from tfwright.nightly import fleets, notices, targets, timer, versions
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.timer import Schedule
from tfwright.progress import SILENCE
from tfwright.tools.process import command as programs

# Orders


def test_a_worker_is_brought_to_the_recipe_of_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", "restored by monkeypatch")
    built = test_fleet.built(tmp_path / "other")
    monkeypatch.setattr(PipelineBuilder, "build", lambda *_: built)
    builder = test_fleet.pipeline_builder(tmp_path)
    order = test_fleet.order_of(tmp_path, {})
    # The recipe of the build host, of which the worker has an older one.
    newer = {**builder.known_fingerprint(order.target), "the recipe's [source]": "new"}
    folder = make_folder(tmp_path / "order")
    fault = failing(lambda: fleets.carry_out(folder, SILENCE), RecipeError)
    assert commands(fault.remedy) == ["invoke nightly"]
    # What the command writes.
    fleets.write_order(folder, test_fleet.changed(order, fingerprint=newer), builder, carry=False)
    fault = failing(lambda: fleets.carry_out(folder, SILENCE), HostError, "checkout")
    monkeypatch.setattr(PipelineBuilder, "known_fingerprint", lambda *_: newer)
    assert fleets.carry_out(folder, SILENCE) == built


@pytest.mark.parametrize("wrong", ["9999.9", "1234.5,8.6"])
def test_what_a_recipe_is_built_for_is_corrected(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "nightly.toml"

    def recipe(capabilities: str) -> str:
        path.write_text(
            f'directory = "{tmp_path}"\n[[recipe]]\nname = "demo-cuda"\n'
            f'capabilities = ["{capabilities}"]\n',
            "utf-8",
        )
        (target,) = targets_of(load(path, NightlyFile))
        return targets.recipe_of(target).name

    failing(lambda: recipe(wrong), RecipeError, "capabilities", "nightly.toml")
    assert recipe("8.6") == "demo-cuda-sm86"


# The timer


host, add_program = test_timer.host, test_timer.add_program


@pytest.mark.usefixtures("host")
def test_a_timer_is_started_by_the_command_that_is_shown(
    add_program: test_timer.AddProgram,
) -> None:
    # systemd answers, and does not start the timer.
    calls = add_program("systemctl", 'test "$2" = daemon-reload')
    wanted = timer.plan_installation("user", "02:00", remove=False)
    fault = failing(lambda: timer.install(wanted), HostError)
    (command,) = re.findall(r"Run '(systemctl [^']*)' yourself", fault.remedy)
    add_program("systemctl", "exit 0")
    calls.unlink()
    path = {"PATH": ":".join(programs.SYSTEM_PATH)}
    subprocess.run(command, shell=True, check=True, env=path)  # noqa: S602 as a user types it
    assert command == f"systemctl {calls.read_text('utf-8').strip()}"


unit = test_timer.schedule


@pytest.mark.parametrize("kind", ["systemd", "cron"])
@pytest.mark.parametrize("where", ["program", "environment"])
def test_a_path_that_no_timer_can_hold_is_moved(
    unit: Schedule, tmp_path: Path, kind: str, where: str
) -> None:
    def lines(path: str) -> object:
        own = replace(unit, program=(path,))
        if where == "environment":
            own = replace(unit, environment={"TFWRIGHT_HOST_FILE": path})
        if kind == "cron":
            return timer.cron_lines(own)
        return timer.systemd(own, tmp_path)

    fault = failing(lambda: lines("/srv/a\x07b"), RecipeError)
    assert repr("/srv/a\x07b")[1:-1] in fault.what
    assert fault.remedy == "Move it to a path of printable characters."
    assert lines("/srv/ab")


@pytest.mark.parametrize("way", ["path", "file"])
def test_a_secret_that_cannot_be_read_is_put_where_it_is_named(tmp_path: Path, way: str) -> None:
    for content in (None, b"\xff\xfe"):
        place = tmp_path / "token"
        if content:
            place.write_bytes(content)
            place.chmod(0o600)
        fault = failing(lambda: notices.read_secret(tmp_path / "token"), RecipeError)
        assert fault.remedy == "Correct the path in nightly.toml, or the file."
    right = make_file(tmp_path / ("token" if way == "file" else "right"), "secret")
    right.chmod(0o600)
    assert notices.read_secret(right) == "secret"


# The index


def test_a_list_that_contradicts_itself_is_written_again(
    shell: CommandLine, tmp_path: Path
) -> None:
    wheel = write_wheel(tmp_path / "wheels")
    shell.succeeds(f"invoke index --folder {wheel.parent}")
    (file,) = tmp_path.rglob(matching.FILE)
    text = file.read_bytes()
    file.write_bytes(text.replace(b'"version":"1.0"', b'"version":"2.0"'))
    fault = failing(lambda: matching.rank_wheels(file.read_bytes(), Wish()), SupplyError)
    (command,) = commands(fault.remedy)
    shell.succeeds(f"{command} --folder {wheel.parent}")
    assert matching.rank_wheels(file.read_bytes(), Wish())


def test_a_wheel_of_two_versions_is_built_again(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, requires_python=">=3\nVersion: 2.0")
    relabel = partial(versions.with_version, wheel, tmp_path / "out", "1.0+cpu")
    fault = failing(relabel, WheelError)
    assert fault.remedy == "Build the wheel again."
    write_wheel(tmp_path)
    relabel()
    assert (tmp_path / "out/demo-1.0+cpu-py3-none-any.whl").is_file()
