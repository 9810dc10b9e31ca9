import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.making import make_file, make_program

from tfwright.tools.cache import toolchain


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """Headers of a system with the C++ library of one compiler."""
    root = tmp_path / "include"
    write(root / "stdio.h")
    write(root / "c++/12/vector")
    write(root / "x86_64-linux-gnu/c++/12/bits/c++config.h")
    return root


def write(header: Path, text: str = "int a;") -> None:
    make_file(header, text)


def compiler(tmp_path: Path, include: Path) -> Path:
    """A compiler that says where it looks for headers, as gcc 12 and clang do."""
    folders = [
        include / "c++/12",
        include / "x86_64-linux-gnu/c++/12",
        include / "x86_64-linux-gnu",
        include,
    ]
    said = "\n".join(f" {folder}" for folder in folders)
    return make_program(
        tmp_path / "cc",
        f"#!/bin/sh\n[ $1 = -xc++ ] && cat >&2 <<END\n"
        f"#include <...> search starts here:\n{said}\nEnd of search list.\nEND\n"
        "echo ${1#-print-*=}\n",
    )


def headers(tmp_path: Path, include: Path) -> str:
    """What a toolchain records of a compiler's headers."""
    program = str(compiler(tmp_path, include))
    found = toolchain.host_toolchain(
        [program], Path(sys.executable), None, tmp_path / "memo", native=False
    )
    return found[f"headers of {program}"]


@pytest.mark.medium
def test_another_header_of_the_system_makes_another_toolchain(
    tmp_path: Path, include: Path
) -> None:
    before = headers(tmp_path, include)
    assert headers(tmp_path, include) == before
    write(include / "zlib.h")
    assert headers(tmp_path, include) != before


@pytest.mark.medium
@pytest.mark.parametrize(
    "header", ["stdio.h", "c++/12/vector", "x86_64-linux-gnu/c++/12/bits/c++config.h"]
)
def test_a_header_that_was_changed_makes_another_toolchain(
    tmp_path: Path, include: Path, header: str
) -> None:
    before = headers(tmp_path, include)
    write(include / header, "long a;")
    assert headers(tmp_path, include) != before


@pytest.mark.medium
def test_the_library_of_another_compiler_leaves_the_toolchain_as_it_was(
    tmp_path: Path, include: Path
) -> None:
    before = headers(tmp_path, include)
    write(include / "c++/11/vector")
    write(include / "c++/v1/vector")
    write(include / "x86_64-linux-gnu/c++/11/bits/c++config.h")
    assert headers(tmp_path, include) == before


@pytest.mark.medium
def test_a_touched_header_makes_another_toolchain(tmp_path: Path, include: Path) -> None:
    before = headers(tmp_path, include)
    os.utime(include / "stdio.h", (1, 1))
    assert headers(tmp_path, include) != before


def test_the_parts_of_a_toolchain_are_written_down_under_its_digest(tmp_path: Path) -> None:
    tools = {"gcc": "a" * 64}
    assert toolchain.load(tmp_path, toolchain.save(tools, tmp_path)) == tools
    assert toolchain.load(tmp_path, "0") == {}


CLANG = """#!/bin/sh
[ "$1" = -print-prog-name=clang ] && echo {folder}/clang && exit
echo "${{1#-print-*=}}"
"""


@pytest.mark.medium
def test_clang_is_all_that_its_driver_loads(tmp_path: Path) -> None:
    driver = make_program(tmp_path / "wrapper", CLANG.format(folder=tmp_path))
    # A real program, whose shared libraries ldd can list.
    shutil.copyfile("/bin/sh", tmp_path / "clang")
    memo = tmp_path / "memo"
    toolchain.host_toolchain([str(driver)], Path(sys.executable), None, memo, native=False)
    names = {Path(path).name for path in json.loads(memo.read_text("utf-8"))}
    assert "clang" in names
    assert any(name.startswith("libc") for name in names)


def test_another_nvcc_makes_another_toolchain(tmp_path: Path) -> None:
    cuda = tmp_path / "cuda"
    write(cuda / "bin/nvcc")
    write(cuda / "nvvm/bin/cicc")
    write(cuda / "include/cuda.h")

    def programs() -> str:
        found = toolchain.host_toolchain(
            [], Path(sys.executable), cuda, tmp_path / "memo", native=False
        )
        return found["CUDA's programs"]

    before = programs()
    # Bazel looks at the headers itself.
    write(cuda / "include/cuda.h", "long a;")
    assert programs() == before
    write(cuda / "nvvm/bin/cicc", "another one")
    assert programs() != before


def test_a_toolchain_of_an_image_is_its_digest_and_the_python() -> None:
    python = Path(sys.executable)
    tools = toolchain.image_toolchain("sha256:1", python, native=False)
    assert set(tools) == {"image", "machine", "target Python"}
    another = toolchain.image_toolchain("sha256:2", python, native=False)
    assert tools != another


def test_a_cpu_is_a_part_where_the_code_is_made_for_it(tmp_path: Path) -> None:
    python = Path(sys.executable)
    tools = toolchain.image_toolchain("sha256:1", python, native=True)
    assert tools["CPU"]
    of_host = toolchain.host_toolchain([], python, None, tmp_path / "memo", native=True)
    assert of_host["CPU"] == tools["CPU"]


def test_a_compiler_that_is_not_installed_is_no_part(tmp_path: Path) -> None:
    memo = tmp_path / "memo"
    python = Path(sys.executable)
    absent = toolchain.host_toolchain(["no-such-cc"], python, None, memo, native=False)
    written = memo.stat().st_mtime_ns
    assert absent == toolchain.host_toolchain([], python, None, memo, native=False)
    # Nothing was computed the second time, so nothing was written down.
    assert memo.stat().st_mtime_ns == written
