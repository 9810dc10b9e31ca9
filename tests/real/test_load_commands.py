"""Load commands of official macOS wheels, rewritten and read back by others.

Wanted from the environment: TFWRIGHT_WHEELS, a folder of wheels.
"""

import hashlib
import os
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from macholib.MachO import MachO

from tfwright.wheel import archive, record, relinking
from tfwright.wheel.binary import macho
from tfwright.wheel.relinking import WantedCommands

pytestmark = pytest.mark.real

WHEELS = sorted(Path(os.environ.get("TFWRIGHT_WHEELS", "/nowhere")).glob("*macosx*.whl"))
OBJDUMP = which("llvm-objdump")
FOLDER = "/usr/local/cuda/lib"
LARGEST = 256 * 1024**2
"""Bytes of a library that macholib is given: it reads all of it into memory."""


def wanted(wheel: zipfile.ZipFile) -> WantedCommands:
    """Return absolute names for all that the wheel's libraries look for below @rpath."""
    names = {
        name
        for member in libraries(wheel)
        for part in macho.read(member)
        for name in part.needed
        if name.startswith("@rpath/lib")
    }
    return WantedCommands(
        {name: f"/opt/tensorflow/{name.removeprefix('@rpath/')}" for name in names}, (FOLDER,)
    )


def libraries(wheel: zipfile.ZipFile) -> Iterator[bytes]:
    for member in archive.files(wheel):
        content = wheel.read(member)
        if content[:4] in macho.MAGICS:
            yield content


def untrue_pages(path: Path) -> list[int]:
    """Return the pages whose digest in the ad hoc signature is not theirs; written apart from what is tested."""
    content = path.read_bytes()
    for part in macho.slices(content):
        for kind, body in part.commands:
            if kind == macho.CODE_SIGNATURE:
                blob = content[struct.unpack_from("<I", body, 8)[0] :]
                directory = blob[struct.unpack_from(">I", blob, 16)[0] :]
                first, count, limit = (
                    struct.unpack_from(">I", directory, place)[0] for place in (16, 28, 32)
                )
                pages = [
                    content[start : min(start + 4096, limit)] for start in range(0, limit, 4096)
                ]
                return [
                    number
                    for number in range(count)
                    if hashlib.sha256(pages[number]).digest()
                    != directory[first + 32 * number :][:32]
                ]
    return []


@pytest.mark.parametrize(
    "path",
    WHEELS
    or [
        pytest.param(
            None, marks=pytest.mark.skip(reason="TFWRIGHT_WHEELS names no folder with macOS wheels")
        )
    ],
    ids=str,
)
def test_the_libraries_of_an_official_wheel_are_rewritten_as_other_readers_see_it(
    path: Path, tmp_path: Path
) -> None:
    target, read = tmp_path / path.name, 0
    with archive.open_wheel(path) as before, target.open("w+b") as stream:
        names = wanted(before)
        assert relinking.relink(before, stream, names)
    with archive.open_wheel(path) as before, archive.open_wheel(target) as after:
        assert record.faults(after) == record.faults(before)
        for member in archive.files(after):
            content = after.open(member).read(4)
            if content in macho.MAGICS and member.file_size <= LARGEST:
                read += 1
                check(
                    Path(before.extract(member.filename, tmp_path / "before")),
                    Path(after.extract(member, tmp_path / "after")),
                    names,
                )
    assert read


def layout(path: Path) -> list[macho.Slice]:
    return macho.slices(path.read_bytes())


def check(before: Path, after: Path, names: WantedCommands) -> None:
    """Compare what macholib and llvm-objdump say of a library before and after."""
    for old, new in zip(MachO(str(before)).headers, MachO(str(after)).headers, strict=True):
        told = [name for _, _, name in old.walkRelocatables()]
        assert [name for _, _, name in new.walkRelocatables()] == [
            names.libraries.get(name, name) for name in told
        ]
    if OBJDUMP:
        said = subprocess.run(
            [OBJDUMP, "--macho", "--dylibs-used", str(after)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert not [name for name in names.libraries if f"\t{name} " in said]
    assert untrue_pages(after) == untrue_pages(before) == []
    for old_part, new_part in zip(layout(before), layout(after), strict=True):
        assert list(old_part.sections()) == list(new_part.sections())
        start = (
            max(
                sum(len(command.content) for command in part.commands)
                for part in (old_part, new_part)
            )
            + macho.LENGTH
        )
        signature = next(
            (
                struct.unpack_from("<I", body, 8)[0]
                for kind, body in new_part.commands
                if kind == macho.CODE_SIGNATURE
            ),
            new_part.size,
        )
        assert before.read_bytes()[start:signature] == after.read_bytes()[start:signature]
