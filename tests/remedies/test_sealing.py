"""What is said of a wheel that is made or read, done to the letter."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import Maker
from tests.nightly.wheels import write_wheel
from tests.remedies.following import failing
from tests.wheel import test_relinking as machs

from tfwright.errors import WheelError
from tfwright.tools import files
from tfwright.wheel import archive, record, relinking
from tfwright.wheel.relinking import WantedCommands
from tfwright.wheel.seal import build_record, platform_tag, sealing

Act = Callable[[zipfile.ZipFile], object]
INFO = "small-1.0.dist-info"


def acting(path: Path, act: Act) -> object:
    with archive.open_wheel(path) as wheel:
        return act(wheel)


def sealed(path: Path, to: Path) -> None:
    """Seal a wheel as the stage does."""
    with archive.open_wheel(path) as wheel, to.open("wb") as stream:
        sealing.seal(wheel, stream, 1, {})


def rewritten(path: Path, name: str, content: str | bytes) -> Path:
    """Give a wheel another file, in the place of one that it has."""
    with zipfile.ZipFile(path) as wheel:
        members = {each: wheel.read(each) for each in wheel.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, before in {**members, name: content}.items():
            wheel.writestr(each, before)
    return path


@pytest.mark.parametrize(
    ("name", "content", "act", "do"),
    [
        ("other-1.0.dist-info/WHEEL", "", archive.metadata_directory, "Make the wheel again: pip"),
        (f"{INFO}/RECORD", b"\xff\xfe", record.read, "Make the wheel again: pip"),
        (f"{INFO}/RECORD", "a" * (1 << 18), record.read, "Do not trust this wheel"),
        (
            f"{INFO}/METADATA",
            "A: b\n" * 100_000,
            lambda wheel: archive.headers(wheel, "METADATA"),
            "Do not trust this wheel",
        ),
        (
            f"{INFO}/METADATA",
            "A: " + "b" * (20 << 20),
            lambda wheel: archive.headers(wheel, "METADATA"),
            "Do not trust this wheel",
        ),
        (
            f"{INFO}/{build_record.NAME}",
            " " * (build_record.LARGEST + 1),
            build_record.read,
            "Do not trust this wheel",
        ),
        (
            f"{INFO}/{build_record.NAME}",
            '{"new": 1}',
            build_record.read,
            "Use the version of tfwright that made the wheel, or a newer one",
        ),
    ],
)
def test_a_wheel_that_cannot_be_read_gives_way_to_one_that_is_made_as_it_should(
    make_sealed: Maker, name: str, content: str | bytes, act: Act, do: str
) -> None:
    right = make_sealed(folder="right")
    wrong = rewritten(make_sealed(), name, content)
    failing(lambda: acting(wrong, act), WheelError, do)
    assert acting(right, act)


def test_what_packs_a_wheel_with_a_false_record_is_corrected(
    make_wheel: Maker, tmp_path: Path
) -> None:
    right = make_wheel(folder="right")
    wrong = rewritten(make_wheel(), "more.py", "x = 1\n")
    failing(lambda: sealed(wrong, tmp_path / "a"), WheelError, "Correct")
    sealed(right, tmp_path / "b")
    assert files.sha256(tmp_path / "b")


# Libraries of macOS


def test_a_library_that_is_not_sound_is_made_in_another_way(tmp_path: Path) -> None:
    wrong = machs.wheel(tmp_path, machs.SMALL[:60])
    failing(lambda: machs.relinked(wrong), WheelError, "library")
    assert machs.relinked(machs.wheel(tmp_path))


CUDART = "@rpath/libcudart.9.2.dylib"


@pytest.mark.parametrize("way", ["headerpad", "shorter"])
def test_room_is_linked_into_a_library_or_shorter_paths_are_given(way: str) -> None:
    # What the linker leaves with that flag: room up to the code.
    rooms = {False: 0xF0, True: 0x400}

    def rewrite(wanted: WantedCommands, *, padded: bool = False) -> None:
        code = rooms[padded]
        before = machs.library([machs.path(0xC, CUDART)], code=code)
        relinking.rewrite(bytearray(before), wanted, "a.so")

    fault = failing(lambda: rewrite(machs.WANTED), WheelError)
    if way == "shorter":
        assert "give shorter paths in [package]" in fault.remedy
        rewrite(WantedCommands({CUDART: "/cuda/libcudart.dylib"}))
    else:
        assert '"--linkopt=-Wl,-headerpad_max_install_names"' in fault.remedy
        rewrite(machs.WANTED, padded=True)


def test_a_library_is_built_without_a_certificate() -> None:
    def rewrite(signature: bytes) -> object:
        before = machs.library([machs.path(0xC, CUDART)], signature=signature)
        return machs.rewritten(before)

    signed = machs.adhoc(certificate=b"who signed")
    failing(lambda: rewrite(signed), WheelError, "unsigned")
    assert rewrite(b"")
    assert rewrite(machs.adhoc())


# The platform of the tag


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    """Return a wheel with a library of this Python."""
    import _ctypes

    library = Path(_ctypes.__file__).read_bytes()
    tag = "cp311-cp311-linux_x86_64"
    return write_wheel(tmp_path / "wheels", tag=tag, files={"a/a.so": library})


@pytest.mark.parametrize(
    ("wanted", "pattern"),
    [
        ("manylinux_9_99_x86_64", r"such as (manylinux\w+)"),
        ("manylinux_2_5_x86_64", r"prove (\w+)$"),
    ],
)
def test_the_platform_is_corrected_to_what_is_named(linux: Path, wanted: str, pattern: str) -> None:
    pytest.importorskip("auditwheel")
    fault = failing(lambda: platform_tag.check_platform(linux, wanted), WheelError)
    if "2_5" in wanted:
        assert "correct [package] platform" in fault.remedy
    named = re.search(pattern, f"{fault.what}\n{fault.remedy}", re.MULTILINE)
    assert named
    said = ""
    try:
        platform_tag.check_platform(linux, named[1])
    except WheelError as other:
        said = other.what
    # The example is one that auditwheel knows; a library may need more.
    assert not said or ("2_5" not in wanted and "cannot judge" not in said)


def test_a_wheel_without_libraries_has_no_platform(make_wheel: Maker) -> None:
    pytest.importorskip("auditwheel")

    def seal(platform: str) -> None:
        if platform:
            platform_tag.check_platform(make_wheel(), platform)

    failing(lambda: seal("manylinux_2_31_x86_64"), WheelError, "package.platform")
    seal("")
