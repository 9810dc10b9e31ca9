from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_program

from tfwright.doctor import requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import cuda
from tfwright.host.place import Place
from tfwright.host.probes import Host
from tfwright.tools.container import engine
from tfwright.tools.process.command import RunningContainer, inside_container

Player = Callable[[dict[str, Any]], Host]
DISK = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 2 1 216895488 15% /"
PROGRAMS = {
    "/usr/bin/uname": {"-sm": "Linux x86_64"},
    "/usr/bin/apt-get": {"*": ""},
    "/usr/bin/npm": {"*": ""},
    "/usr/bin/git": {"--version": "git version 2.39.5"},
    "/usr/bin/c++": {"--version": "g++ (Debian) 12.2.0"},
    "/usr/bin/gcc": {"--version": "gcc (Debian) 7.5.0"},
    "/usr/bin/df": {"*": DISK},
    "/usr/bin/nvidia-smi": {
        "--query-gpu=driver_version --format=csv,noheader": "580.82",
        "*": "GeForce GTX 1080, 6.1",
    },
}
BUILD_OUT = Path("/build_out")
"""Anywhere, whatever the path of this checkout is."""
UNSET = HostFile(build_out=BUILD_OUT)
LITTLE_ROOM = {"*": DISK.replace("216895488", "3145728")}
HEADERS = {
    "include/cuda.h": "#define CUDA_VERSION 9020",
    "include/cublas_api.h": "",
    "extras/CUPTI/include/cupti.h": "",
    "include/cudnn.h": "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 2\n#define CUDNN_PATCHLEVEL 1",
}

IN_USR_LOCAL = {f"/usr/local/cuda/{path}": text for path, text in HEADERS.items()}
BISON = {"host": {"programs": ["perl", "bison"]}}


@pytest.fixture
def good(play: Player) -> Callable[..., Host]:
    """Return a function that plays a host with everything; programs given as None are not there."""

    def made(files: Mapping[str, str] | None = None, **programs: Mapping[str, str] | None) -> Host:
        known: dict[str, Mapping[str, str] | None] = {**PROGRAMS}
        known |= {f"/usr/bin/{name.replace('_', '-')}": has for name, has in programs.items()}
        there = {path: answers for path, answers in known.items() if answers is not None}
        return play({"programs": there, "files": files or {}})

    return made


Good = Callable[..., Host]


def varied(recipe: Recipe, **tables: Mapping[str, object]) -> Recipe:
    """Return a recipe with some keys of some tables changed."""
    values = recipe.model_dump(mode="json")
    return Recipe.model_validate(
        {**values, **{name: {**values[name], **keys} for name, keys in tables.items()}}
    )


def with_cuda(recipe: Recipe, release: str = "1.8", **answers: str) -> Recipe:
    answers = {"TF_CUDA_COMPUTE_CAPABILITIES": "6.1", **answers}
    return varied(
        recipe,
        source={"release": release},
        host={"cuda": "9.2", "cudnn": "7.2"},
        configure={"answers": {"TF_NEED_CUDA": True, **answers}},
    )


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def about(named: str, recipe: Recipe, host: Host) -> Finding:
    """Return the only finding that names something."""
    findings = requirements.examine(recipe, UNSET, host)
    return only([finding for finding in findings if named in finding.found])


AVX = {"/proc/cpuinfo": "flags : sse4_1 avx"}
BEYOND_9_2 = "CUDA 9.2, as the recipe states, does not compile sm_75, compute_75"
CUDNN_7_3 = {path: text.replace("MINOR 2", "MINOR 3") for path, text in IN_USR_LOCAL.items()}
TOOL = {"*": ""}
NO_APT, XCODE = {"apt_get": None}, {"apt_get": None, "xcode_select": TOOL}
X86_64, AARCH64 = {"host": {"machine": "x86_64"}}, {"uname": {"-sm": "Linux aarch64"}}
MAC = {"host": {"system": "Darwin", "machine": "x86_64"}}
OLD_GLIBC, GLIBC = {"verify": {"glibc": "2.17"}}, {"getconf": {"GNU_LIBC_VERSION": "glibc 2.27"}}
OLD_BAZEL = {"bazel": {"version": "0.9.0"}}


@pytest.mark.parametrize(
    ("tables", "programs", "says", "blocks"),
    [
        (MAC, {}, "this host is Linux-x86_64; wanted: Darwin-x86_64", "configure"),
        (X86_64, AARCH64, "this host is Linux-aarch64", "configure"),
        ({"host": {"python": "3.2"}}, {}, "no Python 3.2", "check"),
        ({"host": {"python": "3.2"}}, {}, "pyenv install 3.2", "check"),
        ({}, {"c++": None}, "do: sudo apt-get install g++", "compile"),
        ({}, {**NO_APT, "c++": None, "dnf": TOOL}, "do: sudo dnf install gcc-c++", "compile"),
        ({}, {**XCODE, "c++": None}, "do: xcode-select --install", "compile"),
        ({}, {**NO_APT, "c++": None}, "do: Install g++.", "compile"),
        (BISON, {"perl": TOOL}, "do: sudo apt-get install bison", "compile"),
        (BISON, {**XCODE, "perl": TOOL}, "do: brew install bison", "compile"),
        (BISON, {**NO_APT, "perl": TOOL}, "no bison", "compile"),
        ({}, {"git": None}, "do: sudo apt-get install git", "fetch"),
        ({}, {"git": {"--version": "git version 2.17.1"}}, "git 2.17.1", "fetch"),
        ({}, {"npm": None}, "[bazels]", ""),
        ({}, {"getconf": {}}, "no glibc; wanted: glibc, for which Bazel's", "compile"),
        (OLD_GLIBC, GLIBC, "wanted: glibc 2.17 or older", ""),
        ({}, {"c++": {"--version": "c++ (Debian) 14.2.0"}}, "gcc 14.2.0; wanted: gcc 12", ""),
        ({}, {"df": LITTLE_ROOM}, f"3.0 GiB free at {BUILD_OUT}", ""),
        (OLD_BAZEL, {}, "Bazel 0.9.0 for TensorFlow 1.8; wanted: Bazel 0.10.0 or", "configure"),
    ],
)
def test_what_a_host_lacks_is_found_with_what_to_do_and_the_stage_that_it_stops(  # noqa: PLR0913, PLR0917
    recipe: Recipe,
    good: Good,
    tables: Mapping[str, Mapping[str, object]],
    programs: Mapping[str, Mapping[str, str] | None],
    says: str,
    blocks: str,
) -> None:
    finding = only(requirements.examine(varied(recipe, **tables), UNSET, good(**programs)))
    assert says in f"{finding}; do: {finding.remedy}"
    assert finding.blocks == blocks


def mounted(kind: str) -> dict[str, str]:
    return {"/proc/mounts": f"rootfs / rootfs rw\nserver:/x / {kind} rw\n"}


@pytest.mark.parametrize(
    ("files", "answers", "says", "blocks"),
    [
        (mounted("nfs"), {}, "is on nfs", "compile"),
        (mounted("nfs4"), {}, "is on nfs4", "compile"),
        (mounted("tmpfs"), {}, "is on tmpfs", ""),
        (AVX, {"CC_OPT_FLAGS": "-mavx2"}, "a processor without avx2", "verify"),
        ({}, {"CC_OPT_FLAGS": "-march=native"}, "wanted: the same bytes on every host", ""),
    ],
)
def test_what_files_of_a_host_say_is_found_with_the_stage_that_it_stops(  # noqa: PLR0913, PLR0917
    recipe: Recipe,
    good: Good,
    files: Mapping[str, str],
    answers: Mapping[str, str],
    says: str,
    blocks: str,
) -> None:
    wanted = varied(recipe, configure={"answers": answers})
    finding = only(requirements.examine(wanted, UNSET, good(files)))
    assert says in str(finding)
    assert finding.blocks == blocks


@pytest.mark.parametrize(
    ("release", "bazel", "capabilities", "files", "found", "blocks"),
    [
        ("1.8", "0.26.1", "6.1,7.5", IN_USR_LOCAL, BEYOND_9_2, "compile"),
        ("1.6", "0.26.1", "6.1", CUDNN_7_3, "cuDNN 7.3.1", "configure"),
        # Only some releases ask for a minor version of cuDNN.
        ("1.8", "0.26.1", "6.1", CUDNN_7_3, "cuDNN 7.3.1", ""),
        ("1.14", "0.24.1", "6.1", CUDNN_7_3, "cuDNN 7.3.1", "configure"),
    ],
)
def test_a_cuda_that_does_not_suit_is_found_with_the_stage_that_it_stops(  # noqa: PLR0913, PLR0917
    recipe: Recipe,
    good: Good,
    release: str,
    bazel: str,
    capabilities: str,
    files: Mapping[str, str],
    found: str,
    blocks: str,
) -> None:
    wanted = with_cuda(recipe, release, TF_CUDA_COMPUTE_CAPABILITIES=capabilities)
    finding = only(
        requirements.examine(varied(wanted, bazel={"version": bazel}), UNSET, good(files))
    )
    assert (finding.found, finding.blocks) == (found, blocks)


@pytest.mark.parametrize(
    ("host_file", "found"),
    [
        ({"build_out": "/my disk"}, "' ' in /my disk"),
        ({"build_out": "/b\u00fcro"}, "'\u00fc' in /b\u00fcro"),
        ({"pythons": {"3.2": "/absent/python"}}, "/absent/python does not run"),
    ],
)
def test_what_the_host_file_says_wrong_is_found(
    recipe: Recipe, good: Good, host_file: dict[str, object], found: str
) -> None:
    wanted = varied(recipe, host={"python": "3.2"}) if "pythons" in host_file else recipe
    settings = HostFile.model_validate({"build_out": BUILD_OUT, **host_file})
    assert only(requirements.examine(wanted, settings, good())).found == found


def test_a_host_that_has_everything_gives_no_findings(
    recipe: Recipe, tmp_path: Path, good: Good
) -> None:
    assert requirements.examine(recipe, UNSET, good()) == []
    # A Bazel of the host file needs no second source, and a bundled tree little room.
    bazels = HostFile(build_out=BUILD_OUT, bazels={recipe.bazel.version: tmp_path})
    assert requirements.examine(recipe, bazels, good(npm=None)) == []
    bundled = varied(recipe, source={"url": "bundled:demo"})
    assert requirements.examine(bundled, UNSET, good(df=LITTLE_ROOM)) == []


def test_cuda_is_where_the_host_file_says_or_comes_with_the_release(
    recipe: Recipe, good: Good
) -> None:
    elsewhere = with_cuda(recipe, CUDA_TOOLKIT_PATH="/nowhere", CUDNN_INSTALL_PATH="/nowhere")
    named = HostFile(build_out=BUILD_OUT, cuda=Path("/opt"), cudnn=Path("/opt"))
    files = {f"/opt/{path}": text for path, text in HEADERS.items()}
    assert requirements.examine(elsewhere, named, good(files)) == []
    hermetic = with_cuda(recipe, "2.20", HERMETIC_CUDA_COMPUTE_CAPABILITIES="sm_61")
    newer = varied(hermetic, host={"cuda": "12.5", "cudnn": "9.3"}, bazel={"version": "7.4.1"})
    assert requirements.examine(newer, UNSET, good()) == []


def test_a_toolkit_is_at_the_first_of_the_recipes_paths_and_cudnn_with_it_by_default(
    recipe: Recipe, tmp_path: Path
) -> None:
    assert cuda.CudaPlaces(with_cuda(recipe), HostFile(cuda=tmp_path)).cudnn == tmp_path
    answered = with_cuda(recipe, "1.14", TF_CUDA_PATHS="/usr/local/cuda-10.0,/usr")
    later = cuda.CudaPlaces(answered, UNSET)
    assert later.toolkit == Path("/usr/local/cuda-10.0")
    assert later.prefixes == [Path("/usr/local/cuda-10.0"), Path("/usr")]


def test_what_an_image_has_is_not_asked_of_the_host(
    recipe: Recipe, good: Good, container: RunningContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "is_installed", lambda _: True)
    image = {"name": "own", "digest": f"sha256:{'1' * 64}"}
    wanted = varied(
        with_cuda(recipe),
        host={"python": "3.2", "image": image, "programs": ["swig"]},
        compile={"env": {}, "flags": ["--repo_env=CLANG_COMPILER_PATH=/opt/clang"]},
    )
    bare = good(c__=None, nvidia_smi=None)
    assert requirements.examine(wanted, UNSET, bare) == []
    with inside_container(container):
        found = {finding.found: finding for finding in requirements.examine(wanted, UNSET, bare)}
    for lacking in ("no Python 3.2", "no swig", "no /opt/clang"):
        assert "the new digest into [host.image]" in found[lacking].remedy
    assert "image" in found["no Python 3.2"].wanted
    assert "no CUDA at /usr/local/cuda" in found
    monkeypatch.setattr(engine, "is_installed", lambda _: False)
    assert only(requirements.examine(wanted, UNSET, bare)).found == "no podman"


def test_missing_cuda_and_cudnn_are_two_findings_at_the_recipes_places(
    recipe: Recipe, tmp_path: Path, good: Good
) -> None:
    wanted = with_cuda(
        recipe, CUDA_TOOLKIT_PATH=str(tmp_path / "cuda"), CUDNN_INSTALL_PATH=str(tmp_path / "cudnn")
    )
    found = [str(finding) for finding in requirements.examine(wanted, UNSET, good())]
    assert found == [
        f"no CUDA at {tmp_path / 'cuda'}; wanted: CUDA 9.2",
        f"no cuDNN at {tmp_path / 'cudnn'}; wanted: cuDNN 7.2",
    ]


def test_in_wsl_the_driver_is_the_one_of_windows(recipe: Recipe, play: Player) -> None:
    programs = {path: says for path, says in PROGRAMS.items() if "nvidia" not in path}
    programs["/usr/lib/wsl/lib/nvidia-smi"] = {"*": "472.12"}
    version = "Linux version 5.15.153.1-microsoft-standard-WSL2"
    windows = play({"programs": programs, "files": {"/proc/version": version}})
    wanted = varied(with_cuda(recipe, "2.20"), host={"cuda": "12.8"})
    finding = about("driver", wanted, windows)
    assert finding.found == "driver 472.12"
    assert "on Windows" in finding.remedy
    assert "apt-get" not in finding.remedy


def test_a_build_out_that_is_closed_to_this_user_is_found(
    recipe: Recipe, good: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere.
    monkeypatch.setattr(Place, "is_writable", lambda *_: False)
    finding = only(requirements.examine(recipe, UNSET, good()))
    assert (finding.found, finding.blocks) == (f"{BUILD_OUT} is closed to this user", "fetch")


def test_wsl_1_has_no_gpu_whatever_the_driver_of_windows(recipe: Recipe, play: Player) -> None:
    programs = {path: says for path, says in PROGRAMS.items() if "nvidia" not in path}
    version = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)"
    host = play({"programs": programs, "files": {"/proc/version": version}})
    wanted = varied(with_cuda(recipe, "2.20"), host={"cuda": "12.8"})
    assert about("driver", wanted, host).remedy.startswith("wsl --set-version")


def test_what_a_driver_says_that_does_not_work_is_judged(recipe: Recipe, good: Good) -> None:
    host = good(nvidia_smi={})
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    make_program(host.place.at("/usr/bin/nvidia-smi"), f'#!/bin/sh\necho "{said}"; exit 9\n')
    finding = about("nvidia-smi", with_cuda(recipe, "2.20"), host)
    assert said in finding.found
    assert "modprobe nvidia" in finding.remedy


def test_the_stub_of_the_driver_on_the_library_path_is_found(recipe: Recipe, play: Player) -> None:
    stubs = "/usr/local/cuda/lib64/stubs"
    host = play({"programs": PROGRAMS, "env": {"LD_LIBRARY_PATH": f"/usr/lib:{stubs}"}})
    assert about(stubs, with_cuda(recipe, "2.20"), host)


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ("Debian GNU/Linux 12 (bookworm)", "one that it has: 19"),
        ("A distribution of one's own", "apt-get install clang-18"),
    ],
)
def test_a_remedy_names_packages_that_the_distribution_has(
    release: str, named: str, recipe: Recipe, play: Player
) -> None:
    host = play({"programs": PROGRAMS, "files": {"/etc/os-release": f'PRETTY_NAME="{release}"'}})
    path = "--action_env=CLANG_CUDA_COMPILER_PATH=/usr/lib/llvm-18/bin/clang"
    wanted = varied(recipe, compile={"flags": [path]})
    assert named in about("llvm-18", wanted, host).remedy


def test_root_in_a_container_without_sudo_is_told_no_sudo(recipe: Recipe, play: Player) -> None:
    programs = {path: answers for path, answers in PROGRAMS.items() if "c++" not in path}
    finding = only(requirements.examine(recipe, UNSET, play({"programs": programs, "sudo": False})))
    assert finding.remedy == "apt-get install g++"


@pytest.mark.parametrize(("version", "blocks"), [("4.2.3", ""), ("3.5.1", "configure")])
def test_a_newer_bazel_stops_nothing_where_the_recipe_switches_configures_check_off(
    recipe: Recipe, good: Good, version: str, blocks: str
) -> None:
    answers = {**recipe.configure.answers, "TF_IGNORE_MAX_BAZEL_VERSION": True}
    release = varied(recipe, source={"release": "2.6"}, bazel={"version": version})
    wanted = varied(release, configure={"answers": answers})
    assert about(f"Bazel {version} for TensorFlow 2.6", wanted, good()).blocks == blocks


def test_a_python_that_a_release_was_never_tested_with_is_a_note(
    recipe: Recipe, good: Good
) -> None:
    told = about("for TensorFlow", varied(recipe, host={"python": "3.9"}), good())
    assert str(told) == "Python 3.9 for TensorFlow 1.8; wanted: Python 2.7 to 3.6"
    assert not told.blocks
