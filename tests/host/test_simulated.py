"""Whole hosts, simulated: what doctor says on each was read by a person, and is kept under expected/.

To keep what it says now: TFWRIGHT_KEEP=1 pytest tests/host/test_simulated.py, then read the difference.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tfwright import recipe as recipes
from tfwright.host import inventory
from tfwright.host.probes import Host
from tfwright.pages import host as page
from tfwright.settings import Settings
from tfwright.stages import check

EXPECTED = Path(__file__).parent / "expected"
HOSTS = ("container-cuda10.0", "cuda13", "laptop-nouveau", "mac-cuda9.2", "ubuntu-18.04-cuda10.1")
Description = dict[str, Any]
Reader = Callable[[str], Description]
Player = Callable[[Description], Host]
Violation = tuple[str, Mapping[str, Mapping[str, Any]], str, str]
"""A fitting host, what is changed on it, how the finding begins, and what its remedy has."""


def settings_of(description: Description) -> Settings:
    return Settings(build_out=Path(description["env"]["HOME"]) / "build_out", **description.get("settings", {}))


@pytest.mark.parametrize("name", HOSTS)
def test_doctors_whole_output_is_the_reviewed_one(name: str, described: Reader, play: Player, capsys: pytest.CaptureFixture[str]) -> None:
    description = described(name)
    host, settings, recipe = play(description), settings_of(description), recipes.read(description["recipe"])
    facts = inventory.take(recipe, settings, host)
    page.show_examination(recipe.name, facts, check.examine(recipe, settings, host), as_json=False)
    said = f"On a simulated host, {name}.toml:\n\n{capsys.readouterr().out}"
    if os.environ.get("TFWRIGHT_KEEP"):
        (EXPECTED / f"{name}.txt").write_text(said, "utf-8")
    assert said == (EXPECTED / f"{name}.txt").read_text("utf-8")


def changed(description: Description, changes: Mapping[str, Mapping[str, Any]]) -> Description:
    """Return a description with some programs, files or settings replaced."""
    return {**description, **{kind: {**description.get(kind, {}), **change} for kind, change in changes.items()}}


MAC, UBUNTU, CONTAINER, LAPTOP = "mac-cuda9.2", "ubuntu-18.04-cuda10.1", "container-cuda10.0", "laptop-nouveau"
EXT4 = "/dev/sda1 / ext4 rw 0 0\n"
MENDED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    CONTAINER: {
        "programs": {
            "/usr/bin/git": {"--version": "git version 2.34.1"},
            "/usr/bin/npm": {"*": ""},
            "/usr/bin/python3.7": {"-E -S -c import sys; print('%d.%d.%d' % sys.version_info[:3])": "3.7.5", "*": "headers, pip"},
            "/bin/df": {"*": "Filesystem 1024-blocks Used Available Capacity Mounted on\noverlay 999999999 1 999999998 1% /"},
        },
    },
    LAPTOP: {
        "programs": {
            "/usr/bin/npm": {"*": ""},
            "/usr/bin/python3.12": {"-E -S -c import sys; print('%d.%d.%d' % sys.version_info[:3])": "3.12.3", "*": "headers, pip"},
            "/usr/bin/nvidia-smi": {"--query-gpu=driver_version --format=csv,noheader": "570.86.10", "*": "NVIDIA GeForce RTX 5090 Laptop GPU, 12.0"},
        },
        "files": {"/proc/modules": "nvidia 18194432 0 - Live 0x0\n", "/proc/mounts": EXT4},
    },
}
"""What makes these two fit; as they are, several things are wrong with them at once."""
XCODE_9_4 = {"--version": "Apple LLVM version 9.1.0 (clang-902.0.39.2)"}
VIOLATIONS: list[Violation] = [
    (MAC, {"programs": {"/usr/bin/gcc": XCODE_9_4}}, "Apple clang 9.1.0 (902.0.39.2) with CUDA 9.2", "xcode-select --switch"),
    (MAC, {"programs": {"/usr/bin/c++": XCODE_9_4}}, "Apple clang 9.1.0 (902.0.39.2)", "xcode-select --switch"),
    (MAC, {"programs": {"/usr/bin/xcodebuild": {"-version": "Xcode 9.4.1\nBuild version 9F2000"}}}, "Xcode 9.4.1", "xcode-select --switch"),
    (MAC, {"programs": {"/usr/bin/sw_vers": {"-productVersion": "10.14.6"}}}, "macOS 10.14.6", "such a Mac"),
    (MAC, {"programs": {"/usr/bin/csrutil": {"status": "System Integrity Protection status: enabled."}}}, "System Integrity Protection is on", "csrutil disable"),
    (MAC, {"programs": {"/usr/sbin/kextstat": {"": "none"}}}, "no NVIDIA driver", "System Preferences > CUDA"),
    (MAC, {"files": {"/usr/local/cuda/include/cudnn.h": "#define CUDNN_MAJOR 6\n#define CUDNN_MINOR 0\n#define CUDNN_PATCHLEVEL 1\n"}}, "cuDNN 6.0.1", "invoke toolkit --recipe macos-r1.8-cuda9.2 --cudnn cudnn-9.2"),
    (MAC, {"files": {"/usr/local/cuda/version.txt": "CUDA Version 9.1.128"}}, "several CUDAs mixed at /usr/local/cuda", "uninstall_cuda_9.1.pl"),
    (MAC, {"settings": {"cuda": "/Developer/NVIDIA/CUDA-9.1"}}, "no CUDA at /Developer/NVIDIA/CUDA-9.1", "open cuda_9.2*_mac.dmg"),
    (MAC, {"programs": {"/usr/local/bin/python3.6": {"*": "3.7.0"}}}, "no Python 3.6", "pyenv install 3.6"),
    (MAC, {"programs": {"/usr/local/bin/git": {"--version": "git version 2.10.1 (Apple Git-78)"}}}, "git 2.10.1", "brew install git"),
    (UBUNTU, {"programs": {"/usr/bin/git": {"--version": "git version 2.17.1"}}}, "git 2.17.1", "ppa:git-core/ppa"),
    (UBUNTU, {"programs": {"/usr/bin/gcc": {"--version": "gcc (Ubuntu 9.4.0-1ubuntu1~18.04) 9.4.0"}}}, "gcc 9.4.0 as the host compiler of nvcc", "apt-get install gcc-8"),
    (UBUNTU, {"programs": {"/usr/bin/gcc": {"--version": "clang version 9.0.0"}}}, "clang 9.0.0", "GCC_HOST_COMPILER_PATH"),
    (UBUNTU, {"programs": {"/usr/bin/nvidia-smi": {"*": "410.48"}}}, "driver 410.48", "apt-get install nvidia-driver-418"),
    (UBUNTU, {"files": {"/usr/include/cudnn.h": "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 4\n#define CUDNN_PATCHLEVEL 2\n"}}, "cuDNN 7.4.2", "invoke toolkit --recipe linux-r2.1-cuda10.1 --cudnn cudnn-10.1"),
    (UBUNTU, {"programs": {"/usr/bin/nvidia-smi": {"--query-gpu=driver_version --format=csv,noheader": "440.100", "*": "GeForce GTX 680, 3.0"}}}, "GeForce GTX 680 (compute capability 3.0)", "invoke match"),
    (UBUNTU, {"files": {"/proc/cpuinfo": "flags : fpu sse4_1 sse4_2"}}, "a processor without avx", "another machine"),
    (UBUNTU, {"files": {"/proc/meminfo": "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n"}}, "1.0 GiB of memory", "swap"),
    (UBUNTU, {"files": {"/proc/mounts": "tmpfs / tmpfs rw 0 0"}}, "/home/dev/build_out is on tmpfs, in memory", "build_out in the host file"),
    (UBUNTU, {"files": {"/proc/modules": "nouveau 1 0 - Live 0x0"}}, "the nouveau driver is loaded", "update-initramfs"),
    (CONTAINER, {"programs": {"/usr/bin/git": {"--version": "git version 2.17.1"}}}, "git 2.17.1", "ppa:git-core/ppa"),
    (CONTAINER, {"programs": {"/usr/bin/gcc": {"--version": "gcc (Ubuntu 8.4.0-1ubuntu1~18.04) 8.4.0"}}}, "gcc 8.4.0 as the host compiler of nvcc", "apt-get install gcc-7"),
    (CONTAINER, {"programs": {"/usr/bin/gcc": {"--version": "clang version 7.0.0"}}}, "clang 7.0.0", "GCC_HOST_COMPILER_PATH"),
    (CONTAINER, {"files": {"/usr/local/cuda-10.0/version.txt": "CUDA Version 10.1.105"}}, "several CUDAs mixed at /usr/local/cuda-10.0", "invoke toolkit --recipe linux-r1.14-cuda10.0 --cuda cuda_10.0"),
    (CONTAINER, {"files": {"/usr/include/x86_64-linux-gnu/cudnn_v7.h": "#define CUDNN_MAJOR 6\n#define CUDNN_MINOR 0\n#define CUDNN_PATCHLEVEL 21\n"}}, "cuDNN 6.0.21", "--cudnn cudnn-10.0"),
    (CONTAINER, {"files": {"/usr/include/x86_64-linux-gnu/cudnn_v7.h": "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 2\n#define CUDNN_PATCHLEVEL 1\n"}}, "cuDNN 7.2.1 for CUDA 10.0", "--cudnn cudnn-10.0"),
    (CONTAINER, {"programs": {"/usr/bin/nvidia-smi": {"--query-gpu=driver_version --format=csv,noheader": "396.26", "*": "Tesla V100-SXM2-16GB, 7.0"}}}, "driver 396.26", "apt-get install nvidia-driver-410"),
    (CONTAINER, {"files": {"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}}, "1.0 GiB of memory", "raise the container's limit"),
    (LAPTOP, {"files": {"/proc/mounts": f"{EXT4}server:/home/dev /home/dev nfs4 rw 0 0\n"}}, "/home/dev/build_out is on nfs4", "a local disk"),
    (LAPTOP, {"files": {"/proc/modules": "nouveau 3096576 3 - Live 0x0\n"}}, "the nouveau driver is loaded", "blacklist nouveau"),
    (LAPTOP, {"programs": {"/usr/bin/nvidia-smi": {"--query-gpu=driver_version --format=csv,noheader": "550.54.14", "*": "NVIDIA GeForce RTX 5090, 12.0"}}}, "driver 550.54.14", "apt-get install nvidia-driver-570"),
    (LAPTOP, {"programs": {"/usr/bin/nvidia-smi": {"--query-gpu=driver_version --format=csv,noheader": "570.86", "*": "NVIDIA GeForce GTX 1080, 6.1"}}}, "NVIDIA GeForce GTX 1080 (compute capability 6.1)", "invoke match"),
    (LAPTOP, {"programs": {"/usr/bin/python3.12": {"*": "3.13.1"}}}, "no Python 3.12", "pyenv install 3.12"),
]  # fmt: skip


@pytest.mark.parametrize("violation", VIOLATIONS, ids=lambda violation: f"{violation[0]}: {violation[2]}")
def test_one_thing_wrong_on_a_fitting_host_is_found_with_its_remedy(violation: Violation, described: Reader, play: Player) -> None:
    name, changes, found, remedy = violation
    description = changed(changed(described(name), MENDED.get(name, {})), changes)
    findings = check.examine(recipes.read(description["recipe"]), settings_of(description), play(description))
    told = [finding for finding in findings if finding.found.startswith(found)]
    assert told, [finding.found for finding in findings]
    assert remedy in told[0].remedy


@pytest.mark.parametrize("name", [MAC, UBUNTU, CONTAINER, LAPTOP])
def test_a_host_made_for_its_recipe_has_nothing_wrong(name: str, described: Reader, play: Player) -> None:
    description = changed(described(name), MENDED.get(name, {}))
    assert check.examine(recipes.read(description["recipe"]), settings_of(description), play(description)) == []
