import shutil
import subprocess
from pathlib import Path

import pytest

from tfwright.wheel.binary import libraries

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")

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
    library = folder / "ops.so"
    undefined = ["-undefined", "dynamic_lookup"] if shutil.which("otool") else []
    subprocess.run(
        ["c++", "-shared", "-fPIC", *undefined, str(folder / "ops.cc"), "-o", str(library)],
        check=True,
    )
    return library


def test_a_library_that_calls_the_registry_registers_operations_that_have_no_kernel(
    tmp_path: Path,
) -> None:
    found = libraries.registered(compiled(tmp_path, REGISTERING))
    assert found == (True, False)
    assert found.stub == "its operations have no kernel"


def test_a_library_with_kernels_is_no_stub(tmp_path: Path) -> None:
    found = libraries.registered(compiled(tmp_path, REGISTERING + KERNEL))
    assert found == (True, True)
    assert not found.stub


def test_a_library_from_an_empty_source_registers_none(tmp_path: Path) -> None:
    assert (
        libraries.registered(compiled(tmp_path, f"#if GOOGLE_CUDA\n{REGISTERING}#endif\n")).stub
        == "it registers no operation"
    )


def test_a_mention_in_text_is_no_registration(tmp_path: Path) -> None:
    assert not libraries.registered(
        compiled(tmp_path, 'extern "C" const char* text() { return "OpDefBuilder"; }\n')
    ).operations


def test_a_library_that_is_not_elf_is_searched_as_it_lies(tmp_path: Path) -> None:
    # The start of a 64-bit Mach-O file, and a symbol as its string table would hold it.
    library = tmp_path / "ops.so"
    library.write_bytes(
        b"\xcf\xfa\xed\xfe"
        + bytes(28)
        + b"\0__ZN10tensorflow11register_op20OpDefBuilderReceiverC1EPKc\0"
    )
    assert libraries.registered(library) == (True, False)


def test_an_empty_file_registers_nothing(tmp_path: Path) -> None:
    (tmp_path / "ops.so").touch()
    assert libraries.registered(tmp_path / "ops.so") == (False, False)
