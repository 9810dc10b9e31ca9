import datetime as dt
import hashlib
import io
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker, make_file

from tfwright.errors import WheelError
from tfwright.wheel import archive, record
from tfwright.wheel.seal import sealing

EPOCH = 1_540_000_001
UV = shutil.which("uv")


def sealed(path: Path, epoch: int = EPOCH, additions: Mapping[str, bytes] | None = None) -> bytes:
    target = io.BytesIO()
    with archive.open_wheel(path) as wheel:
        sealing.seal(wheel, target, epoch, additions or {})
    return target.getvalue()


def scrambled(path: Path) -> Path:
    """Copy a wheel with all other choices of a zip program.

    These are order, times, modes, compression and directories.
    """
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


def test_the_same_files_give_the_same_bytes_however_they_were_zipped(make_wheel: Maker) -> None:
    path = make_wheel({"b.py": "1", "a/c.py": "2", "a.py": "3"})
    assert sealed(path) == sealed(scrambled(path))


def test_the_bytes_are_these_for_ever(make_wheel: Maker) -> None:
    # On every Python, zlib, system and number of processors. If this changes, so does every
    # published wheel: raise seal's REVISION.
    digest = hashlib.sha256(sealed(make_wheel())).hexdigest()
    assert digest == "37c53b9930c7fea22e212a472bd4fe795e2ea9c6f7905c537b89b0ba5b1f462e"


def test_sealing_a_sealed_wheel_changes_nothing(make_wheel: Maker, tmp_path: Path) -> None:
    once = make_file(tmp_path / "once.whl", sealed(make_wheel()))
    assert sealed(once) == once.read_bytes()


def opened(content: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(content))


def test_record_is_true_and_the_very_last_member(make_wheel: Maker) -> None:
    with opened(sealed(make_wheel({"z.py": "1", "a.py": "2"}))) as wheel:
        assert wheel.namelist()[:2] == ["a.py", "z.py"]
        assert wheel.namelist()[-1] == "small-1.0.dist-info/RECORD"
        assert record.faults(wheel) == []


def test_no_member_has_extra_fields_or_a_data_descriptor(make_wheel: Maker) -> None:
    with opened(sealed(scrambled(make_wheel()))) as wheel:
        for member in wheel.infolist():
            assert (member.extra, member.comment) == (b"", b"")
            assert (member.flag_bits, member.create_system) == (0, 3)


def test_only_whether_a_file_can_be_executed_is_kept_of_its_mode(make_wheel: Maker) -> None:
    path = make_wheel({"program": "#!/bin/sh\n", "small.py": ""})
    copy = path.with_name(f"copy-{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for member in old.infolist():
            header = zipfile.ZipInfo(member.filename)
            header.external_attr = (0o100500 if member.filename == "program" else 0o100600) << 16
            new.writestr(header, old.read(member))
    with opened(sealed(copy)) as wheel:
        modes = {member.filename: member.external_attr >> 16 for member in wheel.infolist()}
    assert (modes["program"], modes["small.py"]) == (0o100755, 0o100644)


def test_the_smaller_of_stored_and_compressed_is_kept(make_wheel: Maker) -> None:
    noise = "".join(random.Random(1).choices("0123456789abcdef", k=5))
    path = make_wheel({"much.txt": "much " * 1000, "noise": noise, "empty": ""})
    with opened(sealed(path)) as wheel:
        kept = {one.filename: (one.compress_type, wheel.read(one)) for one in wheel.infolist()}
    assert kept["much.txt"] == (zipfile.ZIP_DEFLATED, b"much " * 1000)
    assert kept["noise"] == (zipfile.ZIP_STORED, noise.encode())
    assert kept["empty"] == (zipfile.ZIP_STORED, b"")


@pytest.mark.medium
def test_the_number_of_processors_does_not_show(
    make_wheel: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_wheel({f"{number}.py": "x = 1\n" * 10 * number for number in range(200)})
    made = []
    for processors in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda processors=processors: processors)
        made.append(sealed(path))
    assert made[0] == made[1] == made[2]


def test_added_files_are_listed_and_replace_those_of_their_name(
    make_wheel: Maker, tmp_path: Path
) -> None:
    added = {"record.json": b"{}", "sboms/a.json": b"[]"}
    once = make_file(tmp_path / "once.whl", sealed(make_wheel(), additions=added))
    with opened(sealed(once, additions={"record.json": b"new"})) as wheel:
        assert wheel.read("small-1.0.dist-info/record.json") == b"new"
        assert wheel.read("small-1.0.dist-info/sboms/a.json") == b"[]"
        assert record.faults(wheel) == []
        assert wheel.namelist()[-1] == "small-1.0.dist-info/RECORD"


def test_a_file_that_is_damaged_is_reported(make_wheel: Maker) -> None:
    path = make_wheel({"a.py": "ANSWER = 42\n" * 100})
    content = bytearray(path.read_bytes())
    content[40] ^= 0xFF
    path.write_bytes(content)
    with fails(WheelError, path):
        sealed(path)


@pytest.mark.parametrize(
    ("epoch", "moment"),
    [
        (EPOCH + 1, (2018, 10, 20, 1, 46, 42)),
        (0, (1980, 1, 1, 0, 0, 0)),
        (-1, (1980, 1, 1, 0, 0, 0)),
        (int(dt.datetime(2200, 1, 1, tzinfo=dt.UTC).timestamp()), (2107, 12, 31, 23, 59, 58)),
        (10**18, (2107, 12, 31, 23, 59, 58)),
    ],
)
def test_times_that_zip_cannot_say_are_clipped(
    make_wheel: Maker, epoch: int, moment: tuple[int, ...]
) -> None:
    with opened(sealed(make_wheel(), epoch)) as wheel:
        assert {member.date_time for member in wheel.infolist()} == {moment}


@pytest.mark.slow
@pytest.mark.parametrize(
    "installer",
    [
        pytest.param([sys.executable, "-m", "pip", "install", "--no-index", "--target"], id="pip"),
        pytest.param(
            [UV, "pip", "install", "--no-index", "--target"],
            id="uv",
            marks=pytest.mark.skipif(UV is None, reason="uv is not on PATH"),
        ),
    ],
)
def test_a_sealed_wheel_installs(installer: list[str], make_wheel: Maker, tmp_path: Path) -> None:
    path = make_wheel()
    path.write_bytes(sealed(path))
    subprocess.run([*installer, str(tmp_path / "installed"), str(path)], check=True)
    assert (tmp_path / "installed" / "small.py").read_text("utf-8") == "ANSWER = 42\n"
