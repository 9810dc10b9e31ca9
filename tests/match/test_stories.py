"""What people ask, and what they are told: each story ends with something to do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.making import Serve, make_file
from tests.nightly.wheels import write_wheel

from tfwright.documents.recipe import ROOT

pytestmark = pytest.mark.medium


def invoked(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def asked(*words: str) -> tuple[int, dict[str, Any]]:
    done = invoked("match", "--json", "--os", "Linux", *words)
    return done.returncode, json.loads(done.stdout)


def fitting(answer: dict[str, Any], kind: str) -> list[str]:
    name = {"official": "install", "recipes": "recipe"}[kind]
    return [row[name] for row in answer[kind] if not row["differs"]]


def test_an_rtx_5090_needs_a_build_and_has_a_recipe() -> None:
    status, answer = asked("--gpu", "RTX 5090", "--python", "3.12")
    assert status == 0
    assert fitting(answer, "official") == []
    assert "linux-r2.20-cuda12.8-sm120" in fitting(answer, "recipes")


def test_a_gtx_1080_ti_with_cuda_11_has_official_wheels() -> None:
    _, answer = asked("--gpu", "GTX 1080 Ti", "--cuda", "11.8")
    assert fitting(answer, "official")[0] == "pip install 'tensorflow[and-cuda]==2.14.1'"


def test_a_cpu_without_avx_has_no_official_wheel_and_no_recipe_for_gpus() -> None:
    _, answer = asked("--cpu", "sse4.2", "--python", "3.10")
    assert not any("tensorflow-cpu==2" in wheel for wheel in fitting(answer, "official"))
    assert not any("cuda" in name for name in fitting(answer, "recipes"))
    assert answer["new"]


def test_python_3_13_is_answered_with_the_newest_official_wheel() -> None:
    _, answer = asked("--python", "3.13")
    assert "2.21.0" in fitting(answer, "official")[0]


def test_a_jetson_is_another_machine_and_no_wheel_of_this_one_fits() -> None:
    _, answer = asked("--gpu", "Jetson Orin")
    assert answer["wanted"]["machine"] == "aarch64"
    assert fitting(answer, "official") == []


def test_what_cannot_be_had_says_which_wishes_exclude_each_other() -> None:
    status, answer = asked("--release", "2.18", "--python", "3.14")
    assert status == 3
    assert any("3.9 to 3.12" in reason for reason in answer["excluded"])


def test_a_python_that_was_never_released_is_refused() -> None:
    status, answer = asked("--python", "2.9")
    assert status == 2
    assert "does not take '2.9'" in answer["what"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Radeon RX 580", "AMD"),
        ("MI300X", "AMD"),
        ("ampere", "a generation of GPUs, of compute capability 8.0, 8.6, 8.7"),
        ("GTX 4080", "did you mean 'RTX 4080'?"),
    ],
)
def test_what_is_no_card_of_nvidia_is_named_as_what_it_is(name: str, says: str) -> None:
    status, answer = asked("--gpu", name)
    assert status == 2
    assert says in answer["what"]


def test_a_mac_with_an_external_gpu_has_a_recipe() -> None:
    done = invoked("match", "--json", "--os", "Darwin", "--gpu", "GTX 680", "--release", "1.8")
    assert fitting(json.loads(done.stdout), "recipes") == ["macos-r1.8-cuda9.2"]


def test_a_capability_that_only_jetsons_have_is_another_machine_too() -> None:
    _, answer = asked("--gpu", "8.7")
    assert answer["wanted"]["machine"] == "aarch64"


def test_whether_a_wheel_runs_is_said_first_with_what_to_do(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, tag="cp36-cp36m-manylinux2010_x86_64", files={"demo/a.so": b""})
    done = invoked("inspect", str(wheel), "--json", "--python", "3.12", "--os", "Linux")
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["runs"] is False
    (python,) = [row for row in verdict["judgements"] if row["what"] == "Python"]
    assert "cp312" in python["remedy"]


def test_the_index_of_a_company_says_which_of_its_wheels_fits_and_what_pip_is_told(
    tmp_path: Path, serve: Serve
) -> None:
    folder = tmp_path / "wheels"
    write_wheel(folder, tag="cp310-cp310-manylinux_2_17_x86_64", files={"demo/a.so": b""})
    write_wheel(folder, version="2.0", tag="py3-none-any")
    assert invoked("index", "--folder", str(folder)).returncode == 0
    address = serve(folder)
    done = invoked("match", "--index", address, "--python", "3.12", "--json")
    fits = {wheel["filename"]: wheel["differs"] for wheel in json.loads(done.stdout)}
    assert fits["demo-2.0-py3-none-any.whl"] == []
    assert fits["demo-1.0-cp310-cp310-manylinux_2_17_x86_64.whl"] != []
    said = invoked("match", "--index", address, "--python", "3.12").stdout
    assert f"pip install --extra-index-url {address.rstrip('/')}/simple/ demo==2.0" in said
    wheel = next(folder.rglob("demo-2.0-py3-none-any.whl"))
    url = f"{address.rstrip('/')}/{wheel.relative_to(folder)}"
    assert json.loads(invoked("inspect", url, "--here", "--json").stdout)["verdict"]["runs"]


@pytest.mark.parametrize(
    ("log", "named"),
    [
        ("ERROR: a-1-cp36-cp36m-linux_aarch64.whl is not a supported wheel on this", "aarch64"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "compute_120"),
        ("/lib64/libm.so.6: version `GLIBC_2.23' not found (required by /a/b.so)", "GLIBC_2.23"),
    ],
)
def test_a_failed_log_is_answered_with_its_cause_and_what_to_do(
    log: str, named: str, tmp_path: Path
) -> None:
    path = make_file(tmp_path / "log", f"{log}\n")
    done = invoked("diagnose", str(path), "--json")
    assert done.returncode == 0
    match = json.loads(done.stdout)["matches"][0]
    assert named in match["cause"]
    assert match["remedy"]
