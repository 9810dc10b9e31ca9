import io
import shutil
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

from tfwright.wheel.seal import zip_writing
from tfwright.wheel.seal.zip_writing import ZipMember, ZipWriter

WHEN = (2018, 10, 20, 1, 46, 40)
UNZIP = shutil.which("unzip")


def member(name: str, content: bytes, size: int | None = None) -> ZipMember:
    return ZipMember(
        name,
        zipfile.ZIP_STORED,
        zlib.crc32(content),
        len(content),
        len(content) if size is None else size,
        0o100644,
    )


def written(contents: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    writer = ZipWriter(target, WHEN)
    for name, content in contents.items():
        writer.add(member(name, content), [content])
    writer.finish()
    return target.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {member.filename: archive.read(member) for member in archive.infolist()}


def test_an_archive_is_read_as_it_was_written() -> None:
    contents = {"a": b"1", "folder/b": b"", "größe.txt": b"3"}
    assert read(written(contents)) == contents


def test_an_archive_is_what_zipfile_writes() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        header = zipfile.ZipInfo("a", WHEN)
        header.create_system, header.external_attr = 3, 0o100644 << 16
        archive.writestr(header, b"1")
    assert written({"a": b"1"}) == target.getvalue()


def test_an_empty_archive_is_one() -> None:
    assert read(written({})) == {}


@pytest.mark.medium
def test_more_than_65534_members_are_counted_in_64_bits() -> None:
    made = written({str(number): b"" for number in range(66_000)})
    assert b"PK\6\6" in made
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.namelist() == [str(number) for number in range(66_000)]


@pytest.mark.parametrize("limit", [1, 3, 40, 67])
def test_numbers_that_do_not_fit_go_into_64_bit_fields(
    limit: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Readers look for the field where a number is all ones; a reader with the smaller limit stands
    # in for 4 GiB.
    made = []
    for full in (0xFFFFFFFF, limit):
        monkeypatch.setattr(zip_writing, "LARGEST_PLAIN", full)
        made.append(written({"a": b"12", "b": b"345"}))
    assert len(made[1]) > len(made[0])
    assert read(made[1]) == read(made[0])
    if UNZIP:
        (tmp_path / "wide.zip").write_bytes(made[1])
        subprocess.run([UNZIP, "-tqq", str(tmp_path / "wide.zip")], check=True)


@pytest.mark.slow
def test_a_member_of_more_than_4_gib_is_read(tmp_path: Path) -> None:
    size, block = (4 << 30) + 5, bytes(1 << 20)
    crc = 0
    for _ in range(size >> 20):
        crc = zlib.crc32(block, crc)
    pack = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = b"".join(
        [*(pack.compress(block) for _ in range(size >> 20)), pack.compress(bytes(5)), pack.flush()]
    )
    path = tmp_path / "large.zip"
    with path.open("wb") as stream:
        writer = ZipWriter(stream, WHEN)
        writer.add(
            ZipMember(
                "large",
                zipfile.ZIP_DEFLATED,
                zlib.crc32(bytes(5), crc),
                len(packed),
                size,
                0o100644,
            ),
            [packed],
        )
        writer.finish()
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("large").file_size == size
        assert archive.testzip() is None
