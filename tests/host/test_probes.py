import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_file

from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_of_line
from tfwright.host import machine, nvidia, probes, toolchain
from tfwright.host.place import HERE, NOTHING, Place, Seen
from tfwright.host.probes import Host
from tfwright.host.toolchain import Compiler
from tfwright.tools.process.command import RunningContainer, inside_container

apple = partial(Compiler, "Apple clang")
NVCC = HERE.which("nvcc")
Player = Callable[[dict[str, Any]], Host]


def place(play: Player, **files: str) -> Place:
    return play({"files": files}).place


def test_this_host_is_described_as_uname_does(tmp_path: Path) -> None:
    host = Host()
    assert (host.system, host.machine) == (os.uname().sysname, os.uname().machine)
    assert str(host) == f"{host.system}-{host.machine}"
    assert host.disk(tmp_path / "not" / "there" / "yet").free > 0


@pytest.mark.usefixtures("host_and_container")
def test_the_disk_of_a_build_is_the_hosts(tmp_path: Path) -> None:
    mounts = Path("/proc/mounts")
    if mounts.is_file() and " / " not in mounts.read_text("utf-8"):
        pytest.skip("a chroot does not say what its file system is")
    assert machine.disk(HERE, tmp_path).kind


def test_the_files_of_an_open_container_are_seen_and_not_the_hosts(
    image_root: Path, container: RunningContainer
) -> None:
    toolkit = Path("/opt/own/cuda")
    header = f"{toolkit}/include/x86_64-linux-gnu/nccl.h"
    files = {
        "/etc/os-release": 'PRETTY_NAME="Debian of the image"',
        f"{toolkit}/version.txt": "CUDA Version 11.8.0",
        header: "#define NCCL_MAJOR 2\n#define NCCL_MINOR 16\n#define NCCL_PATCH 5",
    }
    for name, text in files.items():
        make_file(Path(f"{image_root}{name}"), text)
    before = probes.this_host().release
    assert HERE.exists(image_root)
    assert not HERE.exists(toolkit)
    with inside_container(container):
        assert probes.this_host().release.value == "Debian of the image"
        assert HERE.exists(toolkit)
        assert not HERE.exists(image_root)
        assert HERE.read(image_root / "etc/os-release") == NOTHING
        assert Seen("11.8.0", f"{toolkit}/version.txt") in nvidia.cuda(HERE, toolkit)
        assert nvidia.library(HERE, "nccl", [toolkit]) == Seen("2.16.5", header)
    assert probes.this_host().release == before


def test_the_compiler_is_known_by_the_first_line_of_its_version() -> None:
    compiler = Host().compiler
    assert "\n" not in compiler.value
    assert any(character.isdigit() for character in compiler.value) or not compiler
    assert compiler.by.endswith("--version")


def test_nothing_is_looked_at_before_it_is_asked_for(tmp_path: Path) -> None:
    host = Host(Place(tmp_path / "not there", {}))
    assert vars(host) == {"place": host.place}


@pytest.mark.parametrize(
    ("line", "compiler"),
    [
        ("gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0", Compiler("gcc", "7.5.0")),
        ("gcc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)", Compiler("gcc", "4.8.5")),
        ("Apple LLVM version 8.0.0 (clang-800.0.42.1)", apple("8.0.0", "800.0.42.1")),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", apple("15.0.0", "1500.3.9.4")),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", Compiler("clang", "18.1.3")),
        ("tcc version 0.9.27 (x86_64 Linux)", None),
    ],
)
def test_compilers_are_told_apart_by_what_they_say(line: str, compiler: Compiler | None) -> None:
    assert toolchain.parse_version(line) == compiler


@pytest.mark.parametrize(
    ("path", "text", "version"),
    [
        ("version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}}', "12.8.1"),
        ("version.txt", "CUDA Version 9.2.148", "9.2.148"),
        ("include/cuda.h", "#define CUDA_VERSION 11080", "11.8"),
    ],
)
def test_cuda_is_known_by_any_of_its_files(
    path: str, text: str, version: str, play: Player
) -> None:
    (seen,) = nvidia.cuda(place(play, **{f"/opt/cuda/{path}": text}), Path("/opt/cuda"))
    assert (seen.value, seen.by) == (version, f"/opt/cuda/{path}")


def test_a_broken_version_file_is_passed_over(play: Player) -> None:
    broken = place(play, **{"/opt/cuda/version.json": '{"cuda": []}'})
    assert nvidia.cuda(broken, Path("/opt/cuda")) == []


@pytest.mark.parametrize(
    "header",
    [
        "/usr/include/cudnn.h",
        "/usr/include/x86_64-linux-gnu/cudnn_version_v8.h",
        "/usr/lib/python3/site-packages/nvidia/cudnn/include/cudnn_version.h",
    ],
)
def test_cudnn_is_found_as_nvidia_as_debian_and_as_pip_lay_it_out(
    header: str, play: Player
) -> None:
    text = "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n"
    prefixes = [Path("/usr/lib/python3/site-packages/nvidia/cudnn"), Path("/usr")]
    seen = nvidia.library(place(play, **{header: text}), "cudnn", prefixes)
    assert (seen.value, seen.by) == ("8.9.7", header)


@pytest.mark.parametrize(
    "text",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  440.100  Fri May 29 08:45:51 UTC 2020",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  440.100  Release Build",
    ],
)
def test_the_driver_is_known_without_nvidia_smi(text: str, play: Player) -> None:
    assert nvidia.driver(place(play, **{"/proc/driver/nvidia/version": text})).value == "440.100"


@pytest.mark.parametrize(
    ("name", "capability"), [("Tesla P100-PCIE-16GB", "6.0"), ("Voodoo 2", "")]
)
def test_gpus_of_drivers_that_do_not_tell_are_known_by_name(
    name: str, capability: str, play: Player
) -> None:
    smi = {"/usr/bin/nvidia-smi": {"--query-gpu=name --format=csv,noheader": name}}
    (gpu,) = nvidia.gpus(play({"programs": smi}).place)
    assert gpu.capability == capability


def test_a_containers_memory_is_its_limit_and_not_the_machines(play: Player) -> None:
    files = {"/proc/meminfo": "MemAvailable: 251658240 kB\n", "/sys/fs/cgroup/memory.max": "8589\n"}
    assert machine.memory(place(play, **files)).value == "8589"


def test_passwords_of_proxies_are_not_repeated(play: Player) -> None:
    host = play({"env": {"HTTPS_PROXY": "http://me:secret@proxy:3128"}})
    shown = toolchain.variables(host.place, toolchain.PROXIES).value
    assert shown == "https_proxy=http://…@proxy:3128"


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc on this host")
def test_a_real_cuda_says_its_version_and_the_gcc_that_the_table_has_for_it() -> None:
    toolkit = Path("/usr/local/cuda")
    first, *others = nvidia.cuda(HERE, toolkit)
    assert all(is_of_line(seen.value, first.value) for seen in others), "its files agree with nvcc"
    row = compatibility.cuda(first.value)
    assert row
    assert nvidia.ceiling(HERE, toolkit).gcc == row.gcc


@pytest.mark.parametrize(
    ("text", "gcc", "clang"),
    [
        ("#error -- unsupported clang! clang version must be less than 9 and\n", "", "9"),
        ("#if (__clang_major__ >= 17) ||\nclang version must be less than 16 and\n", "", "17"),
        ("#error -- unsupported! gcc versions later than 15 are not supported!\n", "15", ""),
    ],
)
def test_the_conditions_of_cudas_own_header_count_before_its_words(
    tmp_path: Path, text: str, gcc: str, clang: str
) -> None:
    make_file(tmp_path / "opt/cuda/include/crt/host_config.h", text)
    found = nvidia.ceiling(Place(tmp_path), Path("/opt/cuda"))
    assert (found.gcc, found.clang) == (gcc, clang)


def test_a_named_pipe_where_a_host_has_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "version.txt")
    assert not Place(tmp_path).read("/version.txt")


def test_a_text_with_line_ends_of_windows_is_read_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_bytes(b"CUDA\r\nVersion 9.2\r\n")
    assert Place(tmp_path).read("/version.txt").value == "CUDA\nVersion 9.2"
