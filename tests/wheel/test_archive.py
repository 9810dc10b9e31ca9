import copy
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker

from tfwright.errors import RecipeError, WheelError
from tfwright.wheel import archive


def member(name: str, kind: int = stat.S_IFREG) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (kind | 0o644) << 16
    return info


def zipped(path: Path, *members: zipfile.ZipInfo) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for info in members:
            wheel.writestr(info, "content")
    return path


@pytest.mark.parametrize("name", ["", ".", "./"])
def test_a_member_without_a_name_is_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "bad.whl", member("named"))
    nameless = zipfile.ZipInfo("named")
    nameless.filename = name
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.filelist.append(nameless)
        assert archive.fault(wheel) == f"{name!r} is not a name for a file"
        wheel.filelist.clear()


def without_letters(content: bytes) -> bytes:
    return content.replace("\u00fc".encode(), b"\xff\xff")


def starting_before_the_file(content: bytes) -> bytes:
    made = bytearray(content)
    place = made.rindex(b"PK\5\6") + 16
    (start,) = struct.unpack_from("<I", made, place)
    struct.pack_into("<I", made, place, start + 10)
    return bytes(made)


@pytest.mark.parametrize(
    "change",
    [without_letters, starting_before_the_file, lambda _: b"<html>not found</html>"],
    ids=["a name that is no text", "members before the file", "no zip archive"],
)
def test_what_no_zip_program_writes_is_the_wheels_fault(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = zipped(tmp_path / "bad.whl", member("\u00fc.py"))
    path.write_bytes(change(path.read_bytes()))
    with fails(WheelError, path), archive.open_wheel(path):
        pass


def test_a_file_that_is_not_there_is_not_called_a_broken_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), archive.open_wheel(tmp_path / "none.whl"):
        pass


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "named"),
    [
        ([member("link", stat.S_IFLNK)], "link"),
        ([member("one.py"), member("one.py")], "one.py"),
        *([[member(name)], repr(name)] for name in ("../evil.py", "a/../../evil.py")),
        *(
            [[member(name)], repr(name)]
            for name in ("/etc/passwd", "..\\evil.py", "line\nbreak.py")
        ),
    ],
)
def test_a_link_two_of_a_name_and_what_would_leave_the_directory_are_refused(
    tmp_path: Path, members: list[zipfile.ZipInfo], named: str
) -> None:
    path = zipped(tmp_path / "bad.whl", *members)
    with fails(WheelError, path, named), archive.open_wheel(path):
        pass


def test_a_wheel_that_unpacks_to_too_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST", 10)
    path = zipped(tmp_path / "bad.whl", member("one"), member("two"))
    with fails(WheelError, "14 bytes"), archive.open_wheel(path):
        pass


def test_damage_that_shows_while_reading_is_told_as_the_wheels_fault(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bad.whl", member("one"))
    path.write_bytes(path.read_bytes().replace(b"content", b"CONTENT"))
    with fails(WheelError, path), archive.open_wheel(path) as wheel:
        wheel.read("one")


def test_a_good_wheel_is_opened(make_wheel: Maker) -> None:
    with archive.open_wheel(make_wheel()) as wheel:
        assert archive.metadata_directory(wheel) == "small-1.0.dist-info"
        assert len(archive.files(wheel)) == 4


def test_two_metadata_directories_are_refused(make_wheel: Maker) -> None:
    path = make_wheel({"other-1.0.dist-info/METADATA": ""})
    with archive.open_wheel(path) as wheel, fails(WheelError, "2 .dist-info"):
        archive.metadata_directory(wheel)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_refused_however_it_is_packed(tmp_path: Path, method: int) -> None:
    path, info = tmp_path / "a.whl", member("a/b.txt")
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(info, b"content " * 99, compress_type=method)
    content = bytearray(path.read_bytes())
    packed = content.index(b"a/b.txt") + len("a/b.txt")
    content[packed + 9 : packed + 30] = b"\xff" * 21
    path.write_bytes(content)
    with fails(WheelError, path), archive.open_wheel(path) as wheel:
        wheel.read("a/b.txt")


def test_a_package_of_pip_is_to_be_downloaded_first() -> None:
    with fails(RecipeError, "pip download --no-deps 'tensorflow[and-cuda]==2.20.0'"):
        archive.check_exists(Path("tensorflow[and-cuda]==2.20.0"))


def test_a_packed_member_is_appended_as_zipfile_writes_it(tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    with zipfile.ZipFile(first, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("a", "folder/größe.txt"):
            made.writestr(zipfile.ZipInfo(name), name * 99, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(first) as given, zipfile.ZipFile(second, "w") as made:
        for packed in given.infolist():
            archive.append_packed(made, copy.copy(packed), archive.packed_bytes(given, packed))
    assert second.read_bytes() == first.read_bytes()


@pytest.mark.slow
def test_a_member_of_more_than_4_gib_is_read(tmp_path: Path) -> None:
    size, block = (4 << 30) + 5, bytes(1 << 20)
    large = zipfile.ZipInfo("large")
    large.CRC = 0
    for _ in range(size >> 20):
        large.CRC = zlib.crc32(block, large.CRC)
    large.CRC = zlib.crc32(bytes(5), large.CRC)
    pack = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = b"".join(
        [*(pack.compress(block) for _ in range(size >> 20)), pack.compress(bytes(5)), pack.flush()]
    )
    large.compress_type, large.compress_size, large.file_size = 8, len(packed), size
    with zipfile.ZipFile(tmp_path / "large.zip", "w") as made:
        archive.append_packed(made, large, [packed])
    with zipfile.ZipFile(tmp_path / "large.zip") as given:
        assert given.getinfo("large").file_size == size
        assert given.testzip() is None
