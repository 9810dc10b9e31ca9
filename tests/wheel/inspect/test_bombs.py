"""Small wheels made to keep their reader busy, fill its memory, or write to its terminal."""

import resource
import struct
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.failing import fails
from tests.libraries import X86_64, macho, universal
from tests.making import Read

from tfwright.errors import WheelError
from tfwright.terminal.answer import Answer
from tfwright.tools.process import capacity
from tfwright.wheel import archive, page
from tfwright.wheel.inspect import inspection
from tfwright.wheel.inspect.inspection import Inspection

SECONDS = 3.0
"""Of processor time that the report about any of these wheels may take."""
INFO = "small-1.0.dist-info"
NAME = "small-1.0-cp36-cp36m-manylinux2010_x86_64.whl"
USUAL = {
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nTag: cp36-cp36m-manylinux2010_x86_64\n",
    f"{INFO}/RECORD": b"",
}


def wheel(folder: Path, files: Mapping[str, bytes]) -> Path:
    path = folder / NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in (USUAL | dict(files)).items():
            made.writestr(name, content)
    return path


def faults(path: Path) -> str:
    begun = time.process_time()
    report = inspection.inspect(path)
    assert time.process_time() - begun < SECONDS
    return "\n".join(report.faults)


def slices_over_the_same_commands() -> bytes:
    part = load_commands(100_000)
    return universal(*[(X86_64, 4096, len(part))] * 64).ljust(4096, b"\0") + part


def load_commands(count: int) -> bytes:
    return macho(X86_64, *[struct.pack("<2I", 0x26, 8)] * count)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.dylib", slices_over_the_same_commands, "share the bytes at"),
        ("a.dylib", lambda: load_commands(1_000_000), "1,000,000 load commands"),
        (f"{INFO}/RECORD", lambda: b"a\n" * 30_000_000, "bytes, more than the"),
        (f"{INFO}/RECORD", lambda: b'"' + b"a" * 200_000, "RECORD"),
        (f"{INFO}/RECORD", lambda: b"a\rb,sha256=x\n", "RECORD cannot be read"),
        (f"{INFO}/METADATA", lambda: b"A: b\n" * 10_000_000, "bytes, more than the"),
        (f"{INFO}/METADATA", lambda: b"A: b\n" * 500_000, "lines of headers"),
        (f"{INFO}/WHEEL", lambda: b"Tag: a-b-c\n" * 3_000_000, "bytes, more than the"),
        (f"{INFO}/WHEEL", lambda: b"Tag: " + b"-".join([b".".join([b"a"] * 9_999)] * 3), "WHEEL"),
        ("x/platform/build_info.py", lambda: b"a" + b".a" * 3_000_000, "bytes, more than the"),
    ],
)
@pytest.mark.medium
def test_a_small_wheel_does_not_keep_its_reader_busy(
    tmp_path: Path, name: str, content: Callable[[], bytes], message: str
) -> None:
    assert message in faults(wheel(tmp_path, {name: content()}))


@pytest.mark.parametrize(
    "text", [b"a = 0x" + b"f" * 50_000, b"a = " + b"(" * 30_000, b"a = 1" + b"0" * 20_000, b"\0"]
)
def test_a_build_info_that_python_cannot_say_is_left_out(tmp_path: Path, text: bytes) -> None:
    path = wheel(tmp_path, {"x/platform/build_info.py": text})
    assert inspection.inspect(path).stated == ()


@pytest.mark.medium
def test_many_libraries_with_the_same_fault_are_one_fault(tmp_path: Path) -> None:
    path = wheel(tmp_path, {f"small/a{number}.so": b"no library" for number in range(2_000)})
    unreadable = [line for line in faults(path).splitlines() if "cannot be read" in line]
    assert len(unreadable) == 1
    assert "(and 1,999 more)" in unreadable[0]


def test_an_error_names_the_first_faults_and_counts_the_others() -> None:
    report = Inspection("small.whl", 1, faults=tuple(f"fault {number}" for number in range(500)))
    with fails(WheelError) as caught:
        inspection.check_sound(report)
    assert len(caught.value.evidence.lines) == inspection.SHOWN + 1
    assert caught.value.evidence.lines[-1] == "and 480 more"


def test_a_member_that_unpacks_to_a_thousand_times_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "ALWAYS", 1 << 20)
    assert "it would unpack to" in faults(wheel(tmp_path, {"small/a.so": bytes(1 << 22)}))


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"small/a.py": b"a" * 1000, "small/b.py": b"b" * 1000})
    with zipfile.ZipFile(path) as whole:
        first, second = (whole.getinfo(f"small/{name}.py").header_offset for name in "ab")
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\1\2", content.index(b"PK\1\2") + 4)
    places = [at for at in range(entry, len(content) - 46) if content[at : at + 4] == b"PK\1\2"]
    for place in places:
        if struct.unpack_from("<I", content, place + 42)[0] == second:
            struct.pack_into("<I", content, place + 42, first)
    path.write_bytes(content)
    assert "shares bytes with" in faults(path)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on Linux's terms")
def test_a_library_larger_than_the_memory_is_read_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SMALL", 0)
    monkeypatch.setattr(capacity, "available_memory", lambda: 0)
    path = wheel(tmp_path, {"small/a.so": b"\x7fELF" + bytes(1000)})
    assert "small/a.so cannot be read" in faults(path)


def test_nothing_of_a_wheel_reaches_the_terminal_as_it_is(tmp_path: Path, out: Read) -> None:
    bell = b"\x1b]52;c;cm0=\x07\x1b[2J\xe2\x80\xae"
    files = {
        f"{INFO}/METADATA": b"Name: small" + bell + b"\nVersion: 1.0\nRequires-Python: " + bell,
        "x/platform/build_info.py": b"cuda_version = '" + bell + b"'\n",
    }
    report = inspection.inspect(wheel(tmp_path, files))
    for as_json in (False, True):
        Answer(report, page.show_report).show(as_json=as_json)
    with fails(WheelError) as caught:
        inspection.check_sound(report)
    printed = out() + caught.value.what
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "\u202e" not in printed


@pytest.mark.medium
def test_memory_stays_bounded(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faults(wheel(tmp_path, {f"{INFO}/RECORD": b"a\n" * 30_000_000}))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400 * 1024, "in KiB, most of it the test's own 60 MB"
