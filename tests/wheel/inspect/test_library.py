import platform
import shutil
import subprocess
from pathlib import Path

import pytest
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
        found.append(Library(file.name, 1, (read,)))
    return {each.path: each.parts[0].symbols for each in library.resolved(found, tables)}


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
    giver = Library("a/libgiver.so.2.20.0", 1, linux("libgiver.so.2"))
    taker = Library("a/taker.so", 1, linux("", "libgiver.so.2"))
    stranger = Library("a/stranger.so", 1, linux("", "libcuda.so.1"))
    wanting = ElfTable(frozenset(), (b"lost",))
    found = library.resolved(
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
    found = resolved(built(tmp_path, "giver", GIVER))["giver.so"]
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


def compiled(folder: Path, source: str) -> Path:
    (folder / "ops.cc").write_text(source, "utf-8")
    made = folder / "ops.so"
    undefined = ["-undefined", "dynamic_lookup"] if shutil.which("otool") else []
    subprocess.run(
        ["c++", "-shared", "-fPIC", *undefined, str(folder / "ops.cc"), "-o", str(made)], check=True
    )
    return made


def test_a_library_that_calls_the_registry_registers_operations_that_have_no_kernel(
    tmp_path: Path,
) -> None:
    assert library.stub(compiled(tmp_path, REGISTERING)) == "its operations have no kernel"


def test_a_library_with_kernels_is_no_stub(tmp_path: Path) -> None:
    assert library.stub(compiled(tmp_path, REGISTERING + KERNEL)) == ""


def test_a_library_from_an_empty_source_registers_none(tmp_path: Path) -> None:
    assert (
        library.stub(compiled(tmp_path, f"#if GOOGLE_CUDA\n{REGISTERING}#endif\n"))
        == library.NO_OPERATION
    )


def test_a_mention_in_text_is_no_registration(tmp_path: Path) -> None:
    source = 'extern "C" const char* text() { return "OpDefBuilder"; }\n'
    assert library.stub(compiled(tmp_path, source)) == library.NO_OPERATION


def test_a_library_that_is_not_elf_is_searched_as_it_lies(tmp_path: Path) -> None:
    # The start of a 64-bit Mach-O file, and a symbol as its string table would hold it.
    file = make_file(
        tmp_path / "ops.so",
        b"\xcf\xfa\xed\xfe"
        + bytes(28)
        + b"\0__ZN10tensorflow11register_op20OpDefBuilderReceiverC1EPKc\0",
    )
    assert library.stub(file) == "its operations have no kernel"


def test_an_empty_file_registers_nothing(tmp_path: Path) -> None:
    (tmp_path / "ops.so").touch()
    assert library.stub(tmp_path / "ops.so") == library.NO_OPERATION


def test_the_version_of_nccl_is_found() -> None:
    assert library.nccl(b"\0NCCL version 2.4.7+cuda10.0\0") == "2.4.7+cuda10.0"
    assert library.nccl(b"\0NCCL version 2.25.1+cudaCUDA_MAJOR.CUDA_MINOR\0") == "2.25.1"
    assert library.nccl(b"\0NCCL version %s\0") == ""
    assert library.nccl(b"\0NCCL version mismatch with remote peer\0") == ""


def test_a_placeholder_does_not_hide_the_version_behind_it() -> None:
    assert library.nccl(b"NCCL version %s\0NCCL version 2.16.2\0") == "2.16.2"
