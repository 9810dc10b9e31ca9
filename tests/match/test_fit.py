"""Whether a wheel runs on a machine, on simulated hosts."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.making import Read, make_file

from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError
from tfwright.host.probes import Host
from tfwright.match import fit, page, wish
from tfwright.wheel.binary.elf import LibraryPart, VersionRequirement
from tfwright.wheel.inspect.inspection import Inspection
from tfwright.wheel.inspect.library import Library
from tfwright.wheel.inspect.needs import Summary, WheelNeed

NEEDS = {"GLIBC": WheelNeed("2.17", "tensorflow/a.so"), "CPU": WheelNeed("avx", "tensorflow/a.so")}
PYTHON_3_10 = "tensorflow/python/_a.cpython-310-x86_64-linux-gnu.so"


def library(path: str) -> Library:
    requires = {"GLIBC": VersionRequirement("2.17", "a")}
    return Library(path, 10, (LibraryPart(system="Linux", machine="x86_64", requires=requires),))


def wheel(*gpu: str, tag: str = "cp310-cp310-manylinux_2_17_x86_64", cuda: str = "") -> Inspection:
    return Inspection(
        f"tensorflow-2.15.1-{tag}.whl",
        1,
        project="tensorflow",
        version="2.15.1",
        tags=(tag,),
        stated=(("cuda_version", cuda),) if cuda else (),
        summary=Summary(NEEDS, (), dict.fromkeys(gpu, 1), (), 0),
        libraries=(library("tensorflow/a.so"),),
    )


def laptop(**changes: str) -> dict[str, Any]:
    seen = {
        "machine": "x86_64",
        "glibc": "2.36",
        "flags": "sse4_1 sse4_2 avx fma avx2",
        "driver": "550.54.14",
        "gpu": "NVIDIA GeForce RTX 3090, 8.6",
        "libraries": "libcudart.so.12 (libc6,x86-64) => /usr/local/cuda/lib64/libcudart.so.12",
    } | changes
    programs = {
        "/usr/bin/uname": {"-sm": f"Linux {seen['machine']}"},
        "/usr/bin/getconf": {"GNU_LIBC_VERSION": f"glibc {seen['glibc']}"},
        "/usr/sbin/ldconfig": {"-p": seen["libraries"]},
        "/usr/bin/nvidia-smi": {
            "--query-gpu=driver_version --format=csv,noheader": seen["driver"],
            "--query-gpu=name,compute_cap --format=csv,noheader": seen["gpu"],
        },
        "/usr/bin/python3.10": {"*": "3.10.14"},
    }
    if not seen["gpu"]:
        del programs["/usr/bin/nvidia-smi"]
    if seen["glibc"] == "musl":
        programs["/usr/bin/getconf"] = {}
    files = {"/proc/cpuinfo": f"flags : {seen['flags']}\n"}
    return {"programs": programs, "files": files, "env": {"PATH": "/usr/bin"}}


Said = tuple[bool | None, dict[str, fit.Judgement]]


def told(found: fit.FitVerdict) -> Said:
    return found.runs, {judgement.what: judgement for judgement in found.judgements}


def judged(report: Inspection, host: Host, **wishes: str) -> Said:
    """Return whether a wheel runs on a host, and why, by what it is about."""
    wanted = wish.wish_of_wheels(wish.wish(host, **wishes), host)
    python = HostFile(pythons={"3.10": "/usr/bin/python3.10"})
    return told(fit.verdict(report, wanted, host, python))


def elsewhere(report: Inspection, **wishes: str) -> Said:
    """Return the same for a machine that is not this one."""
    return told(fit.verdict(report, wish.Wish(**wishes), None, HostFile()))


PC = {"system": "Linux", "machine": "x86_64"}
WINDOWS = {"system": "Windows", "machine": "AMD64", "python": "3.10"}


GPU_WHEEL = wheel("sm_60", "sm_80", "compute_80", cuda="12.2")


def test_a_wheel_that_a_host_has_everything_for_runs(play: Callable[..., Host]) -> None:
    runs, found = judged(GPU_WHEEL, play(laptop()))
    assert runs, found
    assert found["Python"].says.startswith("3.10: ")
    assert found["GPU code"].says == "machine code for compute capability 8.6"


@pytest.mark.parametrize(
    ("changes", "what", "said"),
    [
        ({"glibc": "2.12"}, "glibc", "needs glibc 2.17"),
        ({"glibc": "musl"}, "glibc", "for systems with glibc, which this is not"),
        ({"flags": "sse4_1 sse4_2"}, "CPU", "avx"),
        ({"driver": "470.82"}, "driver", "470.82 is there"),
        ({"gpu": "NVIDIA GeForce RTX 5090, 12.0"}, "GPU code", "6.0, 8.0 only, and PTX"),
        ({"machine": "aarch64"}, "platform", "manylinux_2_17_x86_64"),
    ],
)
def test_what_a_host_lacks_is_named_with_what_to_do(
    changes: dict[str, str], what: str, said: str, play: Callable[..., Host]
) -> None:
    runs, found = judged(GPU_WHEEL, play(laptop(**changes)))
    assert runs is False
    assert said in found[what].says
    assert found[what].remedy


@pytest.mark.parametrize(
    ("tag", "python", "fits"),
    [
        ("cp310-cp310-manylinux_2_17_x86_64", "3.10", True),
        ("cp310-cp310-manylinux_2_17_x86_64", "3.12", False),
        ("cp310-abi3-manylinux_2_17_x86_64", "3.12", True),
        ("cp313-cp313t-manylinux_2_17_x86_64", "3.13", False),
        ("cp27-cp27mu-manylinux_2_17_x86_64", "2.7", True),
        ("py3-none-any", "3.12", True),
    ],
)
def test_a_tag_is_of_the_pythons_that_pip_installs_it_for(
    tag: str, python: str, *, fits: bool
) -> None:
    _, found = elsewhere(wheel(tag=tag), **PC, python=python)
    assert found["Python"].holds is fits


@pytest.mark.parametrize(
    ("tag", "wanted", "what"),
    [
        ("musllinux_1_2_x86_64", {"system": "Linux", "glibc": "2.36"}, "glibc"),
        ("manylinux_2_17_x86_64", {"system": "Linux", "glibc": "none"}, "glibc"),
        ("macosx_12_0_arm64", {"system": "Darwin", "machine": "x86_64"}, "platform"),
        ("win_amd64", {"system": "Linux"}, "platform"),
        ("manylinux_2_17_aarch64", {"system": "Linux", "machine": "x86_64"}, "platform"),
    ],
)
def test_a_wheel_for_another_platform_or_c_library_does_not_run(
    tag: str, wanted: dict[str, str], what: str
) -> None:
    runs, found = elsewhere(wheel(tag=f"cp310-cp310-{tag}"), **wanted)
    assert (runs, found[what].holds) == (False, False)
    # An image of Debian has glibc, and one of Alpine has musl.
    assert not {"Debian", "Alpine"} <= {*re.findall(r"\w+", found[what].remedy)}


@pytest.mark.parametrize(
    ("tag", "machine", "fits"),
    [
        ("macosx_10_15_intel", "x86_64", True),
        ("macosx_10_9_fat64", "x86_64", True),
        ("macosx_11_0_universal2", "x86_64", True),
        ("macosx_11_0_universal2", "arm64", True),
        ("macosx_10_15_intel", "arm64", False),
    ],
)
def test_a_wheel_for_several_kinds_of_mac_is_for_each_of_them(
    tag: str, machine: str, *, fits: bool
) -> None:
    _, found = elsewhere(wheel(tag=f"cp310-cp310-{tag}"), system="Darwin", machine=machine)
    assert ("platform" not in found) is fits


def test_a_report_of_doctor_describes_another_host(tmp_path: Path) -> None:
    seen = {
        "system": "Linux-x86_64",
        "glibc": "2.28",
        "instruction sets": "sse4.1 sse4.2 avx",
        "GPU": "NVIDIA GeForce GTX 1080 (compute capability 6.1)",
        "driver": "470.82",
    }
    facts = [{"name": name, "value": value} for name, value in seen.items()]
    path = make_file(tmp_path / "host.json", json.dumps({"facts": facts}))
    wanted = wish.wish_of_report(path, python="3.10")
    assert wanted == wish.Wish("Linux", "x86_64", "6.1", "3.10", "2.28", cpu="avx", driver="470.82")
    _, found = elsewhere(GPU_WHEEL, **vars(wanted))
    assert [found[what].holds for what in ("driver", "glibc", "CPU")] == [False, True, True]


def test_a_promise_that_only_older_systems_miss_does_not_keep_a_wheel_from_a_newer_one() -> None:
    fault = "tensorflow/a.so needs glibc 2.17, and the tag promises 2.5"
    report = replace(wheel(), faults=(fault,), broken_promises=(fault,))
    wanted = {**PC, "cpu": "avx", "python": "3.10"}
    assert elsewhere(report, **wanted, glibc="2.36")[0]
    assert elsewhere(report, **wanted, glibc="2.12")[0] is False
    damaged = replace(report, faults=("it is damaged",))
    assert elsewhere(damaged, **wanted, glibc="2.36")[0] is False


def test_of_a_wheel_for_windows_the_gpu_code_is_judged_and_the_rest_is_unknown() -> None:
    stated = (("cuda_version", "64_112"), ("cudnn_version", "64_8"))
    made = wheel("sm_80", tag="cp310-cp310-win_amd64")
    a_pyd = Library("tensorflow/a.pyd", 1, (LibraryPart(system="Windows"),))
    made = replace(made, version="2.10.0", stated=stated, libraries=(a_pyd,))
    runs, said = elsewhere(made, **WINDOWS, gpu="8.9")
    assert runs is None
    assert said["GPU code"].holds
    assert said["libraries"].holds is None
    assert "CUDA 11.2" in said["driver"].says
    assert said["CUDA"].remedy == "Install CUDA 11.2 and cuDNN 8, and name their folders in PATH."
    assert elsewhere(made, **WINDOWS, gpu="7.0")[0] is False


@pytest.mark.parametrize(
    ("requires", "fits"), [(">=3.9", False), (">=3.8.2", True), ("<3.8.5", True), ("what", True)]
)
def test_a_python_that_the_metadata_excludes_is_none_that_pip_takes(
    requires: str, *, fits: bool
) -> None:
    made = replace(wheel(tag="py3-none-any"), requires_python=requires)
    _, said = elsewhere(made, **PC, python="3.8")
    assert said["Python"].holds is fits
    assert bool(said["Python"].remedy) is not fits


def test_a_wheel_without_gpu_code_runs_on_the_cpu_of_a_machine_with_a_gpu(out: Read) -> None:
    wanted = wish.Wish(**PC, gpu="8.7", python="3.10", glibc="2.35", cpu="avx")
    found = fit.verdict(wheel(), wanted, None, HostFile())
    assert (found.runs, found.on_the_cpu) == (False, True)
    page.show_verdict((found, wheel()), lambda _: None)
    assert "runs on the CPU, and not on the GPU, of a machine" in out()
    other = fit.verdict(wheel(), replace(wanted, python="3.12"), None, HostFile())
    assert not other.on_the_cpu


@pytest.mark.parametrize(("platform", "runs"), [("win_amd64", None), ("any", True)])
def test_a_wheel_for_a_platform_that_has_no_library_stands_for_another_one(
    platform: str, *, runs: bool | None
) -> None:
    empty = replace(wheel(), libraries=(), summary=None, tags=(f"cp310-cp310-{platform}",))
    assert elsewhere(empty, **WINDOWS)[0] is runs


@pytest.mark.parametrize("named", ["<2.17,>=2.16", ""])
def test_a_wheel_of_operations_needs_the_tensorflow_that_its_metadata_names(named: str) -> None:
    part = LibraryPart(system="Linux", needed=("libtensorflow_framework.so.2",))
    linked = Library("ops/a.so", 10, (part,))
    made = replace(wheel(), libraries=(linked,), requires_tensorflow=named)
    _, said = elsewhere(made, **PC, python="3.10")
    assert said["TensorFlow"].holds is None
    assert said["TensorFlow"].remedy == (f"pip install 'tensorflow{named}'" if named else "")
    # A wheel that brings it needs no other one.
    own = replace(made, libraries=(linked, library("tensorflow/libtensorflow_framework.so.2")))
    assert "TensorFlow" not in elsewhere(own, **PC, python="3.10")[1]


def test_a_mac_needs_what_the_libraries_need_if_the_tag_promises_less() -> None:
    summary = Summary({"macOS": WheelNeed("12.1", "a.dylib")}, (), {}, (), 0)
    promise = "a.dylib needs macOS 12.1, and the tag macosx_12_0_arm64 promises 12.0"
    made = replace(
        wheel(tag="cp312-cp312-macosx_12_0_arm64"),
        summary=summary,
        faults=(promise,),
        broken_promises=(promise,),
    )
    _, found = elsewhere(made, system="Darwin", machine="arm64", python="3.12")
    assert found["macOS"].says == "needs macOS 12.1; which one is there is not known"
    assert not any("does not matter here" in one.says for one in found.values())


@pytest.mark.parametrize(("macos", "runs"), [("10.13.6", None), ("10.14", False)])
def test_a_gpu_wheel_for_macs_needs_the_last_macos_with_nvidias_driver(
    macos: str, *, runs: bool | None
) -> None:
    made = wheel("sm_30", "compute_30", tag="cp310-cp310-macosx_10_11_x86_64", cuda="8.0")
    wanted = {"system": "Darwin", "machine": "x86_64", "gpu": "3.0", "python": "3.10"}
    found, said = elsewhere(made, **wanted, macos=macos)
    assert found is runs
    assert not any(one.remedy for one in said.values() if one.holds)
    assert bool(said["driver"].remedy) is (runs is False)


def test_what_is_no_report_of_doctor_is_refused(tmp_path: Path) -> None:
    path = make_file(tmp_path / "host.json", "[]")
    with fails(RecipeError, "report about a host", "invoke doctor --json"):
        wish.wish_of_report(path)


def test_libraries_of_cuda_that_the_loader_does_not_know_are_not_called_there(
    play: Callable[..., Host],
) -> None:
    runs, found = judged(GPU_WHEEL, play(laptop(libraries="nothing")))
    assert runs is None
    assert found["CUDA"].remedy == "pip install 'tensorflow[and-cuda]==2.15.1' brings them."


def test_a_gpu_wheel_runs_on_the_cpu_of_a_host_without_a_gpu(play: Callable[..., Host]) -> None:
    runs, found = judged(GPU_WHEEL, play(laptop(gpu="")))
    assert runs
    assert "CPU" in found["GPU"].says


def test_a_module_for_one_python_contradicts_a_tag_for_all(play: Callable[..., Host]) -> None:
    report = replace(wheel(tag="py3-none-manylinux_2_17_x86_64"), libraries=(library(PYTHON_3_10),))
    runs, found = judged(report, play(laptop(gpu="")), python="3.12")
    assert runs is False
    assert found["Python"].says == "for Python 3.10"


def test_an_operation_with_its_own_copy_of_tensorflow_does_not_run(
    play: Callable[..., Host],
) -> None:
    copy = library("my_op.libs/libtensorflow_framework-1a2b.so.2")
    report = replace(wheel(), libraries=(copy,), project="my-op")
    runs, found = judged(report, play(laptop(gpu="")))
    assert runs is False
    assert "--exclude libtensorflow_framework.so.2" in found["libraries"].says


def test_a_wish_about_another_machine_leaves_unknown_what_it_does_not_say() -> None:
    runs, found = elsewhere(GPU_WHEEL, **PC, gpu="8.6", python="3.10")
    assert runs is None
    unknown = {what for what, one in found.items() if one.holds is None}
    assert unknown == {"glibc", "CPU", "driver", "CUDA"}


def test_libraries_that_somebody_else_has_to_bring_are_named(play: Callable[..., Host]) -> None:
    needing = replace(GPU_WHEEL, outside=("libcudart.so.12", "libmpi.so.40"))
    runs, found = judged(needing, play(laptop()))
    assert runs is None
    assert found["libraries"].says.startswith("needs libmpi.so.40, which this host's loader")
    _, anywhere = elsewhere(needing)
    assert "libcudart.so.12, libmpi.so.40" in anywhere["libraries"].says


def test_of_gpus_of_amd_nothing_is_promised(play: Callable[..., Host]) -> None:
    for_amd = replace(wheel(), stated=(("is_rocm_build", "True"),))
    runs, found = judged(for_amd, play(laptop()))
    assert runs is None
    assert "AMD" in found["GPU code"].says
