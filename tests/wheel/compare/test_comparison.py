import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import IO

import pytest
from tests.failing import fails
from tests.libraries import compile_library
from tests.making import Maker, make_file

from tfwright.errors import RecipeError, WheelError
from tfwright.wheel import record
from tfwright.wheel.compare import code, comparison, text
from tfwright.wheel.compare.code import CHUNK, SHOWN, compare_bytes
from tfwright.wheel.compare.comparison import Comparison, Difference


def repacked(path: Path, values: Mapping[str, object], *, backwards: bool = False) -> Path:
    """Pack the files of a wheel again, each with some fields of its header changed."""
    copy = path.with_name(f"re{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for member in reversed(old.infolist()) if backwards else old.infolist():
            header = zipfile.ZipInfo(member.filename, member.date_time)
            header.compress_type = member.compress_type
            header.external_attr = member.external_attr
            for value in values.items():
                setattr(header, *value)
            new.writestr(header, old.read(member))
    return copy


def of(found: Comparison, member: str) -> Difference:
    return next(difference for difference in found.differences if difference.member == member)


Files = Mapping[str, str]


@pytest.fixture
def compared(make_wheel: Maker) -> Callable[[Files, Files], Comparison]:
    """Return a function that compares two wheels with some files in each."""
    return lambda one, two: comparison.compare(make_wheel(one), make_wheel(two, folder="other"))


Compared = Callable[[Files, Files], Comparison]


def test_the_same_bytes_are_the_same(make_wheel: Maker) -> None:
    path = make_wheel()
    found = comparison.compare(path, path)
    assert (found.same, found.differences) == (True, ())


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("time", {"date_time": (2001, 2, 3, 4, 5, 6)}),
        ("mode", {"external_attr": 0o100755 << 16}),
        ("mode", {"create_system": 0}),
        ("mode", {"comment": b"by hand"}),
        ("compression", {"compress_type": zipfile.ZIP_STORED}),
    ],
)
def test_how_the_files_are_packed_is_a_difference_of_its_own(
    group: str, values: dict[str, object], make_wheel: Maker
) -> None:
    path = repacked(make_wheel(), {})
    found = comparison.compare(path, repacked(path, values))
    assert (found.same, {one.group for one in found.differences}) == (False, {group})


def test_another_order_is_named_where_it_begins(make_wheel: Maker) -> None:
    path = make_wheel({"a.py": "", "b.py": ""})
    (found,) = comparison.compare(path, repacked(path, {}, backwards=True)).differences
    assert found.group == "order"
    assert "from number 1 on" in found.what


def test_files_in_one_only_are_named_and_record_follows_unsaid(compared: Compared) -> None:
    (found,) = compared({"a.py": "", "b.txt": "12345"}, {"a.py": ""}).differences
    assert found == Difference("path", "", "files only in the first (1)", ("b.txt (5 bytes)",))


def test_projects_that_call_themselves_differently_are_compared_file_by_file(
    make_wheel: Maker,
) -> None:
    one, two = (
        make_wheel({"a.py": "", f"{name}.data/purelib/b.py": line}, f"{name}-py3-none-any.whl")
        for name, line in (("small-1.0", "1\n"), ("other-2.0", "2\n"))
    )
    found = comparison.compare(one, two)
    paths = [difference.what for difference in found.differences if difference.group == "path"]
    assert paths == ["they have different names"]
    assert of(found, "b.py").lines == ("line 1:", "-1", "+2")
    shown = of(found, ".dist-info/METADATA").lines
    assert shown[:3] == ("line 2:", " Metadata-Version: 2.1", "-Name: small")


def test_a_record_that_lies_about_a_file_that_is_the_same_is_named(
    make_wheel: Maker, tmp_path: Path
) -> None:
    path, liar = make_wheel(), tmp_path / "liar.whl"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(liar, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            listed = old.read(member).replace(b"small.py,sha256=", b"small.py,sha256=lie")
            new.writestr(member, listed)
    lines = of(comparison.compare(path, liar), ".dist-info/RECORD").lines
    assert any(line.startswith("+small.py,sha256=lie") for line in lines)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ("def f():\n    'says'\n    return 1  # new\n", "only comments or white space differ"),
        (
            "def f():\n    'says more'\n    return 1\n",
            "only docstrings, comments or white space differ",
        ),
        ("def f():\n    'says'\n    return 2\n", "lines differ"),
        ("def f():\n    'says'\n    return  1\n", "only comments or white space differ"),
        ("def f(:\n", "lines differ"),
    ],
)
def test_python_is_compared_by_what_it_does(after: str, what: str, compared: Compared) -> None:
    before = "def f():\n    'says'\n    return 1\n"
    # RECORD, which only follows, is not reported.
    (found,) = compared({"a.py": before}, {"a.py": after}).differences
    assert (found.member, found.group, found.what) == ("a.py", "source", what)


def test_a_long_difference_is_shortened() -> None:
    one, two = (b"".join(b"%d\n" % (sign * each) for each in range(5000)) for sign in (1, -1))
    found = text.compare_texts(one, two)
    assert found
    assert len(found.lines) == text.LONGEST + 1
    assert found.lines[-1].endswith("more lines")


def test_other_bytes_are_counted(compared: Compared) -> None:
    found = compared({"a.bin": "\0one"}, {"a.bin": "\0oxx"})
    assert of(found, "a.bin").what == "2 of 4 bytes differ, first at 0x2"


def test_the_same_files_in_other_bytes_are_said_to_be_no_more_than_that(
    make_wheel: Maker, tmp_path: Path
) -> None:
    path, other = make_wheel(), tmp_path / "other.whl"
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED, compresslevel=0) as new,
    ):
        for member in old.infolist():
            new.writestr(member, old.read(member), compresslevel=0)
    (found,) = comparison.compare(path, other).differences
    assert found.what == "only the archives differ: the same files, packed into other bytes"


@pytest.fixture
def libraries(make_wheel: Maker, tmp_path: Path) -> Callable[[str, str], Difference]:
    """Return a function that compares wheels whose libraries are compiled from two sources."""

    def compare(one: str, two: str) -> Difference:
        wheels = (
            with_library(make_wheel(folder=name), compiled(source, tmp_path / name))
            for name, source in (("one", one), ("two", two))
        )
        return of(comparison.compare(*wheels), "a.so")

    return compare


def compiled(source: str, folder: Path) -> bytes:
    options = ("-O1", "-Wl,--build-id")
    return compile_library(folder / "a.so", source, *options, compiler="cc").read_bytes()


def with_library(path: Path, content: bytes) -> Path:
    target = path.with_name("with-library.whl")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        new.writestr(zipfile.ZipInfo("a.so"), content)
        for name in old.namelist():
            lines = [record.entry("a.so", content)] if name.endswith("/RECORD") else []
            new.writestr(zipfile.ZipInfo(name), record.render(lines).encode() + old.read(name))
    return target


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


@needs_compiler
def test_sections_that_differ_are_named_and_sections_of_one_library_only(
    libraries: Callable[[str, str], Difference],
) -> None:
    found = libraries(
        "int other(void) { return 1; } int power(void) { return 2; }",
        "int other(void) { return 1; } int power(void) { return 3; } "
        '__attribute__((section("own"))) int more = 1;',
    )
    assert found.group == "code"
    assert found.what.startswith("differs in .text")
    assert "sections only in the second (1): own" in found.lines
    assert any(line.startswith(".text: ") for line in found.lines)
    assert any(
        line.startswith("and what follows") and ".note.gnu.build-id" in line for line in found.lines
    )


@needs_compiler
def test_a_text_that_was_baked_in_is_shown(libraries: Callable[[str, str], Difference]) -> None:
    found = libraries(
        'const char *when(void) { return "built 06:31"; }',
        'const char *when(void) { return "built 07:42"; }',
    )
    assert found.what == "differs in .rodata"
    assert "    text 'built 06:31', then 'built 07:42'" in found.lines


MAC = (Path(__file__).parents[1] / "corpus/macho-symbols").read_bytes()


def test_macos_libraries_are_compared_by_their_sections() -> None:
    other = bytearray(MAC)
    # The last byte of the second function, which begins at 8 of 15 bytes of code.
    other[0x120 + 13] ^= 1
    found = code.compare_libraries(MAC, bytes(other))
    assert found.what == "differs in __TEXT,__text"
    assert found.lines == ("__TEXT,__text: 1 of 15 bytes differ, first at 0xd",)
    header = bytearray(MAC)
    header[8] ^= 1
    assert code.compare_libraries(MAC, bytes(header)).what.startswith(
        "differs outside its sections"
    )


def test_an_archive_that_ends_too_early_is_compared_as_far_as_it_goes() -> None:
    found = compare_bytes([b"ab", b"c"], [b"ab", b"X", b"more"])
    assert found
    assert (found.bytes, found.starts) == (1, (2,))
    assert compare_bytes([], [b"abX"]) is None


@pytest.mark.medium
def test_the_first_places_of_many_that_differ_are_kept() -> None:
    size = 4 * CHUNK
    found = compare_bytes([b"ab" * (size // 2)], [b"ax" * (size // 2)])
    assert found
    assert (found.bytes, found.starts[0]) == (size // 2, 1)
    assert len(found.starts) == SHOWN


def test_files_that_are_packed_alike_are_not_unpacked(
    make_wheel: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (
        make_wheel({"a.py": "A = 1\n", "b.py": content}, folder=content[4])
        for content in ("B = 1\n", "B = 2\n")
    )
    opened = list[str]()
    whole = zipfile.ZipFile.open

    def note(self: zipfile.ZipFile, member: zipfile.ZipInfo | str, *_: object) -> IO[bytes]:
        opened.append(member if isinstance(member, str) else member.filename)
        return whole(self, member)

    monkeypatch.setattr(zipfile.ZipFile, "open", note)
    assert {found.member for found in comparison.compare(one, two).differences} == {"b.py"}
    assert "b.py" in opened
    assert "a.py" not in opened


@needs_compiler
def test_damaged_libraries_are_compared_as_bytes_and_never_crash(
    make_wheel: Maker, tmp_path: Path
) -> None:
    whole, random = compiled("int one(void) { return 1; }", tmp_path), Random(7)
    sound = with_library(make_wheel(folder="one"), whole)
    for number in range(8):
        content = bytearray(whole)
        for _ in range(20):
            content[random.randrange(len(content))] = random.randrange(256)
        content[:4] = whole[:4]
        damaged = with_library(make_wheel(folder=f"two{number}"), bytes(content))
        assert of(comparison.compare(sound, damaged), "a.so").group == "code"


def test_a_difference_across_pieces_is_found_where_it_is() -> None:
    size = 3 * 1024**2
    one, two = bytes(size), bytearray(size)
    two[2 * 1024**2 + 5] = 1
    two[2 * 1024**2 + 7] = 1
    found = code.compare_stretches(one, bytes(two), range(size), range(size))
    assert found
    assert found.what == f"2 of {size:,} bytes differ, first at {2 * 1024**2 + 5:#x}"


def test_a_wheel_that_would_not_be_unpacked_is_refused(make_wheel: Maker, tmp_path: Path) -> None:
    broken = make_file(tmp_path / "broken.whl", make_wheel().read_bytes()[:-30])
    with fails(WheelError, broken):
        comparison.compare(make_wheel(), broken)
    with fails(RecipeError, "missing.whl"):
        comparison.compare(make_wheel(), tmp_path / "missing.whl")


def test_a_program_that_is_too_deep_for_pythons_stack_is_compared_as_a_text() -> None:
    program = b"if x:\n    pass\n" + b"elif x:\n    pass\n" * 900
    found = text.compare_programs(program, program + b"# a comment\n")
    assert found is not None
    assert found.what == "lines differ"
