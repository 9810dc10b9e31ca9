import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tfwright.wheel.binary import elf
from tfwright.wheel.binary.elf import Elf
from tfwright.wheel.binary.elf_symbols import ElfTable, Symbols
from tfwright.wheel.inspect import links
from tfwright.wheel.inspect.library import Library

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.system() != "Linux",
    reason="there is no g++ that makes ELF files",
)

GIVER = (
    "namespace tensorflow { int given() { return 1; } int OpDefBuilderReceiver() { return 2; } }\n"
)
TAKER = "namespace tensorflow { int given(); int lost(); int f() { return given() + lost(); } }\n"
PYTHON = 'extern "C" int PyErr_Occurred(); extern "C" int PyThing() { return PyErr_Occurred(); }\n'
WEAK = (
    'extern "C" __attribute__((weak)) int maybe(); extern "C" int g() { return maybe ? maybe() : '
    "0; }\n"
)


def built(folder: Path, name: str, source: str, *options: str) -> Path:
    (folder / f"{name}.cc").write_text(source, "utf-8")
    subprocess.run(
        ["g++", "-shared", "-fPIC", f"{name}.cc", "-o", f"{name}.so", *options],
        check=True,
        cwd=folder,
    )
    return folder / f"{name}.so"


def resolved(*files: Path) -> dict[str, Symbols]:
    found, tables = [], {}
    for file in files:
        read, tables[file.name] = elf.examine(file.read_bytes())
        found.append(Library(file.name, 1, read))
    return {
        library.path: library.elf.symbols
        for library in links.resolved(found, tables)
        if library.elf
    }


def test_what_no_library_of_the_wheel_gives_is_missing(tmp_path: Path) -> None:
    symbols = resolved(built(tmp_path, "giver", GIVER), built(tmp_path, "taker", TAKER))
    assert symbols["giver.so"].missing == ()
    assert symbols["taker.so"].missing == ("_ZN10tensorflow4lostEv",)


def test_what_python_gives_and_what_may_be_missing_is_not(tmp_path: Path) -> None:
    assert (
        resolved(
            built(tmp_path, "a", PYTHON + WEAK + '#include <cstdio>\nvoid h() { std::puts(""); }\n')
        )["a.so"].missing
        == ()
    )


@pytest.mark.medium
def test_where_a_library_from_elsewhere_is_needed_nothing_is_said(tmp_path: Path) -> None:
    built(tmp_path, "libcuda", 'extern "C" int cuInit() { return 0; }\n')
    needing = built(
        tmp_path, "needing", 'extern "C" int f();\n', "-Wl,--no-as-needed", "libcuda.so"
    )
    assert (
        resolved(
            needing,
            built(
                tmp_path,
                "taker",
                TAKER,
                "-Wl,--no-as-needed",
                "needing.so",
                "-Wl,--allow-shlib-undefined",
            ),
        )["taker.so"].missing
        == ()
    )


def test_a_library_is_known_to_others_by_its_soname_as_well() -> None:
    giver = Library("a/libgiver.so.2.20.0", 1, elf_of("libgiver.so.2"))
    taker = Library("a/taker.so", 1, elf_of("", "libgiver.so.2"))
    stranger = Library("a/stranger.so", 1, elf_of("", "libcuda.so.1"))
    wanting = ElfTable(Symbols(), frozenset(), (b"lost",))
    found = links.resolved(
        (giver, taker, stranger, Library("a/text.so", 1, fault="not a library")),
        dict.fromkeys(("a/taker.so", "a/stranger.so"), wanting),
    )
    missing = {library.path: library.elf and library.elf.symbols.missing for library in found}
    assert missing == {
        "a/libgiver.so.2.20.0": (),
        "a/taker.so": ("lost",),
        "a/stranger.so": (),
        "a/text.so": None,
    }


def elf_of(soname: str, *needed: str) -> Elf:
    return Elf("x86_64", soname, needed, (), {}, ())


def test_exports_and_what_registers_operations_are_counted(tmp_path: Path) -> None:
    found = resolved(built(tmp_path, "giver", GIVER))["giver.so"]
    assert (found.exports, found.tensorflow, found.registers_ops) == (2, 2, True)
