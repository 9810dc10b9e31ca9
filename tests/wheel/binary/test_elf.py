import ctypes
import io
import platform
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tfwright.wheel.binary import elf, elf_sections, elf_symbols
from tfwright.wheel.binary.elf import Elf

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("otool") is not None,
    reason="there is no g++ that makes ELF files",
)


def built(folder: Path, source: str, *options: str) -> Path:
    (folder / "library.cc").write_text(source, "utf-8")
    library = folder / "library.so"
    subprocess.run(
        [
            "g++",
            "-shared",
            "-fPIC",
            folder / "library.cc",
            "-o",
            library,
            *options,
        ],
        check=True,
    )
    return library


def read(library: Path) -> Elf:
    return elf.read(library.read_bytes())


def test_the_machine_is_named_as_uname_does(tmp_path: Path) -> None:
    assert read(built(tmp_path, "")).machine == platform.machine()


def test_needed_libraries_and_where_they_are_looked_for_are_read(
    tmp_path: Path,
) -> None:
    found = read(
        built(
            tmp_path,
            "",
            "-Wl,-soname,libmine.so.2",
            "-Wl,-rpath,$ORIGIN/..:/opt/cuda/lib64",
            "-Wl,--no-as-needed",
            "-lm",
        )
    )
    assert found.soname == "libmine.so.2"
    assert found.search == ("$ORIGIN/..", "/opt/cuda/lib64")
    assert "libm.so.6" in found.needed


def test_the_newest_glibc_is_named_with_a_symbol_that_needs_it(
    tmp_path: Path,
) -> None:
    # Both are of versions that stay: the first is as old as the port to this machine, the second
    # from glibc 2.25.
    source = (
        "#include <sys/random.h>\n#include <cstdlib>\nvoid* f(void* to) { getrandom(to, 1, 0); "
        "return std::malloc(3); }\n"
    )
    need = read(built(tmp_path, source, "-nostartfiles")).requires["GLIBC"]
    assert (need.version, need.symbol) == ("2.25", "getrandom")


def test_packed_relocations_ask_for_the_glibc_that_knows_them() -> None:
    assert elf._parted("GLIBC_ABI_DT_RELR") == ("GLIBC", "2.36")
    assert elf._parted("GLIBC_PRIVATE") == ("", "")


@pytest.mark.medium
@pytest.mark.parametrize(
    ("abi", "said"), [("0", ("before cxx11",)), ("1", ("cxx11",))]
)
def test_the_strings_of_the_interface_tell_the_abi(
    tmp_path: Path, abi: str, said: tuple[str, ...]
) -> None:
    source = "#include <string>\nstd::string f(const std::string& one) { return one + one; }\n"
    assert (
        read(
            built(tmp_path, source, "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={abi}")
        ).strings
        == said
    )


@pytest.mark.medium
def test_the_strings_of_the_standard_librarys_own_functions_tell_nothing(
    tmp_path: Path,
) -> None:
    source = "#include <string>\nnamespace std { void f(const string&) {} }\n"
    assert read(built(tmp_path, source, "-O0")).strings == ()


def test_gpu_code_is_found_in_all_sections_that_hold_it(
    tmp_path: Path, container: Callable[..., bytes]
) -> None:
    (tmp_path / "linked").write_bytes(container((2, 70, 0), (1, 70, 0)))
    (tmp_path / "relocatable").write_bytes(container((2, 60, 0)))
    library = built(tmp_path, "")
    added = [
        f"--add-section={name}={tmp_path / file}"
        for name, file in (
            (".nv_fatbin", "linked"),
            ("__nv_relfatbin", "relocatable"),
        )
    ]
    subprocess.run(["objcopy", *added, library], check=True)
    assert read(library).architectures == ("sm_60", "sm_70", "compute_70")


def test_a_file_that_says_that_it_has_millions_of_sections_is_refused_at_once(
    tmp_path: Path,
) -> None:
    content = bytearray(built(tmp_path, "").read_bytes())
    table = int.from_bytes(content[40:48], "little")
    content[60:62] = bytes(
        2
    )  # none in the header: their number is then in the first section's size
    content[table + 32 : table + 40] = (2**40).to_bytes(8, "little")
    with pytest.raises(ValueError, match="it says that it has"):
        elf_sections.read(content)


@pytest.mark.medium
def test_what_is_read_is_what_pyelftools_reads_from_the_sections(
    tmp_path: Path,
) -> None:
    source = (
        "#include <cmath>\n#include <string>\nstd::string f(double a) { return "
        "std::to_string(std::exp(a)); }\n"
    )
    content = built(
        tmp_path, source, "-Wl,--no-as-needed", "-lm", "-Wl,-rpath,$ORIGIN"
    ).read_bytes()
    peer, found = ELFFile(io.BytesIO(content)), elf.read(content)
    dynamic, names = (
        peer.get_section_by_name(".dynamic"),
        peer.get_section_by_name(".dynsym"),
    )
    assert isinstance(dynamic, DynamicSection)
    assert isinstance(names, SymbolTableSection)
    needed = [
        str(vars(tag)["needed"])
        for tag in dynamic.iter_tags()
        if tag.entry.d_tag == "DT_NEEDED"
    ]
    symbols = names.iter_symbols()
    assert found.needed == tuple(needed)
    assert found.symbols.exports == len(
        [symbol for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"]
    )


def lying(content: bytes, change: Callable[[bytearray], None]) -> bytes:
    made = bytearray(content)
    change(made)
    return bytes(made)


def without_sections(content: bytearray) -> None:
    content[40:48] = bytes(8)
    content[58:64] = bytes(6)


def with_a_wrong_number_of_the_names(content: bytearray) -> None:
    content[62:64] = b"\xff\xff"


def with_sections_that_say_nothing(content: bytearray) -> None:
    """Name every section a null section."""
    start, count = struct.unpack_from("<Q", content, 40)[0], content[60]
    for number in range(count):
        content[start + 64 * number + 4 : start + 64 * number + 8] = bytes(4)


@pytest.mark.parametrize(
    "change",
    [
        without_sections,
        with_a_wrong_number_of_the_names,
        with_sections_that_say_nothing,
    ],
)
def test_what_the_sections_say_does_not_matter(
    tmp_path: Path, change: Callable[[bytearray], None]
) -> None:
    source = '#include <cstdio>\nvoid f() { std::puts(""); }\n'
    library = built(tmp_path, source, "-Wl,-rpath,/opt")
    content = lying(library.read_bytes(), change)
    (tmp_path / "lying.so").write_bytes(content)
    ctypes.CDLL(str(tmp_path / "lying.so"))
    assert elf.read(content) == elf.read(library.read_bytes())
    assert elf.read(content).requires["GLIBC"].version


def headers(content: bytes | bytearray) -> list[int]:
    """Return where each program header of a 64-bit library is."""
    start, count = struct.unpack_from("<Q", content, 32)[0], content[56]
    return [start + 56 * number for number in range(count)]


def header_of(content: bytes | bytearray, kind: int) -> int:
    return next(
        at
        for at in headers(content)
        if struct.unpack_from("<I", content, at)[0] == kind
    )


def two_dynamic_tables(content: bytearray) -> None:
    note = header_of(content, 4)
    dynamic = header_of(content, 2)
    content[note : note + 56] = content[dynamic : dynamic + 56]


def no_dynamic_table(content: bytearray) -> None:
    struct.pack_into("<I", content, header_of(content, 2), 0x6FFF0000)


def more_headers_than_the_loader_reads(content: bytearray) -> None:
    struct.pack_into("<H", content, 56, 0xFFFF)


def segments_on_top_of_each_other(content: bytearray) -> None:
    first, second = [
        at for at in headers(content) if content[at : at + 4] == b"\1\0\0\0"
    ][:2]
    content[second + 16 : second + 32] = content[first + 16 : first + 32]


def an_entry(content: bytes | bytearray, tag: int) -> int:
    """Return where the value of a tag in the dynamic table is."""
    (offset,) = struct.unpack_from("<Q", content, header_of(content, 2) + 8)
    assert isinstance(offset, int)
    while struct.unpack_from("<Q", content, offset)[0] != tag:
        offset += 16
    return offset + 8


def a_name_outside_the_file(content: bytearray) -> None:
    struct.pack_into("<Q", content, an_entry(content, 1), 2**40)


def a_table_of_names_outside_the_file(content: bytearray) -> None:
    struct.pack_into("<Q", content, an_entry(content, 5), 2**40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            two_dynamic_tables,
            "cannot be judged: it has more than one dynamic table",
        ),
        (no_dynamic_table, "it has no dynamic table"),
        (
            more_headers_than_the_loader_reads,
            "cannot be judged: it has more program headers",
        ),
        (
            segments_on_top_of_each_other,
            "cannot be judged: its segments lie on top",
        ),
        (a_name_outside_the_file, "where it has nothing in memory"),
        (a_table_of_names_outside_the_file, "where it has nothing in memory"),
    ],
)
def test_what_cannot_be_judged_is_refused_and_not_passed(
    tmp_path: Path, change: Callable[[bytearray], None], message: str
) -> None:
    content = lying(
        built(tmp_path, "", "-Wl,--no-as-needed", "-lm").read_bytes(), change
    )
    with pytest.raises(ValueError, match=message):
        elf.read(content)


def test_versions_in_a_chain_without_an_end_are_refused(tmp_path: Path) -> None:
    content = bytearray(
        built(
            tmp_path, '#include <cstdio>\nvoid f() { std::puts(""); }\n'
        ).read_bytes()
    )
    table = struct.unpack_from("<Q", content, an_entry(content, 0x6FFFFFFE))[0]
    struct.pack_into("<I", content, table + 12, 1)
    with pytest.raises(
        ValueError, match=r"versions|nothing in memory|goes beyond|does not end"
    ):
        elf.read(content)


def test_a_table_in_which_all_names_are_the_whole_table_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf_symbols, "OVERLAP", -(2**20))
    with pytest.raises(ValueError, match="the same bytes many times over"):
        elf.read(built(tmp_path, "int f() { return 1; }\n").read_bytes())


def test_a_library_that_exports_nothing_is_read_with_what_it_wants(
    tmp_path: Path,
) -> None:
    source = 'extern "C" int lost(); __attribute__((visibility("hidden"))) int f() { return lost(); }\n'
    library = built(
        tmp_path, source, "-nostartfiles", "-Wl,--hash-style=gnu", "-Wl,-u,f"
    )
    _, table = elf.examine(library.read_bytes())
    assert b"lost" in table.wanted
