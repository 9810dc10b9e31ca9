"""What is said of trials of a wheel, of builds elsewhere and of developers' tools, done to the letter."""

import dataclasses
import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cost.test_account import built
from tests.cost.test_account import job as cost_job
from tests.making import find_text, make_file, make_program
from tests.nightly.wheels import write_wheel
from tests.remedies.following import CommandLine, add, commands, failing

from tfwright.bisect import bisection as bisecting
from tfwright.cost import account as costs
from tfwright.develop import checks as develop
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile, WorkerTable
from tfwright.errors import RecipeError, SupplyError, ToolError, WheelError
from tfwright.nightly import builds as nightly_builds
from tfwright.nightly import state as states
from tfwright.nightly.builds import KeptInputs, NightlyBuild
from tfwright.nightly.pages import build as report
from tfwright.nightly.pages.build import FoundBuild
from tfwright.pipeline import cost
from tfwright.smoke import smoking as smoke
from tfwright.smoke.smoking import Request
from tfwright.tools import files
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.wheel.seal import statement
from tfwright.workers import dispatch as builds

Maker = Callable[..., Path]

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
    smoke._pip(request, log, *request.requirements, str(request.wheel))


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
        assert smoke.target(other)[0] == Path(sys.executable)
    else:
        installed(request_for(make_wheel()))


def test_a_pip_that_lists_nothing_is_made_again(
    make_wheel: Maker, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    request = request_for(make_wheel())
    failing(lambda: smoke._installed(request), ToolError, "command")
    (tmp_path / "there").touch()
    assert smoke._installed(request) == ("six==1.16.0",)


# cost


def test_a_build_without_an_action_is_built_again(tmp_path: Path) -> None:
    job = cost_job.__wrapped__(tmp_path)  # type: ignore[attr-defined]
    built(job, kernel=1.0)
    (kept,) = cost.profiles(job)
    kept.write_bytes(gzip.compress(b"[\n"))
    fault = failing(lambda: costs.write(job, "", ""), RecipeError)
    command = fault.remedy.removeprefix("Build it again: ").split()
    assert command == ["invoke", "build", "--recipe", "demo", "--fresh"]
    # Which runs all actions, so that each takes some time.
    built(job, kernel=1.0)
    assert costs.write(job, "", "").path.is_file()


def test_a_nightly_build_with_a_profile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cost_job.__wrapped__(tmp_path)  # type: ignore[attr-defined]
    built(job, kernel=1.0)

    def find(name: str) -> FoundBuild:
        profile = {"compiled": "profile.gz"}.get(name, "")
        return FoundBuild(night_of(name, "failed", profile=profile), tmp_path)

    shutil.copy(cost.profiles(job)[0], tmp_path / "profile.gz")
    monkeypatch.setattr(report, "find", find)
    fault = failing(lambda: costs.write(job, "", "fetched"), RecipeError)
    assert fault.remedy == "Name a build that got as far as compile."
    assert costs.write(job, "", "compiled").path.is_file()


# bisect


@pytest.fixture
def nights(shell: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a build host that builds the demo at night."""
    path = tmp_path / "nightly.toml"
    folder = tmp_path / "nights"
    lines = f'directory = "{folder}"\n[[recipe]]\nname = "demo"\n'
    path.write_text(lines, "utf-8")
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(path))
    assert shell.host_file.is_file()
    return folder


def night_of(name: str, result: str, day: int = 1, **more: object) -> NightlyBuild:
    values = {"target": "demo", "recipe": "demo", "seconds": 1.0, **more}
    values |= {"id": name, "started": f"2026-01-0{day}T00:00:00Z"}
    return NightlyBuild.model_validate({**values, "result": result})


def test_a_build_whose_inputs_are_gone_gives_way_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"good": KeptInputs(recipes.read("demo"))}
    monkeypatch.setattr(nightly_builds, "read_inputs", lambda path: kept.get(path.name))

    def made_from(name: str) -> object:
        return bisecting._inputs_of(night_of(name, "built"), tmp_path)

    failing(lambda: made_from("odd"), RecipeError, "--good", "--bad")
    assert made_from("good")


def test_a_build_that_failed_without_a_change_is_built_again(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"stage": "compile", "cause": "the network", "line": "x"}
    with states.opened(nights) as state:
        state.add_build(night_of("good", "built", 1))
        state.add_build(night_of("bad", "failed", 2, broken=broken))
    demo = recipes.read("demo")
    kept = {name: KeptInputs(demo) for name in ("good", "bad")}
    monkeypatch.setattr(nightly_builds, "read_inputs", lambda path: kept[path.name])
    monkeypatch.setattr(bisecting, "_commits", lambda *_: [])
    fault = failing(lambda: bisecting.prepare("demo"), RecipeError, "failed")
    assert fault.evidence.where == str(nights / "site/builds/bad")
    (command,) = commands(fault.remedy)
    assert command == "invoke nightly --recipe demo --now"
    # It fails again once something is wrong with the recipe.
    package = demo.package.model_copy(update={"flags": ("--wrong",)})
    wrong = demo.model_copy(update={"package": package})
    kept["again"] = KeptInputs(wrong)
    with states.opened(nights) as state:
        state.add_build(night_of("again", "failed", 3, broken=broken))
    assert bisecting.prepare("demo").steps


# A wheel from a worker


HOST = WorkerTable(name="one", address="one.example", directory="/srv/tfwright")


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


def test_a_worker_that_prints_something_else_is_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(tmp_path / "worker")
    log = make_file(tmp_path / "log", "the wheel is here\n")
    settings = HostFile(
        build_out=tmp_path / "out",
        workers=(WorkerTable(name="one", address="one.example", directory="/srv"),),
    )

    def collect(printed: str) -> None:
        done = RemoteBuild(1.0, printed=printed, log=str(log))
        builds._collect(HOST, done, settings, "demo")

    fault = failing(lambda: collect("the wheel is here"), WheelError, "checkout")
    assert fault.evidence.log == log
    said = {"subject": [{"digest": {"sha256": files.sha256(wheel)}}]}
    suffix = statement.SUFFIX
    wheel.with_name(wheel.name + suffix).write_text(json.dumps(said), "utf-8")

    def fetch(_: object, folder: str, to: Path, *__: object) -> None:
        shutil.copytree(folder, to, dirs_exist_ok=True)

    monkeypatch.setattr(ssh, "fetch", fetch)
    collect(str(wheel))


# Developers


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a developers' tool that finds fault until the file `right` is there."""
    program = tmp_path / "bin/mypy"
    program.parent.mkdir()
    make_program(
        program, f"#!/bin/sh\ntest -e {tmp_path}/right || {{ echo 'create right'; exit 1; }}\n"
    )
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return program


def test_the_findings_of_a_tool_are_corrected(
    tool: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failing(lambda: develop.run(tool.name), ToolError, "reports")
    named = find_text(r"create (\w+)", capfd.readouterr().out)
    (tmp_path / named[1]).touch()
    develop.run(tool.name)


@pytest.mark.parametrize("way", ["test", "reason"])
def test_a_module_gets_tests_or_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    project = make_file(tmp_path / "pyproject.toml", "[tool.tfwright.uncovered]\n")
    monkeypatch.setattr(develop, "ROOT", tmp_path)
    covered = 50.0

    def run(_: str, *arguments: str) -> None:
        shares = ("statements", "branches")
        counts = {f"percent_{name}_covered": covered for name in shares}
        summary = {"files": {"src/tfwright/a.py": {"summary": counts}}}
        Path(arguments[-1]).write_text(json.dumps(summary), "utf-8")

    monkeypatch.setattr(develop, "run", run)
    fault = failing(develop._insist_on_reasons, ToolError)
    table = find_text(r"in (\[tool\.tfwright\.uncovered\])", fault.remedy)
    if way == "reason":
        add(project, '"a.py" = "needs a GPU"', after=table[1])
    else:
        assert "Write a test for each branch" in fault.remedy
        covered = 95.0
    develop._insist_on_reasons()
