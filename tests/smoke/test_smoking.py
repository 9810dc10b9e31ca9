import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker

from tfwright.documents.host_file import HostFile
from tfwright.errors import HostError, RecipeError, WheelError
from tfwright.pipeline.job import RecipeJob
from tfwright.smoke import smoking as smoke
from tfwright.smoke.run import ORDER, TrialOutcome
from tfwright.smoke.smoking import Request
from tfwright.tools import json_text
from tfwright.tools.python import packages, pips, venv

Asking = Callable[..., Request]
# What smoke/matmul.py needs of a module, in the style of TensorFlow 2; the others say that it is no
# TensorFlow.
MODULE = """\
__version__ = "1.0"
constant = list


class Rows(list):
    def tolist(self):
        return self


def matmul(left, right):
    columns = list(zip(*right))
    product = lambda row: [float(sum(a * b for a, b in zip(row, column))) for column in columns]
    return Rows(map(product, left))
"""


@pytest.fixture
def request_for(tmp_path: Path) -> Asking:
    """Return a function that makes a request for a wheel; "3.6" names the Python of the tests."""

    def make(wheel: Path | str, **options: object) -> Request:
        path = wheel if isinstance(wheel, Path) else tmp_path / wheel
        path.touch()
        pythons = {"3.6": Path("/nowhere/python3.6")}
        host_file = HostFile(build_out=tmp_path / "build_out", pythons=pythons)
        # The options are as the test gives them.
        return Request(path, host_file, **options)  # type: ignore[arg-type]

    return make


def test_the_wheels_tag_says_which_python_it_is_for(request_for: Asking) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    wheel = f"tensorflow-2.20.0-cp{version.replace('.', '')}-none-any.whl"
    interpreter, found = smoke.target_python(request_for(wheel, python=sys.executable))
    assert interpreter == Path(sys.executable)
    assert found.startswith(f"{version}.")
    assert smoke.target_python(request_for("demo-1.0-py3-none-any.whl"))[1] == found


@pytest.mark.parametrize(
    ("requirements", "where"),
    [
        (("pip==20.3.4", "six==1.16.0"), ("--no-index", "--find-links=")),
        ((), ("--no-deps", "--no-index")),
    ],
)
def test_a_trial_of_an_offline_build_takes_packages_from_the_vault_alone(
    job: RecipeJob,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    requirements: tuple[str, ...],
    where: tuple[str, str],
) -> None:
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(packages, "run_pip", lambda run, *_: seen.append(run.argv[6:]))
    monkeypatch.setattr(venv, "create", lambda *_: None)
    recipe = job.recipe.changed(verify=job.recipe.verify.changed(requirements=requirements))
    wheel = tmp_path / "a-1-py3-none-any.whl"
    request = Request.of(recipe, job.host_file, wheel, job.places.stores)
    smoke._install(request, Path(sys.executable), "3.11.0", ())
    assert len(seen) == 1 + bool(requirements)
    for what in seen:
        assert what[0] == where[0]
        assert what[1].startswith(where[1])
    if requirements:
        assert seen[0][2:] == ("pip==20.3.4",)
    assert not Request.of(recipe, job.host_file, request.wheel).sources


def test_a_python_that_is_not_here_is_named_with_the_ways_to_name_one(request_for: Asking) -> None:
    wheel = "tensorflow-1.8.0-cp36-cp36m-linux_x86_64.whl"
    with fails(HostError, "Python 3.6", wheel, "--python"):
        smoke.target_python(request_for(wheel))


def test_what_is_no_wheel_is_refused(request_for: Asking, tmp_path: Path) -> None:
    with fails(WheelError, "tensorflow.whl"):
        smoke.target_python(request_for("tensorflow.whl"))
    with fails(RecipeError, "tensorflow-1.8.0-cp36-cp36m-linux_x86_64.whl"):
        smoke.target_python(
            Request(tmp_path / "tensorflow-1.8.0-cp36-cp36m-linux_x86_64.whl", HostFile())
        )
    with fails(WheelError, "demo-1.0-py3-none-any.whl"):
        smoke.smoke(request_for("demo-1.0-py3-none-any.whl"), lambda _: None)


def test_a_release_gets_the_bounds_of_its_time(request_for: Asking) -> None:
    def bounds(version: str, *requirements: str) -> tuple[str, ...]:
        wheel = f"tensorflow-{version}-cp36-cp36m-linux_x86_64.whl"
        return smoke.bounds_for(request_for(wheel, requirements=requirements))

    assert bounds("1.8.0") == ("protobuf<3.21", "numpy<1.17", "gast<0.3")
    assert bounds("1.8.0", "NumPy==1.14.5") == ("protobuf<3.21", "gast<0.3")
    assert bounds("2.20.0") == ()


@pytest.mark.parametrize(
    ("packages", "module"),
    [
        (["tensorflow_demo"], "tensorflow_demo"),
        (["tensorflow", "tensorflow_core"], "tensorflow"),
        ([], "tensorflow"),
    ],
)
def test_a_wheel_is_imported_by_the_name_of_its_only_package(
    make_wheel: Maker, packages: list[str], module: str
) -> None:
    wheel = make_wheel({f"{package}/__init__.py": "" for package in packages})
    assert smoke.module_of(wheel) == module


def statuses(outcomes: tuple[TrialOutcome, ...]) -> dict[str, str]:
    return {outcome.program: outcome.status for outcome in outcomes}


@pytest.mark.slow
def test_a_wheel_is_installed_and_every_program_run_on_it(
    request_for: Asking, make_wheel: Maker
) -> None:
    heard: list[TrialOutcome] = []
    request = request_for(make_wheel({"small.py": MODULE}), module="small")
    report = smoke.smoke(request, heard.append)
    assert tuple(heard) == report.outcomes
    assert statuses(report.outcomes) == {
        "install": "passed",
        **dict.fromkeys(ORDER, "skipped"),
        **dict.fromkeys(("library_path", "imports", "matmul"), "passed"),
    }
    assert json_text.load_object(request.place / "smoke.json")["wheel"] == request.wheel.name
    assert not (request.place / "venv").exists()
    smoke.check_passed(request, report)


def test_an_extra_that_is_asked_for_is_the_wheels_own(
    request_for: Asking, make_wheel: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(venv, "create", lambda *_: None)
    monkeypatch.setattr(pips, "replacement_pin", lambda *_: "")
    monkeypatch.setattr(packages, "run_pip", lambda run, *_: seen.append(run.argv))
    request = request_for(make_wheel(), requirements=("small[and-cuda]",))
    smoke._install(request, Path(sys.executable), "3.11.2", ())
    words = seen[-1]
    # pip looks for a requirement that comes before its wheel on the index.
    assert words.index(str(request.wheel)) < words.index("small[and-cuda]")


@pytest.mark.slow
def test_after_a_failed_import_the_rest_is_skipped_and_the_venv_kept(
    request_for: Asking, make_wheel: Maker
) -> None:
    failing = "raise ImportError('libcublas.so.10.0: cannot open shared object file')"
    request = request_for(make_wheel({"small.py": failing}), module="small")
    report = smoke.smoke(request, lambda _: None)
    assert [outcome.program for outcome in report.failures] == ["imports"]
    assert report.outcomes[-1].reason == "small does not import"
    assert (request.place / "venv/bin/python").exists()
    with fails(WheelError, "imports", "libcublas.so.10.0"):
        smoke.check_passed(request, report)


@pytest.mark.slow
def test_a_wheel_for_another_machine_is_refused_by_pip_and_said_so(
    request_for: Asking, make_wheel: Maker
) -> None:
    made = make_wheel()
    wheel = made.rename(made.with_name("small-1.0-py3-none-macosx_10_9_arm64.whl"))
    with fails(WheelError, wheel.name):
        smoke.smoke(request_for(wheel), lambda _: None)
