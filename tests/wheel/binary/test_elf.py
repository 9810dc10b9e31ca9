import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.wheel.binary import elf, elf_sections
from tfwright.wheel.binary.elf import Elf

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("otool") is not None,
    reason="there is no g++ that makes ELF files",
)


def built(folder: Path, source: str, *options: str) -> Path:
    (folder / "library.cc").write_text(source, "utf-8")
    library = folder / "library.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", folder / "library.cc", "-o", library, *options], check=True
    )
    return library


def read(library: Path) -> Elf:
    return elf.read(library.read_bytes())


def test_the_machine_is_named_as_uname_does(tmp_path: Path) -> None:
    assert read(built(tmp_path, "")).machine == platform.machine()


def test_needed_libraries_and_where_they_are_looked_for_are_read(tmp_path: Path) -> None:
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


def test_the_newest_glibc_is_named_with_a_symbol_that_needs_it(tmp_path: Path) -> None:
    # Both are of versions that stay: the first is as old as the port to this machine, the second from glibc 2.25.
    source = "#include <sys/random.h>\n#include <cstdlib>\nvoid* f(void* to) { getrandom(to, 1, 0); return std::malloc(3); }\n"
    need = read(built(tmp_path, source, "-nostartfiles")).requires["GLIBC"]
    assert (need.version, need.symbol) == ("2.25", "getrandom")


def test_packed_relocations_ask_for_the_glibc_that_knows_them() -> None:
    assert elf._parted("GLIBC_ABI_DT_RELR") == ("GLIBC", "2.36")
    assert elf._parted("GLIBC_PRIVATE") == ("", "")


@pytest.mark.parametrize(("abi", "said"), [("0", ("before cxx11",)), ("1", ("cxx11",))])
def test_the_strings_of_the_interface_tell_the_abi(
    tmp_path: Path, abi: str, said: tuple[str, ...]
) -> None:
    source = "#include <string>\nstd::string f(const std::string& one) { return one + one; }\n"
    assert read(built(tmp_path, source, "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={abi}")).strings == said


def test_the_strings_of_the_standard_librarys_own_functions_tell_nothing(tmp_path: Path) -> None:
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
        for name, file in ((".nv_fatbin", "linked"), ("__nv_relfatbin", "relocatable"))
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
