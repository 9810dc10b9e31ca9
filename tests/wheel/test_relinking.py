import io
import struct
import zipfile
from pathlib import Path

import pytest

from tfwright.errors import WheelError
from tfwright.wheel import archive, record, relinking
from tfwright.wheel.binary import macho
from tfwright.wheel.binary.load_commands import WantedCommands

NAME = "tensorflow/_pywrap.so"
WANTED = WantedCommands({"@rpath/libcudart.9.2.dylib": "/usr/local/cuda/lib/libcudart.9.2.dylib"})
LIBRARY = (
    b"\xcf\xfa\xed\xfe"
    + struct.pack("<6I4x", 0x01000007, 0, 6, 1, 56, 0)
    + (struct.pack("<6I", 0xC, 56, 24, 0, 0, 0) + b"@rpath/libcudart.9.2.dylib").ljust(56, b"\0")
).ljust(512, b"\0")


def wheel(folder: Path, content: bytes = LIBRARY, digest: str = "") -> Path:
    """Write a wheel with one library, listed truly unless a `digest` is given."""
    path = folder / "small-1.0-cp36-cp36m-macosx_10_13_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(NAME, content)
        made.writestr("small-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        lines = [record.describe(made, member) for member in made.infolist()]
        if digest:
            lines[0] = lines[0]._replace(digest=digest)
        made.writestr(
            "small-1.0.dist-info/RECORD",
            record.render([*lines, record.RecordEntry("small-1.0.dist-info/RECORD", "", "")]),
        )
    return path


def relinked(path: Path) -> tuple[zipfile.ZipFile, dict[str, int]]:
    target = io.BytesIO()
    with archive.opened(path) as source:
        changes = relinking.relink(source, target, WANTED)
    return zipfile.ZipFile(target), dict(changes)


def test_the_libraries_of_a_wheel_are_rewritten_and_its_record_is_true(tmp_path: Path) -> None:
    made, changes = relinked(wheel(tmp_path))
    assert macho.read(made.read(NAME))[0].needed == ("/usr/local/cuda/lib/libcudart.9.2.dylib",)
    assert changes == {
        "@rpath/libcudart.9.2.dylib is now /usr/local/cuda/lib/libcudart.9.2.dylib": 1
    }
    assert record.faults(made) == []


def test_what_is_no_macos_library_stays(tmp_path: Path) -> None:
    made, changes = relinked(wheel(tmp_path, b"\x7fELF @rpath/libcudart.9.2.dylib"))
    assert (made.read(NAME), changes) == (b"\x7fELF @rpath/libcudart.9.2.dylib", {})


def test_a_record_that_was_false_before_is_not_made_true(tmp_path: Path) -> None:
    made, changes = relinked(wheel(tmp_path, digest="sha256=AAAA"))
    assert record.faults(made) == [f"{NAME} is not as listed"]
    assert changes


def test_a_damaged_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(WheelError, match=f"{NAME} cannot be relinked"):
        relinked(wheel(tmp_path, LIBRARY[:60]))
