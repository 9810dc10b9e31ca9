import platform
import shutil
from pathlib import Path

import pytest
from tests.libraries import X86_64, compile_library, macho
from tests.making import make_file

from tfwright.wheel.binary import elf
from tfwright.wheel.binary.elf import ElfTable, LibraryPart
from tfwright.wheel.binary.elf_image import Symbols
from tfwright.wheel.inspect import library
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


def resolved(*files: Path) -> dict[str, Symbols]:
    found, tables = [], {}
    for file in files:
        read, tables[file.name] = elf.read(file.read_bytes())
        found.append(Library(file.name, 1, (read,)))
    return {
        each.path: each.parts[0].symbols for each in library.with_missing_symbols(found, tables)
    }


def test_what_no_library_of_the_wheel_gives_is_missing(tmp_path: Path) -> None:
    giver, taker = tmp_path / "giver.so", tmp_path / "taker.so"
    symbols = resolved(compile_library(giver, GIVER), compile_library(taker, TAKER))
    assert symbols["giver.so"].missing == ()
    assert symbols["taker.so"].missing == ("_ZN10tensorflow4lostEv",)


def test_what_python_gives_and_what_may_be_missing_is_not(tmp_path: Path) -> None:
    source = PYTHON + WEAK + '#include <cstdio>\nvoid h() { std::puts(""); }\n'
    assert resolved(compile_library(tmp_path / "a.so", source))["a.so"].missing == ()


@pytest.mark.medium
def test_where_a_library_from_elsewhere_is_needed_nothing_is_said(tmp_path: Path) -> None:
    all_of = "-Wl,--no-as-needed"
    compile_library(tmp_path / "libcuda.so", 'extern "C" int cuInit() { return 0; }\n')
    needing, taker = tmp_path / "needing.so", tmp_path / "taker.so"
    compile_library(needing, 'extern "C" int f();\n', all_of, "libcuda.so")
    compile_library(taker, TAKER, all_of, "needing.so", "-Wl,--allow-shlib-undefined")
    assert resolved(needing, taker)["taker.so"].missing == ()


def test_a_library_is_known_to_others_by_its_soname_as_well() -> None:
    giver = Library("a/libgiver.so.2.20.0", 1, linux("libgiver.so.2"))
    taker = Library("a/taker.so", 1, linux("", "libgiver.so.2"))
    stranger = Library("a/stranger.so", 1, linux("", "libcuda.so.1"))
    wanting = ElfTable(frozenset(), (b"lost",))
    found = library.with_missing_symbols(
        (giver, taker, stranger, Library("a/text.so", 1, fault="not a library")),
        dict.fromkeys(("a/taker.so", "a/stranger.so"), wanting),
    )
    missing = {each.path: [part.symbols.missing for part in each.parts] for each in found}
    assert missing == {
        "a/libgiver.so.2.20.0": [()],
        "a/taker.so": [("lost",)],
        "a/stranger.so": [()],
        "a/text.so": [],
    }


def linux(soname: str, *needed: str) -> tuple[LibraryPart, ...]:
    return (LibraryPart(system="Linux", soname=soname, needed=needed),)


def test_exports_are_counted(tmp_path: Path) -> None:
    found = resolved(compile_library(tmp_path / "giver.so", GIVER))["giver.so"]
    assert (found.exports, found.tensorflow) == (2, 2)


REGISTERING = """\
namespace tensorflow { struct OpDefBuilderReceiver { OpDefBuilderReceiver(const char*); }; }
static tensorflow::OpDefBuilderReceiver op("NcclAllReduce");
"""


KERNEL = """\
namespace tensorflow { namespace kernel_factory {
struct OpKernelRegistrar { OpKernelRegistrar(const char*); };
} }
static tensorflow::kernel_factory::OpKernelRegistrar kernel("NcclAllReduce");
"""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (REGISTERING, "its operations have no kernel"),
        (REGISTERING + KERNEL, ""),
        (f"#if GOOGLE_CUDA\n{REGISTERING}#endif\n", library.NO_OPERATION),
        ('extern "C" const char* text() { return "OpDefBuilder"; }\n', library.NO_OPERATION),
    ],
    ids=["operations", "with kernels", "an empty source", "a mention in a text"],
)
def test_a_library_without_kernels_is_a_stub(tmp_path: Path, source: str, why: str) -> None:
    assert library.stub_reason(compile_library(tmp_path / "ops.so", source)) == why


def test_a_library_that_is_not_elf_is_searched_as_it_lies(tmp_path: Path) -> None:
    # A symbol as the string table of a Mach-O file would hold it.
    symbol = b"\0__ZN10tensorflow11register_op20OpDefBuilderReceiverC1EPKc\0"
    file = make_file(tmp_path / "ops.so", macho(X86_64) + symbol)
    assert library.stub_reason(file) == "its operations have no kernel"


def test_an_empty_file_registers_nothing(tmp_path: Path) -> None:
    (tmp_path / "ops.so").touch()
    assert library.stub_reason(tmp_path / "ops.so") == library.NO_OPERATION


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b"2.4.7+cuda10.0\0", "2.4.7+cuda10.0"),
        (b"2.25.1+cudaCUDA_MAJOR.CUDA_MINOR\0", "2.25.1"),
        (b"%s\0", ""),
        (b"mismatch with remote peer\0", ""),
        (b"%s\0NCCL version 2.16.2\0", "2.16.2"),
    ],
)
def test_the_version_of_nccl_is_found(text: bytes, version: str) -> None:
    assert library.nccl_version(b"\0NCCL version " + text) == version
