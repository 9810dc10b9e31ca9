"""Whole hosts, simulated: a person read what doctor says on each; expected/ keeps it.

To keep what it says now, run TFWRIGHT_KEEP=1 pytest tests/host/test_simulated.py, and read the
difference.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tfwright.doctor import inventory, page, requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host.probes import Host

EXPECTED = Path(__file__).parent / "expected"
RECIPES = Path(__file__).parent / "recipes"
HOSTS = ("container-cuda10.0", "cuda13", "laptop-nouveau", "mac-cuda9.2", "ubuntu-18.04-cuda10.1")
Description = dict[str, Any]
Reader = Callable[[str], Description]
Player = Callable[[Description], Host]
Violation = tuple[str, Mapping[str, Any], str, str]
"""A fitting host, what is changed on it or in its recipe, how the finding begins, and what its
remedy has."""


def settings_of(description: Description) -> HostFile:
    return HostFile(
        build_out=Path(description["env"]["HOME"]) / "build_out", **description.get("settings", {})
    )


@pytest.mark.parametrize("name", HOSTS)
def test_doctors_whole_output_is_the_reviewed_one(
    name: str, described: Reader, play: Player, capsys: pytest.CaptureFixture[str]
) -> None:
    description = described(name)
    host, host_file, recipe = (
        play(description),
        settings_of(description),
        recipes.read(description["recipe"]),
    )
    facts = inventory.take(recipe, host_file, host)
    page.show_examination(recipe.name, facts, requirements.examine(recipe, host_file, host))
    said = f"On a simulated host, {name}.toml:\n\n{capsys.readouterr().out}"
    if os.environ.get("TFWRIGHT_KEEP"):
        (EXPECTED / f"{name}.txt").write_text(said, "utf-8")
    assert said == (EXPECTED / f"{name}.txt").read_text("utf-8")


def changed(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description, or a recipe, with some values replaced, those of a table one by one."""
    merged = {
        key: {**values.get(key, {}), **value} if isinstance(value, Mapping) else value
        for key, value in changes.items()
    }
    return {**values, **merged}


def examined(description: Description, play: Player) -> list[Finding]:
    """Hold a host against its recipe; ``asks`` is what is changed in that."""
    asked = recipes.read(description["recipe"]).model_dump(mode="json")
    recipe = Recipe.model_validate(changed(asked, description.get("asks", {})))
    return requirements.examine(recipe, settings_of(description), play(description))


MAC, UBUNTU, CONTAINER, LAPTOP, SERVER = (
    "mac-cuda9.2",
    "ubuntu-18.04-cuda10.1",
    "container-cuda10.0",
    "laptop-nouveau",
    "cuda13",
)
EXT4 = "/dev/sda1 / ext4 rw 0 0\n"
CUDNN_ON_SERVER = "/opt/venv/lib/python3.12/site-packages/nvidia/cudnn/include/cudnn_version.h"
MENDED: Mapping[str, Mapping[str, Any]] = {
    SERVER: {"recipe": str(RECIPES / "linux-r2.17-cuda13.0.toml")},
    CONTAINER: {
        "programs": {
            "/usr/bin/git": {"--version": "git version 2.34.1"},
            "/usr/bin/npm": {"*": ""},
            "/usr/bin/python3.7": {
                "-E -S -c import sys; print('%d.%d.%d' % sys.version_info[:3])": "3.7.5",
                "*": "headers, pip",
            },
            "/bin/df": {
                "*": (
                    "Filesystem 1024-blocks Used Available Capacity Mounted on\noverlay 999999999 "
                    "1 999999998 1% /"
                )
            },
        }
    },
    LAPTOP: {
        "programs": {
            "/usr/bin/npm": {"*": ""},
            "/usr/bin/python3.12": {
                "-E -S -c import sys; print('%d.%d.%d' % sys.version_info[:3])": "3.12.3",
                "*": "headers, pip",
            },
            "/usr/bin/nvidia-smi": {
                "--query-gpu=driver_version --format=csv,noheader": "570.86.10",
                "*": "NVIDIA GeForce RTX 5090 Laptop GPU, 12.0",
            },
        },
        "files": {
            "/proc/modules": "nvidia 18194432 0 - Live 0x0\n",
            "/proc/mounts": EXT4,
            "/usr/lib/llvm-18/bin/clang": "",
        },
    },
}
"""What makes these fit; as they are, several things are wrong with them at once."""
XCODE_9_4 = {"--version": "Apple LLVM version 9.1.0 (clang-902.0.39.2)"}
VIOLATIONS: list[Violation] = [
    (
        MAC,
        {"programs": {"/usr/bin/gcc": XCODE_9_4}},
        "Apple clang 9.1.0 (902.0.39.2) with CUDA 9.2",
        "xcode-select --switch",
    ),
    (
        MAC,
        {"programs": {"/usr/bin/c++": XCODE_9_4}},
        "Apple clang 9.1.0 (902.0.39.2)",
        "xcode-select --switch",
    ),
    (
        MAC,
        {"programs": {"/usr/bin/xcodebuild": {"-version": "Xcode 9.4.1\nBuild version 9F2000"}}},
        "Xcode 9.4.1",
        "xcode-select --switch",
    ),
    (
        MAC,
        {"programs": {"/usr/bin/sw_vers": {"-productVersion": "10.14.6"}}},
        "macOS 10.14.6",
        "such a Mac",
    ),
    (
        MAC,
        {
            "programs": {
                "/usr/bin/csrutil": {"status": "System Integrity Protection status: enabled."}
            }
        },
        "System Integrity Protection is on",
        "csrutil disable",
    ),
    (
        MAC,
        {"programs": {"/usr/sbin/kextstat": {"": "none"}}},
        "no NVIDIA driver",
        "System Preferences > CUDA",
    ),
    (
        MAC,
        {
            "files": {
                "/usr/local/cuda/include/cudnn.h": (
                    "#define CUDNN_MAJOR 6\n#define CUDNN_MINOR 0\n#define CUDNN_PATCHLEVEL 1\n"
                )
            }
        },
        "cuDNN 6.0.1",
        "invoke toolkit --recipe macos-r1.8-cuda9.2 --cudnn cudnn-9.2",
    ),
    (
        MAC,
        {"files": {"/usr/local/cuda/version.txt": "CUDA Version 9.1.128"}},
        "several CUDAs mixed at /usr/local/cuda",
        "uninstall_cuda_9.1.pl",
    ),
    (
        MAC,
        {"settings": {"cuda": "/Developer/NVIDIA/CUDA-9.1"}},
        "no CUDA at /Developer/NVIDIA/CUDA-9.1",
        "open cuda_9.2*_mac.dmg",
    ),
    (
        MAC,
        {"programs": {"/usr/local/bin/python3.6": {"*": "3.7.0"}}},
        "no Python 3.6",
        "pyenv install 3.6",
    ),
    (
        MAC,
        {"programs": {"/usr/local/bin/git": {"--version": "git version 2.10.1 (Apple Git-78)"}}},
        "git 2.10.1",
        "brew install git",
    ),
    (
        UBUNTU,
        {"programs": {"/usr/bin/git": {"--version": "git version 2.17.1"}}},
        "git 2.17.1",
        "ppa:git-core/ppa",
    ),
    (
        UBUNTU,
        {"programs": {"/usr/bin/gcc": {"--version": "gcc (Ubuntu 9.4.0-1ubuntu1~18.04) 9.4.0"}}},
        "gcc 9.4.0 as the host compiler of nvcc",
        "apt-get install gcc-8",
    ),
    (
        UBUNTU,
        {"programs": {"/usr/bin/gcc": {"--version": "clang version 9.0.0"}}},
        "clang 9.0.0",
        "GCC_HOST_COMPILER_PATH",
    ),
    (
        UBUNTU,
        {"programs": {"/usr/bin/nvidia-smi": {"*": "410.48"}}},
        "driver 410.48",
        "apt-get install nvidia-driver-418",
    ),
    (
        UBUNTU,
        {
            "files": {
                "/usr/include/cudnn.h": (
                    "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 4\n#define CUDNN_PATCHLEVEL 2\n"
                )
            }
        },
        "cuDNN 7.4.2",
        "invoke toolkit --recipe linux-r2.1-cuda10.1 --cudnn cudnn-10.1",
    ),
    (
        UBUNTU,
        {
            "programs": {
                "/usr/bin/nvidia-smi": {
                    "--query-gpu=driver_version --format=csv,noheader": "440.100",
                    "*": "GeForce GTX 680, 3.0",
                }
            }
        },
        "GeForce GTX 680 (compute capability 3.0)",
        "invoke match",
    ),
    (
        UBUNTU,
        {"files": {"/proc/cpuinfo": "flags : fpu sse4_1 sse4_2"}},
        "a processor without avx",
        "another machine",
    ),
    (
        UBUNTU,
        {"files": {"/proc/meminfo": "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n"}},
        "1.0 GiB of memory",
        "swap",
    ),
    (
        UBUNTU,
        {"files": {"/proc/mounts": "tmpfs / tmpfs rw 0 0"}},
        "/home/dev/build_out is on tmpfs, in memory",
        "build_out in the host file",
    ),
    (
        UBUNTU,
        {"files": {"/proc/modules": "nouveau 1 0 - Live 0x0"}},
        "the nouveau driver is loaded",
        "update-initramfs",
    ),
    (
        CONTAINER,
        {"programs": {"/usr/bin/git": {"--version": "git version 2.17.1"}}},
        "git 2.17.1",
        "ppa:git-core/ppa",
    ),
    (
        CONTAINER,
        {"programs": {"/usr/bin/gcc": {"--version": "gcc (Ubuntu 8.4.0-1ubuntu1~18.04) 8.4.0"}}},
        "gcc 8.4.0 as the host compiler of nvcc",
        "apt-get install gcc-7",
    ),
    (
        CONTAINER,
        {"programs": {"/usr/bin/gcc": {"--version": "clang version 7.0.0"}}},
        "clang 7.0.0",
        "GCC_HOST_COMPILER_PATH",
    ),
    (
        CONTAINER,
        {"files": {"/usr/local/cuda-10.0/version.txt": "CUDA Version 10.1.105"}},
        "several CUDAs mixed at /usr/local/cuda-10.0",
        "invoke toolkit --recipe linux-r1.14-cuda10.0 --cuda cuda_10.0",
    ),
    (
        CONTAINER,
        {
            "files": {
                "/usr/include/x86_64-linux-gnu/cudnn_v7.h": (
                    "#define CUDNN_MAJOR 6\n#define CUDNN_MINOR 0\n#define CUDNN_PATCHLEVEL 21\n"
                )
            }
        },
        "cuDNN 6.0.21",
        "--cudnn cudnn-10.0",
    ),
    (
        CONTAINER,
        {
            "files": {
                "/usr/include/x86_64-linux-gnu/cudnn_v7.h": (
                    "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 2\n#define CUDNN_PATCHLEVEL 1\n"
                )
            }
        },
        "cuDNN 7.2.1 for CUDA 10.0",
        "--cudnn cudnn-10.0",
    ),
    (
        CONTAINER,
        {
            "programs": {
                "/usr/bin/nvidia-smi": {
                    "--query-gpu=driver_version --format=csv,noheader": "396.26",
                    "*": "Tesla V100-SXM2-16GB, 7.0",
                }
            }
        },
        "driver 396.26",
        "apt-get install nvidia-driver-410",
    ),
    (
        CONTAINER,
        {"files": {"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}},
        "1.0 GiB of memory",
        "raise the container's limit",
    ),
    (
        LAPTOP,
        {"files": {"/proc/mounts": f"{EXT4}server:/home/dev /home/dev nfs4 rw 0 0\n"}},
        "/home/dev/build_out is on nfs4",
        "a local disk",
    ),
    (
        LAPTOP,
        {"files": {"/proc/modules": "nouveau 3096576 3 - Live 0x0\n"}},
        "the nouveau driver is loaded",
        "blacklist nouveau",
    ),
    (
        LAPTOP,
        {
            "programs": {
                "/usr/bin/nvidia-smi": {
                    "--query-gpu=driver_version --format=csv,noheader": "550.54.14",
                    "*": "NVIDIA GeForce RTX 5090, 12.0",
                }
            }
        },
        "driver 550.54.14",
        "apt-get install nvidia-driver-570",
    ),
    (
        LAPTOP,
        {
            "programs": {
                "/usr/bin/nvidia-smi": {
                    "--query-gpu=driver_version --format=csv,noheader": "570.86",
                    "*": "NVIDIA GeForce GTX 1080, 6.1",
                }
            }
        },
        "NVIDIA GeForce GTX 1080 (compute capability 6.1)",
        "invoke match",
    ),
    (
        LAPTOP,
        {"programs": {"/usr/bin/python3.12": {"*": "3.13.1"}}},
        "no Python 3.12",
        "pyenv install 3.12",
    ),
    (
        LAPTOP,
        {
            "asks": {
                "compile": {
                    "flags": ["--action_env=CLANG_CUDA_COMPILER_PATH=/usr/lib/llvm-19/bin/clang"]
                }
            }
        },
        "no /usr/lib/llvm-19/bin/clang",
        "apt-get install clang-19",
    ),
    (
        SERVER,
        {"programs": {"/usr/bin/gcc": {"--version": "gcc (Debian 16.1.0-1) 16.1.0"}}},
        "gcc 16.1.0 as the host compiler of nvcc",
        "apt-get install gcc-12",
    ),
    (
        SERVER,
        {"programs": {"/usr/bin/gcc": {"--version": "Debian clang version 21.1.0"}}},
        "clang 21.1.0",
        "GCC_HOST_COMPILER_PATH",
    ),
    (
        SERVER,
        {"files": {"/usr/local/cuda-13.0/include/cuda.h": "#define CUDA_VERSION 12080\n"}},
        "several CUDAs mixed at /usr/local/cuda-13.0",
        "--cuda cuda_13.0",
    ),
    (
        SERVER,
        {"settings": {"cuda": "/usr/local/cuda"}},
        "no CUDA at /usr/local/cuda",
        "invoke toolkit --recipe linux-r2.17-cuda13.0 --cuda cuda_13.0",
    ),
    (
        SERVER,
        {"asks": {"host": {"cuda": "12.8"}}},
        "CUDA 13.0.88 at /usr/local/cuda-13.0",
        "--cuda cuda_12.8",
    ),
    (
        SERVER,
        {"settings": {"cudnn": "/usr/local/cuda-13.0"}},
        "no cuDNN at /usr/local/cuda-13.0",
        "--cudnn cudnn-linux-x86_64-9*_cuda13*-archive.tar.xz",
    ),
    (
        SERVER,
        {
            "files": {
                CUDNN_ON_SERVER: (
                    "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n"
                )
            }
        },
        "cuDNN 8.9.7",
        "--cudnn cudnn-linux-x86_64-9*_cuda13*-archive.tar.xz",
    ),
    (
        SERVER,
        {
            "files": {
                CUDNN_ON_SERVER: (
                    "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n"
                )
            }
        },
        "cuDNN 9.10.2 for CUDA 13.0",
        "--cudnn cudnn-linux-x86_64-9*_cuda13*-archive.tar.xz",
    ),
    (
        SERVER,
        {
            "asks": {
                "configure": {
                    "answers": {"TF_NEED_CUDA": True, "TF_CUDA_COMPUTE_CAPABILITIES": "7.0,9.0"}
                }
            }
        },
        "compute capability 7.0 with CUDA 13.0",
        "take another CUDA",
    ),
    (
        SERVER,
        {
            "programs": {
                "/usr/bin/nvidia-smi": {
                    "--query-gpu=driver_version --format=csv,noheader": "575.64.03",
                    "*": "NVIDIA H200, 9.0",
                }
            }
        },
        "driver 575.64.03",
        "580.65 or later from https://www.nvidia.com/drivers",
    ),
    (
        SERVER,
        {
            "programs": {
                "/usr/bin/nvidia-smi": {
                    "--query-gpu=driver_version --format=csv,noheader": "580.82.07",
                    "*": "Tesla V100-SXM2-16GB, 7.0",
                }
            }
        },
        "Tesla V100-SXM2-16GB (compute capability 7.0)",
        "invoke match",
    ),
    (
        SERVER,
        {"asks": {"host": {"python": "3.13"}}},
        "Python 3.13 for TensorFlow 2.17",
        "host.python in the recipe",
    ),
    (
        SERVER,
        {
            "programs": {
                "/usr/bin/python3.12": {
                    "-E -S -c import sys; print('%d.%d.%d' % sys.version_info[:3])": "3.12.3",
                    "*": "no headers, pip",
                }
            }
        },
        "Python 3.12 without headers",
        "apt-get install python3.12-dev",
    ),
    (
        SERVER,
        {"programs": {"/usr/bin/git": {"--version": "git version 2.30.2"}}},
        "git 2.30.2",
        "backports",
    ),
    (
        SERVER,
        {"files": {"/proc/modules": "nouveau 1 0 - Live 0x0"}},
        "the nouveau driver is loaded",
        "update-initramfs",
    ),
    (
        MAC,
        {"asks": {"bazel": {"version": "0.9.0"}}},
        "Bazel 0.9.0 for TensorFlow 1.8",
        "bazel.version in the recipe",
    ),
    (
        CONTAINER,
        {"asks": {"bazel": {"version": "0.26.1"}}},
        "Bazel 0.26.1 for TensorFlow 1.14",
        "bazel.version in the recipe",
    ),
    (
        UBUNTU,
        {"asks": {"bazel": {"version": "2.0.0"}}},
        "Bazel 2.0.0 for TensorFlow 2.1",
        "bazel.version in the recipe",
    ),
]


@pytest.mark.parametrize(
    "violation", VIOLATIONS, ids=lambda violation: f"{violation[0]}: {violation[2]}"
)
def test_one_thing_wrong_on_a_fitting_host_is_found_with_its_remedy(
    violation: Violation, described: Reader, play: Player
) -> None:
    name, changes, found, remedy = violation
    findings = examined(changed(changed(described(name), MENDED.get(name, {})), changes), play)
    told = [finding for finding in findings if finding.found.startswith(found)]
    assert told, [finding.found for finding in findings]
    assert remedy in told[0].remedy


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_made_for_its_recipe_has_nothing_wrong(
    name: str, described: Reader, play: Player
) -> None:
    assert examined(changed(described(name), MENDED.get(name, {})), play) == []


def test_a_full_temporary_directory_is_named_with_another_one_to_choose(
    described: Reader, play: Player
) -> None:
    host = described("cuda13")
    full = "Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs 1024 1024 0 100% /tmp"
    programs = {"/usr/bin/df": {**host["programs"]["/usr/bin/df"], "-Pk /tmp": full}}
    files = {"/tmp/x": "", "/proc/mounts": "tmpfs /tmp tmpfs rw 0 0"}  # noqa: S108 played
    findings = examined(changed(host, {"programs": programs, "files": files}), play)
    (found,) = [finding for finding in findings if "/tmp" in finding.found]  # noqa: S108 played
    assert found.blocks == "compile"
    assert "TMPDIR=/PATH invoke build" in found.remedy


def test_a_proxy_without_a_scheme_is_named_with_one(described: Reader, play: Player) -> None:
    host = described("cuda13")
    findings = examined(changed(host, {"env": {"https_proxy": "proxy.example:3128"}}), play)
    (found,) = [finding for finding in findings if "proxy" in finding.found]
    assert found.remedy == "export https_proxy=http://proxy.example:3128"
    assert not found.blocks
