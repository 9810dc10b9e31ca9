import shutil
import zipfile
from pathlib import Path

import pytest
from tests.failing import fails
from tests.libraries import compile_library

from tfwright.errors import WheelError
from tfwright.wheel.seal import platform_tag

pytest.importorskip("auditwheel")
SOURCE = """
#include <cmath>
#include <cstring>
extern "C" double work(char *to, const char *from, size_t size) {
    memcpy(to, from, size);
    return std::exp(to[0]);
}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel with a library that needs symbols of glibc 2.14 and 2.29."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    room = tmp_path_factory.mktemp("wheel")
    library = compile_library(room / "work.so", SOURCE, "-O1", "-fno-builtin", compiler="c++")
    path = room / "small-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(library, "small/work.so")
        tagged = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n"
        archive.writestr("small-1.0.dist-info/WHEEL", tagged)
        archive.writestr("small-1.0.dist-info/METADATA", "Name: small\nVersion: 1.0\n")
        # auditwheel looks at what RECORD lists.
        archive.writestr("small-1.0.dist-info/RECORD", "small/work.so,,\n")
    return path


@pytest.mark.medium
def test_a_platform_whose_symbols_suffice_is_proved(wheel: Path) -> None:
    platform_tag.check_platform(wheel, "manylinux_2_31_x86_64")


@pytest.mark.medium
def test_an_older_platform_is_refused_with_the_symbols_in_the_way(wheel: Path) -> None:
    with fails(WheelError, "manylinux_2_5_x86_64", "libc.so.6 GLIBC_2.14"):
        platform_tag.check_platform(wheel, "manylinux_2_5_x86_64")


@pytest.mark.medium
def test_libraries_in_purelib_are_judged_as_any_others(wheel: Path, tmp_path: Path) -> None:
    moved, pure = tmp_path / wheel.name, "small-1.0.data/purelib/small/"
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(moved, "w") as made:
        for name in given.namelist():
            content = given.read(name)
            if name.endswith("RECORD"):
                content = content.replace(b"small/work.so", f"{pure}work.so".encode())
            made.writestr(name.replace("small/", pure), content)
    platform_tag.check_platform(moved, "manylinux_2_31_x86_64")
    with fails(WheelError, "manylinux_2_5_x86_64", "libc.so.6 GLIBC_2.14"):
        platform_tag.check_platform(moved, "manylinux_2_5_x86_64")


def test_name_and_tags_change_together(wheel: Path) -> None:
    platform = "manylinux_2_31_x86_64"
    assert platform_tag.wheel_name(wheel.name, platform) == f"small-1.0-cp311-cp311-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        text = platform_tag.with_platform_tags(archive, platform).decode()
    assert f"Tag: cp311-cp311-{platform}\n" in text
    assert "linux_x86_64\n" not in text.replace(platform, "")
