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
from tests.libraries import compile_library, fat_binary
from tests.making import make_file

from tfwright.wheel.binary import elf, elf_image, machine_code
from tfwright.wheel.binary.elf import LibraryPart
from tfwright.wheel.binary.elf_image import ElfImage

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("otool") is not None,
    reason="there is no g++ that makes ELF files",
)


def built(folder: Path, source: str, *options: str) -> Path:
    return compile_library(folder / "library.so", source, *options)


@pytest.fixture(scope="module")
def putting(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a library that calls a function of the C library."""
    source = '#include <cstdio>\nvoid f() { std::puts(""); }\n'
    folder = tmp_path_factory.mktemp("putting")
    return built(folder, source, "-Wl,--no-as-needed", "-lm").read_bytes()


def elf_facts(content: bytes | bytearray) -> LibraryPart:
    return elf.read(content)[0]


def read(library: Path) -> LibraryPart:
    return elf_facts(library.read_bytes())


def test_the_machine_is_named_as_uname_does(tmp_path: Path) -> None:
    assert read(built(tmp_path, "")).machine == platform.machine()


def test_needed_libraries_and_where_they_are_looked_for_are_read(tmp_path: Path) -> None:
    named = ("-Wl,-soname,libmine.so.2", "-Wl,-rpath,$ORIGIN/..:/opt/cuda/lib64")
    found = read(built(tmp_path, "", *named, "-Wl,--no-as-needed", "-lm"))
    assert found.soname == "libmine.so.2"
    assert found.search == ("$ORIGIN/..", "/opt/cuda/lib64")
    assert "libm.so.6" in found.needed


def test_the_newest_glibc_is_named_with_a_symbol_that_needs_it(tmp_path: Path) -> None:
    # Both are of versions that stay: the first is as old as the port to this machine, the second
    # from glibc 2.25.
    source = (
        "#include <sys/random.h>\n#include <cstdlib>\nvoid* f(void* to) { getrandom(to, 1, 0); "
        "return std::malloc(3); }\n"
    )
    need = read(built(tmp_path, source, "-nostartfiles")).requires["GLIBC"]
    assert (need.version, need.symbol) == ("2.25", "getrandom")


@pytest.mark.parametrize(
    ("version", "glibc"), [(b"GLIBC_ABI_DT_RELR", "2.36"), (b"GLIBC_PRIVATE", None)]
)
def test_packed_relocations_ask_for_the_glibc_that_knows_them(
    version: bytes, glibc: str | None
) -> None:
    need = elf_facts(handmade("<", wide=True, version=version)).requires
    assert (need["GLIBC"].version if need else None) == glibc


@pytest.mark.medium
@pytest.mark.parametrize(("abi", "said"), [("0", ("before cxx11",)), ("1", ("cxx11",))])
def test_the_strings_of_the_interface_tell_the_abi(
    tmp_path: Path, abi: str, said: tuple[str, ...]
) -> None:
    source = "#include <string>\nstd::string f(const std::string& one) { return one + one; }\n"
    library = built(tmp_path, source, "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={abi}")
    assert read(library).symbols.strings == said


@pytest.mark.medium
def test_the_strings_of_the_standard_librarys_own_functions_tell_nothing(tmp_path: Path) -> None:
    source = "#include <string>\nnamespace std { void f(const string&) {} }\n"
    assert read(built(tmp_path, source, "-O0")).symbols.strings == ()


def test_gpu_code_is_found_in_all_sections_that_hold_it(tmp_path: Path) -> None:
    linked = make_file(tmp_path / "linked", fat_binary((2, 70, 0), (1, 70, 0)))
    relocatable = make_file(tmp_path / "relocatable", fat_binary((2, 60, 0)))
    library = built(tmp_path, "")
    added = (f"--add-section=.nv_fatbin={linked}", f"--add-section=__nv_relfatbin={relocatable}")
    subprocess.run(["objcopy", *added, library], check=True)
    assert [*read(library).gpu] == ["sm_60", "sm_70", "compute_70"]


def test_a_file_that_says_that_it_has_millions_of_sections_is_refused_at_once(
    tmp_path: Path,
) -> None:
    content = bytearray(built(tmp_path, "").read_bytes())
    table = int.from_bytes(content[40:48], "little")
    # None in the header: their number is then in the first section's size.
    content[60:62] = bytes(2)
    content[table + 32 : table + 40] = (2**40).to_bytes(8, "little")
    with pytest.raises(ValueError, match="it says that it has"):
        ElfImage(content).sections()


@pytest.mark.medium
def test_what_is_read_is_what_pyelftools_reads_from_the_sections(tmp_path: Path) -> None:
    source = (
        "#include <cmath>\n#include <string>\nstd::string f(double a) { return "
        "std::to_string(std::exp(a)); }\n"
    )
    library = built(tmp_path, source, "-Wl,--no-as-needed", "-lm", "-Wl,-rpath,$ORIGIN")
    found, peer = read(library), ELFFile(io.BytesIO(library.read_bytes()))
    dynamic, names = peer.get_section_by_name(".dynamic"), peer.get_section_by_name(".dynsym")
    assert isinstance(dynamic, DynamicSection)
    assert isinstance(names, SymbolTableSection)
    needed = [tag for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
    assert found.needed == tuple(str(vars(tag)["needed"]) for tag in needed)
    exports = [one for one in names.iter_symbols() if one["st_shndx"] != "SHN_UNDEF"]
    assert found.symbols.exports == len(exports)


Change = Callable[[bytearray], None]
Place = Callable[[bytearray], int]


def lying(content: bytes, change: Change) -> bytes:
    made = bytearray(content)
    change(made)
    return bytes(made)


def put(layout: str, place: Place | int, *values: int | bytes) -> Change:
    """Return a change that overwrites the numbers at a place."""

    def change(content: bytearray) -> None:
        at = place if isinstance(place, int) else place(content)
        struct.pack_into(layout, content, at, *values)

    return change


def without_sections(content: bytearray) -> None:
    content[40:48] = bytes(8)
    content[58:64] = bytes(6)


def with_sections_that_say_nothing(content: bytearray) -> None:
    """Name every section a null section."""
    start, count = struct.unpack_from("<Q", content, 40)[0], content[60]
    for number in range(count):
        content[start + 64 * number + 4 : start + 64 * number + 8] = bytes(4)


@pytest.mark.parametrize(
    "change", [without_sections, put("<H", 62, 0xFFFF), with_sections_that_say_nothing]
)
def test_what_the_sections_say_does_not_matter(tmp_path: Path, change: Change) -> None:
    source = '#include <cstdio>\nvoid f() { std::puts(""); }\n'
    library = built(tmp_path, source, "-Wl,-rpath,/opt")
    content = lying(library.read_bytes(), change)
    (tmp_path / "lying.so").write_bytes(content)
    ctypes.CDLL(str(tmp_path / "lying.so"))
    assert elf_facts(content) == elf_facts(library.read_bytes())
    assert elf_facts(content).requires["GLIBC"].version


def headers(content: bytes | bytearray) -> list[int]:
    """Return where each program header of a 64-bit library is."""
    start, count = struct.unpack_from("<Q", content, 32)[0], content[56]
    return [start + 56 * number for number in range(count)]


def header_of(content: bytes | bytearray, kind: int) -> int:
    return next(at for at in headers(content) if struct.unpack_from("<I", content, at)[0] == kind)


def an_entry(content: bytes | bytearray, tag: int) -> int:
    """Return where the value of a tag in the dynamic table is."""
    (offset,) = struct.unpack_from("<Q", content, header_of(content, 2) + 8)
    assert isinstance(offset, int)
    while struct.unpack_from("<Q", content, offset)[0] != tag:
        offset += 16
    return offset + 8


def header(kind: int, inner: int = 0) -> Place:
    return lambda content: header_of(content, kind) + inner


def entry(tag: int, inner: int = 0) -> Place:
    return lambda content: an_entry(content, tag) + inner


def table(tag: int, inner: int = 0) -> Place:
    # Addresses and places in the file are the same in the first segment.
    return lambda content: int(struct.unpack_from("<Q", content, an_entry(content, tag))[0]) + inner


def without(tag: int) -> Change:
    """Make an entry of the dynamic table one that the loader skips (DT_DEBUG)."""
    return put("<Q", entry(tag, -8), 21)


def two_dynamic_tables(content: bytearray) -> None:
    note, dynamic = header_of(content, 4), header_of(content, 2)
    content[note : note + 56] = content[dynamic : dynamic + 56]


def loads(content: bytearray) -> list[int]:
    return [at for at in headers(content) if content[at : at + 4] == b"\1\0\0\0"]


def segments_on_top_of_each_other(content: bytearray) -> None:
    first, second = loads(content)[:2]
    content[second + 16 : second + 32] = content[first + 16 : first + 32]


def a_segment_between_two_pages(content: bytearray) -> None:
    place = loads(content)[-1] + 8
    struct.pack_into("<Q", content, place, struct.unpack_from("<Q", content, place)[0] - 8)


def a_dynamic_table_without_an_end(content: bytearray) -> None:
    """Let the segment with the dynamic table end in the middle of an entry."""
    (table,) = struct.unpack_from("<Q", content, header_of(content, 2) + 8)
    for at in loads(content):
        start, size = (struct.unpack_from("<Q", content, at + inner)[0] for inner in (8, 32))
        if start <= table < start + size:
            struct.pack_into("<Q", content, at + 32, table - start + 40)


def to_the_end_of_its_segment(tag: int) -> Change:
    """Let a table begin one byte before its segment ends."""

    def change(content: bytearray) -> None:
        address, size = struct.unpack_from("<Q8xQ", content, header_of(content, 1) + 16)
        put("<Q", entry(tag), address + size - 1)(content)

    return change


REFUSED = {
    "two dynamic tables": (two_dynamic_tables, "cannot be judged: it has more than one dynamic"),
    "no dynamic table": (put("<I", header(2), 0x6FFF0000), "it has no dynamic table"),
    "more headers than the loader reads": (put("<H", 56, 0xFFFF), "judged: it has more program"),
    "segments on top of each other": (segments_on_top_of_each_other, "judged: its segments lie"),
    "an object": (put("<H", 16, 1), "of type 1, neither a program nor a library"),
    "another kind of file": (put("4s", 0, b"\x7fELV"), "not an ELF file"),
    "a class of the future": (put("B", 4, 3), "a class or a byte order that does not exist"),
    "wider headers": (put("<H", 54, 64), "have 64 bytes each"),
    "a segment between two pages": (a_segment_between_two_pages, "not aligned alike"),
    "a segment smaller in memory": (put("<Q", header(1, 40), 1), "more bytes in the file than in"),
    "a dynamic table without an end": (a_dynamic_table_without_an_end, "table does not end"),
    "no table of names": (without(elf_image.STRINGS), "outside its table of names"),
    "a symbol whose name is outside": (
        put("<I", table(elf_image.SYMBOLS, 24), 0x7FFFFFFF),
        "outside its table of names",
    ),
    "symbols beyond their segment": (
        to_the_end_of_its_segment(elf_image.SYMBOLS),
        "symbols at .* goes beyond its segment",
    ),
    "versions beyond their segment": (
        to_the_end_of_its_segment(elf_image.VERSIONS),
        "table of versions at .* goes beyond",
    ),
    "required versions beyond their segment": (
        to_the_end_of_its_segment(elf_image.REQUIRED_VERSIONS),
        "goes beyond its segment",
    ),
    "relocations beyond their segment": (put("<Q", entry(8), 2**40), "relocations at .* goes"),
    "more hashes than bytes": (
        put("<I", table(elf_image.GNU_HASH), 2**31),
        "table of hashes at .* goes beyond",
    ),
    "a name outside the file": (put("<Q", entry(1), 2**40), "where it has nothing in memory"),
    "a table of names outside the file": (put("<Q", entry(5), 2**40), "has nothing in memory"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_judged_is_refused_and_not_passed(
    putting: bytes, change: Change, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        elf_facts(lying(putting, change))


def test_versions_in_a_chain_without_an_end_are_refused(putting: bytes) -> None:
    content = bytearray(putting)
    put("<I", table(elf_image.REQUIRED_VERSIONS, 12), 1)(content)
    with pytest.raises(ValueError, match=r"versions|nothing in memory|goes beyond|does not end"):
        elf_facts(content)


def test_a_table_in_which_all_names_are_the_whole_table_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf_image, "OVERLAP", -(2**20))
    with pytest.raises(ValueError, match="the same bytes many times over"):
        elf_facts(built(tmp_path, "int f() { return 1; }\n").read_bytes())


def test_a_library_that_exports_nothing_is_read_with_what_it_wants(tmp_path: Path) -> None:
    source = (
        'extern "C" int lost(); __attribute__((visibility("hidden"))) int f() { return lost(); }\n'
    )
    library = built(tmp_path, source, "-nostartfiles", "-Wl,--hash-style=gnu", "-Wl,-u,f")
    _, table = elf.read(library.read_bytes())
    assert b"lost" in table.undefined


def test_a_chain_of_hashes_without_an_end_is_refused(putting: bytes) -> None:
    content = bytearray(putting)
    place = table(elf_image.GNU_HASH)(content)
    heads, first, words = struct.unpack_from("<3I", content, place)
    buckets = place + 16 + 8 * words
    last = max(struct.unpack_from(f"<{heads}I", content, buckets))
    chain = buckets + 4 * heads + 4 * (last - first)
    offset, size = struct.unpack_from("<Q16xQ", content, header_of(content, 1) + 8)
    content[chain : offset + size] = bytes(offset + size - chain)
    with pytest.raises(ValueError, match="table of hashes does not end"):
        _ = ElfImage(content).symbol_count


def test_a_version_that_no_symbol_has_is_named_without_one(putting: bytes) -> None:
    content = bytearray(putting)
    assert ElfImage(content).name_with_version(0x7FFF) == ""
    without(elf_image.SYMBOLS)(content)
    assert ElfImage(content).name_with_version(2) == ""


def test_a_table_of_sections_that_lacks_one_byte_counts_as_none(putting: bytes) -> None:
    assert ".dynsym" in [section.name for section in ElfImage(putting).sections()]
    start, count = struct.unpack_from("<Q", putting, 40)[0], putting[60]
    assert ElfImage(putting[: start + 64 * count - 1]).sections() == []


def handmade(order: str, *, wide: bool, version: bytes = b"") -> bytes:
    """Return a library that gives `sum` and wants `lost`, by DT_HASH, of any width and byte order."""
    names = b"\0libown.so\0sum\0lost\0" + version + b"\0"
    symbol = ("IBBHQQ" if wide else "IIIBBH", 24 if wide else 16)
    rows = [(0, 0, 0), (names.index(b"sum"), 0x12, 7), (names.index(b"lost"), 0x12, 0)]
    table = b"".join(
        struct.pack(order + symbol[0], name, info, 0, section, 0, 0)
        if wide
        else struct.pack(order + symbol[0], name, 0, 0, info, 0, section)
        for name, info, section in rows
    )
    hashes = struct.pack(f"{order}6I", 1, 3, 1, 0, 2, 0)
    # A copy of `lost`, as a relocation that names the symbol asks for it.
    info = 2 << 32 | 1 if wide else 2 << 8 | 1
    moves = struct.pack(f"{order}2{'Q' if wide else 'I'}", 0, info)
    # One version of one library (Elf64_Verneed, Elf64_Vernaux).
    asked = struct.pack(f"{order}HHIIIIHHII", 1, 1, 0, 16, 0, 0, 0, 2, names.index(version, 20), 0)
    head = 64 + 2 * 56 if wide else 52 + 2 * 32
    places, content = [], b""
    for part in (names, table, hashes, moves, asked):
        places.append(head + len(content))
        content += part
    entries = [
        (elf_image.STRINGS, places[0]),
        (elf_image.STRINGS_SIZE, len(names)),
        (elf_image.SYMBOLS, places[1]),
        (elf_image.HASH, places[2]),
        (17, places[3]),
        (18, len(moves)),
        (elf_image.SONAME, 1),
        *([(elf_image.REQUIRED_VERSIONS, places[4])] if version else []),
        (0, 0),
    ]
    dynamic = head + len(content)
    for entry in entries:
        content += struct.pack(f"{order}2{'q' if wide else 'i'}", *entry)
    whole = head + len(content)
    segments = b""
    for kind, at, size in ((1, 0, whole), (2, dynamic, whole - dynamic)):
        fields = (kind, 4, at, at, at, size, size, 1)
        if not wide:
            fields = (kind, at, at, at, size, size, 4, 1)
        segments += struct.pack(order + ("IIQQQQQQ" if wide else "8I"), *fields)
    identity = b"\x7fELF" + bytes([1 + wide, 1 + (order == ">"), 1]) + bytes(9)
    start = 64 if wide else 52
    head_of_file = (3, 22, 1, 0, start, 0, 0, start, (head - start) // 2, 2, 0, 0, 0)
    header = struct.pack(f"{order}HHI3{'Q' if wide else 'I'}I6H", *head_of_file)
    return identity + header + segments + content


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_library_of_any_width_and_byte_order_is_read(
    order: str,
    wide: bool,  # noqa: FBT001 a case of the table above
) -> None:
    found, table = elf.read(handmade(order, wide=wide))
    assert (found.soname, found.symbols.exports) == ("libown.so", 1)
    assert (table.undefined, found.cpu) == ((b"lost",), None)


def test_relocations_alone_say_which_symbols_there_are() -> None:
    content = handmade(">", wide=True)
    hashless = content.replace(struct.pack(">q", elf_image.HASH), struct.pack(">q", 21))
    assert elf.read(hashless)[1].undefined == (b"lost",)


def test_a_library_that_names_itself_without_a_table_of_names_is_refused() -> None:
    content = handmade("<", wide=True)
    for tag in (elf_image.STRINGS, elf_image.HASH, 17):
        content = content.replace(struct.pack("<q", tag), struct.pack("<q", 21))
    with pytest.raises(ValueError, match="no string table"):
        elf_facts(content)


def test_a_text_without_an_end_is_refused() -> None:
    image = ElfImage(handmade("<", wide=True))
    image.content = bytes(image.content).replace(b"\0", b"x")
    with pytest.raises(ValueError, match="does not end where its texts end"):
        image.string(0, "name")


def code_of(content: bytes | bytearray) -> machine_code.Code:
    code = machine_code.elf_code(ElfImage(content))
    assert code is not None
    return code


def test_code_beyond_the_end_of_a_cut_file_is_refused(putting: bytes) -> None:
    image = ElfImage(putting)
    end = next(part.offset + part.size for part in image.loaded if part.flags & 1)
    image.content = putting[: end - 1]
    with pytest.raises(ValueError, match="the file ends before them"):
        machine_code.elf_code(image)


def test_more_symbols_than_any_library_has_are_refused(
    putting: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "MOST", 2)
    with pytest.raises(ValueError, match="more than 2 symbols"):
        code_of(putting)


def test_functions_are_found_without_the_tables_of_linker_and_loader(putting: bytes) -> None:
    content = bytearray(putting)
    without_sections(content)
    without(elf_image.STRINGS)(content)
    bare = code_of(content)
    starts = {start for start, _, _ in bare.functions}
    # The frames, by which exceptions find their way, have every function of C++.
    whole = code_of(putting)
    functions = [machine_code.MachineFunction(*row) for row in whole.functions]
    named = next(function for function in functions if whole.name(function) == "_Z1fv")
    assert named.start in starts
    assert {name for _, _, name in bare.functions} == {0}
    assert bare.name(machine_code.MachineFunction(named.start, 1, 0)) == ""


def test_frames_in_an_encoding_that_no_compiler_writes_are_left(putting: bytes) -> None:
    content = bytearray(putting)
    without_sections(content)
    without(elf_image.STRINGS)(content)
    (place,) = struct.unpack_from("<Q", content, header_of(content, elf_image.FRAMES) + 8)
    content[place + 3] = 0x0B
    assert code_of(content).functions == []


def test_a_table_of_frames_beyond_its_segment_is_refused(putting: bytes) -> None:
    content = bytearray(putting)
    struct.pack_into("<Q", content, header_of(content, elf_image.FRAMES) + 32, 2**40)
    with pytest.raises(ValueError, match=r"frames at .* goes beyond its segment"):
        code_of(content)


def test_only_short_gaps_between_functions_are_searched_with_them() -> None:
    functions = [(0, 10, 0), (20, 10, 0), (20 + 2 * machine_code.GAP, 5, 0)]
    spans = list(machine_code.spans(functions))
    assert spans == [(0, 30), (20 + 2 * machine_code.GAP, 25 + 2 * machine_code.GAP)]
