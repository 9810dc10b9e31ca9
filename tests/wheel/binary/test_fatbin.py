import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.wheel.binary import elf, fatbin

Container = Callable[..., bytes]
PTX, SASS, LTO = 1, 2, 8
ACCELERATED, FAMILY, LZ4, ZSTD = 1 << 20, 1 << 21, 1 << 13, 1 << 15

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")

KERNEL = (
    'extern "C" __global__ void add(float *to, const float *from) { to[threadIdx.x] += '
    "from[threadIdx.x]; }\n"
)


def read(content: bytes) -> set[str]:
    return set(fatbin.architectures(content))


def test_kind_and_architecture_come_from_each_entrys_header(container: Container) -> None:
    assert read(container((SASS, 35, 0), (SASS, 70, 0), (PTX, 70, 0), (LTO, 80, 0))) == {
        "sm_35",
        "sm_70",
        "compute_70",
        "lto_80",
    }


def test_compressed_entries_count_as_well(container: Container) -> None:
    assert read(container((SASS, 52, ZSTD), (PTX, 52, LZ4))) == {"sm_52", "compute_52"}


def test_code_for_one_architecture_or_its_family_only_is_named_as_nvcc_does(
    container: Container,
) -> None:
    assert read(container((SASS, 90, ACCELERATED), (SASS, 100, FAMILY))) == {"sm_90a", "sm_100f"}


def test_a_kind_that_is_not_known_is_said(container: Container) -> None:
    assert read(container((64, 90, 0))) == {"kind 64 for 90"}


def test_all_containers_are_read_whatever_lies_between_them(container: Container) -> None:
    gap = bytes(3 * 64 * 1024 - 2)
    assert read(container((SASS, 60, 0)) + gap + container((SASS, 61, 0)) + gap) == {
        "sm_60",
        "sm_61",
    }


def test_only_the_section_is_read(container: Container) -> None:
    before = container((SASS, 30, 0))
    content = before + container((SASS, 75, 0)) + container((SASS, 86, 0))
    assert fatbin.architectures(content, len(before), 2 * len(before)) == {
        "sm_75": len(before) - 16
    }


def test_the_code_of_an_architecture_is_added_up(container: Container) -> None:
    content = container((SASS, 70, 0), (SASS, 86, 0)) + container((SASS, 70, 0))
    sizes = fatbin.architectures(content)
    # Each container has a header of 16 bytes, which belongs to no architecture.
    assert sum(sizes.values()) == len(content) - 32
    assert sizes["sm_70"] == 2 * sizes["sm_86"]


def test_an_entry_that_claims_more_than_its_container_counts_up_to_its_end(
    container: Container,
) -> None:
    content = bytearray(container((SASS, 70, 0)))
    content[16 + 8 : 16 + 16] = (2**62).to_bytes(8, "little")
    assert fatbin.architectures(content) == {"sm_70": len(content) - 16}


def test_an_empty_section_holds_nothing() -> None:
    assert read(b"") == set()
    assert read(bytes(100)) == set()


@pytest.mark.parametrize("length", [17, 60, 100])
def test_a_section_that_ends_too_early_is_said(length: int, container: Container) -> None:
    with pytest.raises(ValueError, match="fat binary"):
        read(container((SASS, 70, 0))[:length])


def test_an_entry_that_leads_nowhere_is_said() -> None:
    looping = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64) + bytes(64)
    with pytest.raises(ValueError, match="damaged"):
        read(looping)


def test_a_section_made_to_keep_its_reader_busy_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fatbin, "MOST", 100)
    with pytest.raises(ValueError, match="more than 100 parts"):
        read(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0) * 200)


def test_a_container_made_to_keep_its_reader_busy_is_given_up(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fatbin, "MOST", 100)
    with pytest.raises(ValueError, match="more than 100 parts"):
        read(container(*[(SASS, 70, 0)] * 200))


def test_a_container_that_ends_within_the_header_of_an_entry_is_said() -> None:
    content = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 8) + bytes(8)
    with pytest.raises(ValueError, match="ends too early"):
        read(content)


def test_the_magic_number_alone_is_not_a_fat_binary() -> None:
    # A program that looks for fat binaries has it too, also as its last bytes.
    magic = struct.pack("<I", 0xBA55ED50)
    assert read(magic + bytes(60) + magic) == set()


def built(folder: Path, *options: str) -> tuple[str, ...]:
    source, library = folder / "kernel.cu", folder / "kernel.so"
    source.write_text(KERNEL, "utf-8")
    subprocess.run(
        [
            "nvcc",
            "-shared",
            "-Xcompiler",
            "-fPIC",
            "-cudart",
            "none",
            *options,
            source,
            "-o",
            library,
        ],
        check=True,
        cwd=folder,
    )
    return tuple(elf.examine(library.read_bytes())[0].gpu)


def code(name: str, *kinds: str) -> list[str]:
    """Return nvcc's option for an architecture, as SASS (``sm``), PTX (``compute``) or both."""
    wanted = ",".join(f"{kind}_{name}" for kind in kinds)
    return ["-gencode", f"arch=compute_{name},code=[{wanted}]"]


MIX = [
    *code("75", "sm"),
    *code("80", "sm"),
    *code("86", "sm", "compute"),
    *code("90a", "sm", "compute"),
    *code("100f", "sm"),
    *code("120", "sm", "compute"),
]
"""What nvcc 13.0 is asked for: Turing to Blackwell, two for a part of a family only, some with
PTX."""
MIXED = (
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_90a",
    "sm_100f",
    "sm_120",
    "compute_86",
    "compute_90a",
    "compute_120",
)
COMPRESSIONS = [
    [],
    ["-Xfatbin", "-compress-all"],
    ["-Xfatbin", "-compress=false"],
    *(["-Xfatbin", f"-compress-mode={mode}"] for mode in ("speed", "balance", "size")),
]


@nvcc
@pytest.mark.slow
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
def test_what_nvcc_was_asked_for_is_found_however_it_is_compressed(
    tmp_path: Path, compression: list[str]
) -> None:
    assert built(tmp_path, *MIX, *compression) == MIXED


@nvcc
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cuobjdump") is None, reason="there is no cuobjdump")
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
def test_what_is_found_is_what_cuobjdump_lists(tmp_path: Path, compression: list[str]) -> None:
    built(tmp_path, *MIX, *compression)
    assert listed(tmp_path / "kernel.so") == [name.rstrip("af") for name in MIXED]


def listed(library: Path) -> list[str]:
    """Return what cuobjdump lists.

    It names PTX as ``sm_`` too, and leaves off for which part of a family the code is.
    """
    found = []
    for option, prefix in (("--list-elf", "sm_"), ("--list-ptx", "compute_")):
        text = subprocess.run(
            ["cuobjdump", option, library], check=True, capture_output=True, text=True
        ).stdout
        found += sorted(
            {prefix + number for number in re.findall(r"\.sm_(\d+)", text)},
            key=lambda name: int(name.partition("_")[2]),
        )
    return found


@nvcc
@pytest.mark.slow
def test_relocatable_device_code_is_found(tmp_path: Path) -> None:
    assert built(tmp_path, "-rdc=true", *code("80", "sm"), *code("90", "sm")) == ("sm_80", "sm_90")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fatbinary") is None, reason="there is no fatbinary")
@pytest.mark.parametrize("mode", ["none", "speed", "size"])
def test_an_architecture_that_nvcc_no_longer_compiles_for_is_found(
    tmp_path: Path, mode: str
) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL, "utf-8")
    subprocess.run(["nvcc", "-ptx", "kernel.cu"], check=True, cwd=tmp_path)
    image = f"--image3=kind=ptx,sm=30,file={tmp_path / 'kernel.ptx'}"
    subprocess.run(
        ["fatbinary", "-64", f"--compress-mode={mode}", "--create=made", image],
        check=True,
        cwd=tmp_path,
    )
    assert read((tmp_path / "made").read_bytes()) == {"compute_30"}
