import hashlib
import io
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.failing import fails
from tests.libraries import ARM64, X86_64, load_command, universal
from tests.libraries import macho as thin

from tfwright.errors import WheelError
from tfwright.wheel import archive, record, relinking
from tfwright.wheel.binary import macho
from tfwright.wheel.relinking import WantedCommands

PAGE, CODE = 0x1000, 0x800
CUDART = "/usr/local/cuda/lib/libcudart.9.2.dylib"
WANTED = WantedCommands({"@rpath/libcudart.9.2.dylib": CUDART})


def path(kind: int, text: str) -> bytes:
    """Return a load command that names a library, with a version beside the name."""
    return load_command(kind, text, 2, 0x10203, 0x10000)


NEEDING = path(0xC, "@rpath/libcudart.9.2.dylib")


def library(
    commands: Sequence[bytes], *, machine: int = X86_64, code: int = CODE, signature: bytes = b""
) -> bytes:
    """Return a library of two pages with its code at `code`, and the signature behind them."""
    segment, section = "<2I16s4Q4I", "<16s16s2Q8I"
    size = struct.calcsize(segment) + struct.calcsize(section)
    text = struct.pack(segment, 0x19, size, b"__TEXT", 0, 2 * PAGE, 0, 2 * PAGE, 5, 5, 1, 0)
    text += struct.pack(section, b"__text", b"__TEXT", code, 2 * PAGE - code, code, *[0] * 7)
    signed = [struct.pack("<4I", 0x1D, 16, 2 * PAGE, len(signature))] if signature else []
    start = thin(machine, text, *commands, *signed).ljust(code, b"\0")
    return start.ljust(2 * PAGE, b"\x90") + signature


def adhoc(digests: Sequence[bytes] = (bytes(32),) * 2, certificate: bytes = b"") -> bytes:
    """Return a signature as the linker makes it: digests, and an empty part for a certificate."""
    fields = (0xFADE0C02, 48 + 64, 0x20100, 2, 48, 0, 0, 2, 2 * PAGE, 32, 2, 0, 12, 0, 0)
    directory = struct.pack(">9I4BII", *fields) + b"".join(digests)
    wrapper = struct.pack(">2I", 0xFADE0B01, 8 + len(certificate)) + certificate
    end = 28 + len(directory)
    head = struct.pack(">7I", 0xFADE0CC0, end + len(wrapper), 2, 0, 28, 0x10000, end)
    return head + directory + wrapper


def pages(content: bytes) -> list[bytes]:
    return [hashlib.sha256(content[start : start + PAGE]).digest() for start in (0, PAGE)]


def rewritten(content: bytes, wanted: WantedCommands = WANTED) -> tuple[bytes, tuple[str, ...]]:
    made = bytearray(content)
    changes = relinking.rewrite(made, wanted, "a.so")
    return bytes(made), changes


def test_a_name_is_replaced_wherever_it_stands_and_nothing_else_changes() -> None:
    kinds = (0xD, 0xC, 0x80000018, 0x8000001F)
    needing = [path(kind, "@rpath/libcudart.9.2.dylib") for kind in kinds]
    before = library([*needing, path(0xC, "/usr/lib/libc++.1.dylib")])
    after, changes = rewritten(before)
    (part,) = macho.slices(after)
    paths = [part.path(command) for command in part.commands if command.kind in kinds]
    assert paths == [CUDART, CUDART, CUDART, CUDART, "/usr/lib/libc++.1.dylib"]
    assert changes == (f"@rpath/libcudart.9.2.dylib is now {CUDART}",)
    assert (len(after), after[CODE:]) == (len(before), before[CODE:])


def test_versions_beside_a_name_stay() -> None:
    after, _ = rewritten(library([NEEDING]))
    assert struct.pack("<3I", 2, 0x10203, 0x10000) + CUDART.encode() in after


@pytest.mark.parametrize("wanted", [WANTED, WantedCommands(rpath=("/usr/local/cuda/lib",))])
def test_a_library_that_asks_for_nothing_of_it_keeps_its_bytes(wanted: WantedCommands) -> None:
    before = library([path(0xC, "/usr/lib/libc++.1.dylib")])
    assert rewritten(before, wanted) == (before, ())


def test_the_building_machines_directories_give_way_and_those_beside_the_library_stay() -> None:
    folders = (load_command(0x8000001C, text) for text in ("/Users/me/cuda/lib", "@loader_path/.."))
    before = library([NEEDING, *folders])
    after, changes = rewritten(before, WantedCommands(rpath=("/usr/local/cuda/lib",)))
    assert macho.read(after)[0].search == ("@loader_path/..", "/usr/local/cuda/lib")
    assert changes == (
        "@rpath/ is also looked for in /usr/local/cuda/lib",
        "@rpath/ is not looked for in /Users/me/cuda/lib any more",
    )


def test_a_shorter_name_leaves_zeros_and_no_remains() -> None:
    shorter = WantedCommands({"@rpath/libcudart.9.2.dylib": "/a"})
    after, _ = rewritten(library([NEEDING]), shorter)
    assert b"libcudart" not in after
    assert macho.read(after)[0].needed == ("/a",)


def test_each_machine_of_a_universal_library_is_rewritten() -> None:
    head = universal((X86_64, PAGE, 2 * PAGE), (ARM64, 3 * PAGE, 2 * PAGE)).ljust(PAGE, b"\0")
    after, changes = rewritten(head + library([NEEDING]) + library([NEEDING], machine=ARM64))
    assert [part.needed for part in macho.read(after)] == [(CUDART,), (CUDART,)]
    assert len(changes) == 1


def test_names_that_have_no_room_before_the_code_are_refused_and_nothing_is_written() -> None:
    before = library([NEEDING], code=0xF0)
    made = bytearray(before)
    with fails(WheelError, "a.so (x86_64)", 208, 216, "headerpad_max_install_names"):
        relinking.rewrite(made, WANTED, "a.so")
    assert made == before


def test_a_signature_made_ad_hoc_is_made_true_again() -> None:
    before = library([NEEDING], machine=ARM64, signature=adhoc())
    after, _ = rewritten(library([NEEDING], machine=ARM64, signature=adhoc(pages(before))))
    assert after[2 * PAGE :] == adhoc(pages(after))
    assert pages(after)[0] != pages(before)[0]


@pytest.mark.parametrize(
    "content",
    [
        library([NEEDING])[:150],
        library([struct.pack("<2I", 0xC, 4)]),
        b"\xca\xfe\xba\xbe\0\0\0\x34",
    ],
)
def test_a_lying_or_truncated_file_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        rewritten(content)


def test_a_signature_that_lies_outside_the_file_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the file"):
        rewritten(library([NEEDING], signature=adhoc())[: 2 * PAGE])


NAME = "tensorflow/_pywrap.so"
SMALL = thin(X86_64, NEEDING).ljust(512, b"\0")


def wheel(place: Path, content: bytes = SMALL, digest: str = "") -> Path:
    """Write a wheel with one library, listed truly unless a `digest` is given."""
    file = place / "small-1.0-cp36-cp36m-macosx_10_13_x86_64.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(NAME, content)
        made.writestr("small-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        lines = [record.describe(made, member) for member in made.infolist()]
        if digest:
            lines[0] = lines[0]._replace(digest=digest)
        lines.append(record.RecordEntry("small-1.0.dist-info/RECORD", "", ""))
        made.writestr("small-1.0.dist-info/RECORD", record.render(lines))
    return file


def relinked(file: Path) -> tuple[zipfile.ZipFile, dict[str, int]]:
    target = io.BytesIO()
    with archive.open_wheel(file) as source:
        changes = relinking.relink(source, target, WANTED)
    return zipfile.ZipFile(target), dict(changes)


def test_the_libraries_of_a_wheel_are_rewritten_and_its_record_is_true(tmp_path: Path) -> None:
    made, changes = relinked(wheel(tmp_path))
    assert macho.read(made.read(NAME))[0].needed == (CUDART,)
    assert changes == {f"@rpath/libcudart.9.2.dylib is now {CUDART}": 1}
    assert record.faults(made) == []


def test_what_is_no_macos_library_stays(tmp_path: Path) -> None:
    made, changes = relinked(wheel(tmp_path, b"\x7fELF @rpath/libcudart.9.2.dylib"))
    assert (made.read(NAME), changes) == (b"\x7fELF @rpath/libcudart.9.2.dylib", {})


def test_a_record_that_was_false_before_is_not_made_true(tmp_path: Path) -> None:
    made, changes = relinked(wheel(tmp_path, digest="sha256=AAAA"))
    assert record.faults(made) == [f"{NAME} is not as listed"]
    assert changes
