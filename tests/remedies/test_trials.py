"""What is said of trials of a wheel and of builds elsewhere, done to the letter."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import Maker, make_program
from tests.nightly.fake import a_build
from tests.nightly.wheels import write_wheel
from tests.remedies.following import failing

from tfwright.bisect import bisection as bisecting
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError, SupplyError, ToolError, WheelError
from tfwright.nightly import builds as nightly_builds
from tfwright.nightly.builds import KeptInputs
from tfwright.smoke import smoking as smoke
from tfwright.smoke.smoking import Request
from tfwright.tools import files
from tfwright.wheel.seal import statement
from tfwright.workers import dispatch as builds

# smoke


PIP = """\
#!/bin/sh
shift 2
for word; do last=$word; done
case "$*" in
*freeze*) test -e "{there}" || exit 1; echo six==1.16.0;;
*six*) echo "ERROR: No matching distribution found for six==0" >&2; exit 1;;
*macosx*) echo "ERROR: ${{last##*/}} is not a supported wheel on this platform." >&2; exit 1;;
esac
"""


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., Request]:
    """Return a maker of requests, whose venv has a pip that a script plays."""

    def make(wheel: Path, **options: object) -> Request:
        host_file = HostFile(build_out=tmp_path / "build_out")
        made = Request(wheel, host_file, **options)  # type: ignore[arg-type]
        python = made.venv.python
        python.parent.mkdir(parents=True, exist_ok=True)
        make_program(python, PIP.format(there=tmp_path / "there"))
        (made.place / "logs").mkdir(exist_ok=True)
        return made

    return make


def installed(request: Request) -> None:
    log = request.place / "logs/install.log"
    smoke._pip_install(request, log, *request.requirements, str(request.wheel))


def test_other_bounds_are_given_to_pip(
    make_wheel: Maker, request_for: Callable[..., Request]
) -> None:
    wrong = request_for(make_wheel(), requirements=["six==0"])
    failing(lambda: installed(wrong), SupplyError, "--requirement")
    installed(request_for(make_wheel(), requirements=["numpy<2"]))


@pytest.mark.parametrize("way", ["--python", "the wheel for this machine"])
def test_another_python_or_wheel_is_given_where_pip_supports_none(
    make_wheel: Maker, request_for: Callable[..., Request], way: str
) -> None:
    foreign = make_wheel(name="small-1.0-py3-none-macosx_10_9_arm64.whl")
    request = request_for(foreign)
    failing(lambda: installed(request), WheelError, way)
    if way == "--python":
        other = dataclasses.replace(request, python=sys.executable)
        assert smoke.target_python(other)[0] == Path(sys.executable)
    else:
        installed(request_for(make_wheel()))


def test_a_pip_that_lists_nothing_is_made_again(
    make_wheel: Maker, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    request = request_for(make_wheel())
    failing(lambda: smoke._installed_pins(request), ToolError, "command")
    (tmp_path / "there").touch()
    assert smoke._installed_pins(request) == ("six==1.16.0",)


# bisect


def test_a_build_whose_inputs_are_gone_gives_way_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"good": KeptInputs(recipes.read("demo"))}
    monkeypatch.setattr(nightly_builds, "read_inputs", lambda path: kept.get(path.name))

    def made_from(name: str) -> object:
        return bisecting._inputs_of(a_build(id=name, result="built"), tmp_path)

    failing(lambda: made_from("odd"), RecipeError, "--good", "--bad")
    assert made_from("good")


# A wheel from a worker


def test_a_wheel_without_its_provenance_is_built_again(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    kept = wheel.with_name(wheel.name + statement.SUFFIX)
    failing(lambda: builds.verify(wheel), WheelError, "Build")

    def state(digest: str) -> None:
        said = {"subject": [{"digest": {"sha256": digest}}]}
        kept.write_text(json.dumps(said), "utf-8")

    state("0" * 64)
    failing(lambda: builds.verify(wheel), WheelError, "Build")
    # What a build puts next to its wheel.
    state(files.sha256(wheel))
    builds.verify(wheel)
