import datetime as dt
import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.wheel import archive, record, sealing

EPOCH = 1_540_000_001
UV = shutil.which("uv")


def sealed(path: Path, epoch: int = EPOCH) -> bytes:
    target = io.BytesIO()
    with archive.opened(path) as wheel:
        sealing.seal(wheel, target, epoch)
    return target.getvalue()


def scrambled(path: Path) -> Path:
    """Copy a wheel with everything else that a zip program could choose: order, times, modes, compression, directories."""
    copy = path.with_name(f"scrambled-{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        new.mkdir("a directory")
        for number, member in enumerate(reversed(old.infolist())):
            header = zipfile.ZipInfo(member.filename, (1999, 1, 1 + number, 0, 0, 0))
            header.external_attr = 0o100600 << 16
            header.compress_type = (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2)[number % 2]
            header.comment, header.extra = b"hello", b"\x99\x99\x00\x00"
            new.writestr(header, old.read(member))
    return copy


def test_the_same_files_give_the_same_bytes_however_they_were_zipped(make_wheel: Callable[..., Path]) -> None:
    path = make_wheel({"b.py": "1", "a/c.py": "2", "a.py": "3"})
    assert sealed(path) == sealed(scrambled(path))


def test_the_bytes_are_these_for_ever(make_wheel: Callable[..., Path]) -> None:
    # On every Python, zlib and system. If this changes, so does every published wheel: raise seal's REVISION.
    assert hashlib.sha256(sealed(make_wheel())).hexdigest() == "df2b7ab22e24d9a2db40e8b7929114ee89a8c40258a3aba24e7383f6ccecc12e"


def test_sealing_a_sealed_wheel_changes_nothing(make_wheel: Callable[..., Path], tmp_path: Path) -> None:
    once = tmp_path / "once.whl"
    once.write_bytes(sealed(make_wheel()))
    assert sealed(once) == once.read_bytes()


def test_record_is_true_and_the_very_last_member(make_wheel: Callable[..., Path]) -> None:
    with zipfile.ZipFile(io.BytesIO(sealed(make_wheel({"z.py": "1", "a.py": "2"})))) as wheel:
        assert wheel.namelist()[:2] == ["a.py", "z.py"]
        assert wheel.namelist()[-1] == "small-1.0.dist-info/RECORD"
        assert record.faults(wheel) == []


def test_no_member_has_extra_fields_or_a_data_descriptor(make_wheel: Callable[..., Path]) -> None:
    with zipfile.ZipFile(io.BytesIO(sealed(scrambled(make_wheel())))) as wheel:
        assert {(one.extra, one.comment, one.flag_bits & 8, one.create_system, one.compress_type) for one in wheel.infolist()} == {(b"", b"", 0, 3, 0)}


def test_only_whether_a_file_can_be_executed_is_kept_of_its_mode(make_wheel: Callable[..., Path]) -> None:
    path = make_wheel()
    with zipfile.ZipFile(path, "a") as wheel:
        header = zipfile.ZipInfo("program")
        header.external_attr = 0o100500 << 16
        wheel.writestr(header, "#!/bin/sh\n")
    with zipfile.ZipFile(io.BytesIO(sealed(path))) as wheel:
        modes = {member.filename: member.external_attr >> 16 for member in wheel.infolist()}
    assert (modes["program"], modes["small.py"]) == (0o100755, 0o100644)


@pytest.mark.parametrize(
    ("epoch", "moment"),
    [
        (EPOCH, (2018, 10, 20, 1, 46, 40)),
        (0, (1980, 1, 1, 0, 0, 0)),
        (-1, (1980, 1, 1, 0, 0, 0)),
        (int(dt.datetime(2200, 1, 1, tzinfo=dt.UTC).timestamp()), (2107, 12, 31, 23, 59, 58)),
        (10**18, (2107, 12, 31, 23, 59, 58)),
    ],
)
def test_times_that_zip_cannot_say_are_clipped(epoch: int, moment: sealing.Moment) -> None:
    assert sealing.moment(epoch) == moment


@pytest.mark.slow
@pytest.mark.parametrize(
    "installer",
    [
        pytest.param([sys.executable, "-m", "pip", "install", "--no-index", "--target"], id="pip"),
        pytest.param([UV, "pip", "install", "--no-index", "--target"], id="uv", marks=pytest.mark.skipif(UV is None, reason="uv is not on PATH")),
    ],
)
def test_a_sealed_wheel_installs(installer: list[str], make_wheel: Callable[..., Path], tmp_path: Path) -> None:
    path = make_wheel()
    path.write_bytes(sealed(path))
    subprocess.run([*installer, str(tmp_path / "installed"), str(path)], check=True)
    assert (tmp_path / "installed" / "small.py").read_text("utf-8") == "ANSWER = 42\n"
