import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from tests.libraries import fat_binary

from tfwright.wheel.binary import elf, fatbin

PTX, SASS, LTO = 1, 2, 8
ACCELERATED, FAMILY, LZ4, ZSTD = 1 << 20, 1 << 21, 1 << 13, 1 << 15

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")

KERNEL = (
    'extern "C" __global__ void add(float *to, const float *from) { to[threadIdx.x] += '
    "from[threadIdx.x]; }\n"
)


def read(content: bytes) -> set[str]:
    return set(fatbin.architectures(content))


@pytest.mark.parametrize(
    ("codes", "named"),
    [
        (
            [(SASS, 35, 0), (SASS, 70, 0), (PTX, 70, 0), (LTO, 80, 0)],
            {"sm_35", "sm_70", "compute_70", "lto_80"},
        ),
        ([(SASS, 52, ZSTD), (PTX, 52, LZ4)], {"sm_52", "compute_52"}),
        ([(SASS, 90, ACCELERATED), (SASS, 100, FAMILY)], {"sm_90a", "sm_100f"}),
        ([(64, 90, 0)], {"kind 64 for 90"}),
    ],
    ids=["kinds", "compressed", "one architecture or family", "an unknown kind"],
)
def test_kind_and_architecture_come_from_each_entrys_header(
    codes: list[tuple[int, int, int]], named: set[str]
) -> None:
    assert read(fat_binary(*codes)) == named


def test_all_containers_are_read_whatever_lies_between_them() -> None:
    gap = bytes(3 * 64 * 1024 - 2)
    content = fat_binary((SASS, 60, 0)) + gap + fat_binary((SASS, 61, 0)) + gap
    assert read(content) == {"sm_60", "sm_61"}


def test_only_the_section_is_read() -> None:
    before = fat_binary((SASS, 30, 0))
    content = before + fat_binary((SASS, 75, 0)) + fat_binary((SASS, 86, 0))
    assert fatbin.architectures(content, len(before), 2 * len(before)) == {
        "sm_75": len(before) - 16
    }


def test_the_code_of_an_architecture_is_added_up() -> None:
    content = fat_binary((SASS, 70, 0), (SASS, 86, 0)) + fat_binary((SASS, 70, 0))
    sizes = fatbin.architectures(content)
    # Each container has a header of 16 bytes, which belongs to no architecture.
    assert sum(sizes.values()) == len(content) - 32
    assert sizes["sm_70"] == 2 * sizes["sm_86"]


def test_an_entry_that_claims_more_than_its_container_counts_up_to_its_end() -> None:
    content = bytearray(fat_binary((SASS, 70, 0)))
    content[16 + 8 : 16 + 16] = (2**62).to_bytes(8, "little")
    assert fatbin.architectures(content) == {"sm_70": len(content) - 16}


def test_an_empty_section_holds_nothing() -> None:
    assert read(b"") == set()
    assert read(bytes(100)) == set()


@pytest.mark.parametrize("length", [17, 60, 100])
def test_a_section_that_ends_too_early_is_said(length: int) -> None:
    with pytest.raises(ValueError, match="fat binary"):
        read(fat_binary((SASS, 70, 0))[:length])


def test_an_entry_that_leads_nowhere_is_said() -> None:
    looping = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64) + bytes(64)
    with pytest.raises(ValueError, match="damaged"):
        read(looping)


@pytest.mark.parametrize(
    "content", [fat_binary() * 200, fat_binary(*[(SASS, 70, 0)] * 200)], ids=["many", "one of many"]
)
def test_containers_made_to_keep_their_reader_busy_are_given_up(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fatbin, "MOST", 100)
    with pytest.raises(ValueError, match="more than 100 parts"):
        read(content)


def test_a_container_that_ends_within_the_header_of_an_entry_is_said() -> None:
    content = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 8) + bytes(8)
    with pytest.raises(ValueError, match="ends too early"):
        read(content)


def test_the_magic_number_alone_is_not_a_fat_binary() -> None:
    # A program that looks for fat binaries has it too, also as its last bytes.
    magic = struct.pack("<I", 0xBA55ED50)
    assert read(magic + bytes(60) + magic) == set()


def built(folder: Path, *options: str) -> tuple[str, ...]:
    (folder / "kernel.cu").write_text(KERNEL, "utf-8")
    command = ["nvcc", "-shared", "-Xcompiler=-fPIC", "-cudart=none", "-o", "kernel.so"]
    subprocess.run([*command, *options, "kernel.cu"], check=True, cwd=folder)
    return tuple(elf.read((folder / "kernel.so").read_bytes())[0].gpu)


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
    *(f"sm_{name}" for name in ("75", "80", "86", "90a", "100f", "120")),
    *(f"compute_{name}" for name in ("86", "90a", "120")),
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
        text = subprocess.check_output(["cuobjdump", option, library], text=True)
        numbers = sorted(set(map(int, re.findall(r"\.sm_(\d+)", text))))
        found += [f"{prefix}{number}" for number in numbers]
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
    command = ["fatbinary", "-64", f"--compress-mode={mode}", "--create=made", image]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert read((tmp_path / "made").read_bytes()) == {"compute_30"}
