import platform
import shutil
from pathlib import Path

import pytest
from tests.libraries import compile_library

from tfwright.documents.names import CpuLevel
from tfwright.facts.compatibility import LEVELS
from tfwright.wheel.binary import cpu, elf
from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.inspect import floors
from tfwright.wheel.inspect.library import Library

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="there is no g++ that compiles for x86-64",
)

ORDINARY = (
    "namespace tensorflow {{ float scale{0}(const float* from) {{ return from[0] * from[1] + {0}; "
    "}} }}\n"
)
"""Compiled with vector registers, for whichever CPU the options allow."""
FOR_AVX2 = (
    '__attribute__((target("avx2,fma"))) float {}(float a, float b, float c) {{ return '
    "__builtin_fmaf(a, b, c); }}\n"
)


ASKING = (
    'extern "C" unsigned ask() { unsigned a = 1, b, c, d; '
    '__asm__("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d)); return c; }\n'
)
"""Asks the CPU what it has, as a library does that chooses between functions."""


def of_others(start: str) -> str:
    """Return twenty functions with vector registers that are not TensorFlow's."""
    return "".join(
        f"{start}{number}(const float* from) {{ return from[0] * from[1] + {number}; }}\n"
        for number in range(20)
    )


KERNELS, PLAIN = of_others('__attribute__((target("avx"))) float kernel'), of_others("float plain")


def built(folder: Path, further: str = "", *options: str) -> Path:
    ordinary = "".join(ORDINARY.format(number) for number in range(64))
    return compiled(folder, ordinary + further, *options)


def compiled(folder: Path, source: str, *options: str) -> Path:
    return compile_library(folder / "a.so", source, "-O2", *options)


def read(library: Path) -> Cpu:
    found = elf.read(library.read_bytes())[0].cpu
    assert found is not None
    return found


@pytest.mark.medium
@pytest.mark.parametrize(
    ("options", "level", "extensions"),
    [
        ([], "x86-64", []),
        (["-mavx"], "avx", ["avx"]),
        (["-march=haswell"], "avx2", ["fma", "avx"]),
        (["-mavx512f", "-mavx512vl"], "avx512", ["avx512"]),
    ],
)
def test_what_the_compiler_was_allowed_everywhere_is_needed(
    tmp_path: Path, options: list[str], level: str, extensions: list[str]
) -> None:
    further = (
        "namespace tensorflow { using Long __attribute__((vector_size(64))) = float; void "
        "twice(Long* of) { *of += *of; } }\n" * (level == "avx512")
    )
    found = read(built(tmp_path, further, *options))
    assert found.level == level
    assert [use.extension for use in found.needs][: len(extensions)] == extensions
    assert all(use.function.startswith("_ZN10tensorflow") for use in found.needs)


@pytest.mark.medium
def test_how_it_was_decided_is_said(tmp_path: Path) -> None:
    (use,) = read(built(tmp_path, "", "-mavx")).needs
    assert use.decided == "64 of 64 sampled functions with vector registers"


@pytest.mark.medium
@pytest.mark.parametrize("name", ["xnn_scale__avx2", "_ZN4dnnl9jit_avx2", "checked_at_run_time"])
def test_one_function_that_the_library_chooses_at_run_time_is_not_needed(
    tmp_path: Path, name: str
) -> None:
    found = read(built(tmp_path, 'extern "C" ' + FOR_AVX2.format(name)))
    assert (found.level, found.needs) == ("x86-64", ())


@pytest.mark.medium
@pytest.mark.parametrize("name", ["tensorflow", "Eigen"])
def test_one_function_of_tensorflow_is_enough_to_need_it(tmp_path: Path, name: str) -> None:
    found = read(built(tmp_path, f"namespace {name} {{ {FOR_AVX2.format('fused')} }}\n"))
    assert found.level == "avx2"
    assert [(use.extension, use.decided) for use in found.needs] == [
        ("fma", "found by a search of all code")
    ]
    assert "fused" in found.needs[0].function


@pytest.mark.medium
def test_what_tensorflow_uses_everywhere_is_needed_also_by_a_library_that_asks(
    tmp_path: Path,
) -> None:
    found = read(built(tmp_path, ASKING, "-mavx"))
    assert (found.level, found.unknown) == ("avx", ())


@pytest.mark.medium
def test_what_others_in_a_tensorflow_use_is_chosen_if_the_library_asks(tmp_path: Path) -> None:
    found = read(built(tmp_path, ASKING + KERNELS))
    assert (found.level, found.unknown) == ("x86-64", ())
    assert read(built(tmp_path, KERNELS)).level == "avx"


@pytest.mark.medium
def test_of_a_strangers_library_that_asks_it_is_unknown_what_it_needs(tmp_path: Path) -> None:
    found = read(compiled(tmp_path, ASKING + KERNELS + PLAIN))
    assert found.level == "x86-64"
    assert [use.extension for use in found.unknown] == ["avx"]
    # Nothing but a build for AVX has it nearly everywhere.
    assert read(compiled(tmp_path, ASKING + KERNELS)).level == "avx"


@pytest.mark.medium
def test_where_too_much_looks_like_a_question_the_library_is_taken_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 0f a2 is cpuid, and here a part of numbers that are loaded.
    numbers = "".join(
        f"unsigned number{digit}() {{ return 0xa20f00{digit}0; }}\n" for digit in range(3)
    )
    library = compiled(tmp_path, numbers + KERNELS + PLAIN)
    assert read(library).level == "avx"
    monkeypatch.setattr(cpu, "MOST_QUESTIONS", 2)
    assert read(library).unknown


@pytest.mark.medium
def test_the_search_of_all_code_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = built(tmp_path, f"namespace Eigen {{ {FOR_AVX2.format('fused')} }}\n")
    assert read(library).level == "avx2"
    monkeypatch.setattr(cpu, "MOST", 0)
    assert read(library).level == "x86-64"


@pytest.mark.medium
def test_sse3_in_one_function_of_tensorflow_is_found(tmp_path: Path) -> None:
    further = (
        "namespace tensorflow { using Pair __attribute__((vector_size(16))) = double; "
        '__attribute__((target("sse3"))) Pair sum(Pair a) { return __builtin_ia32_haddpd(a, a); } '
        "}\n"
    )
    assert read(built(tmp_path, further)).level == "sse3"


@pytest.mark.medium
def test_a_constant_that_looks_like_an_instruction_is_none(tmp_path: Path) -> None:
    # c4 e2 f1 98: how a fused multiplication begins, here the number that is loaded.
    further = "namespace tensorflow { unsigned like() { return 0x98f1e2c4; } }\n"
    library = built(tmp_path, further)
    assert b"\xc4\xe2\xf1\x98" in library.read_bytes()
    assert read(library).level == "x86-64"


@pytest.mark.medium
def test_a_stripped_library_is_told_by_the_table_of_its_frames(tmp_path: Path) -> None:
    library = built(tmp_path, "", "-mavx", "-fvisibility=hidden", "-s")
    found = read(library)
    assert (found.level, found.needs[0].function) == ("avx", "")
    assert found.needs[0].decided.startswith("64 of 64 ")


@pytest.mark.medium
def test_code_for_another_machine_has_no_level(tmp_path: Path) -> None:
    content = bytearray(built(tmp_path).read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    read = elf.read(content)[0]
    assert (read.machine, read.cpu) == ("aarch64", None)


@pytest.mark.medium
def test_code_that_is_said_to_end_after_the_file_is_refused(tmp_path: Path) -> None:
    content = bytearray(built(tmp_path).read_bytes())
    headers = int.from_bytes(content[32:40], "little")
    for header in range(headers, headers + 56 * content[56], 56):
        kind, flags = content[header], content[header + 4]
        if kind == 1 and flags & 1:
            content[header + 32 : header + 48] = (2**40).to_bytes(8, "little") * 2
    with pytest.raises(ValueError, match=r"the file ends before them|on top of each other"):
        elf.read(content)


@pytest.mark.medium
@pytest.mark.parametrize(("floor", "kept"), [("sse3", False), ("avx", True), ("avx2", True)])
def test_the_floor_names_library_function_and_how_it_was_decided(
    tmp_path: Path,
    floor: CpuLevel,
    kept: bool,  # noqa: FBT001 a parameter of the table above
) -> None:
    content = built(tmp_path, "", "-mavx").read_bytes()
    library = Library("a.so", 1, (elf.read(content)[0],))
    faults = floors.cpu_faults([library], floor)
    assert (faults == []) is kept
    if not kept:
        assert faults[0].startswith("a.so needs avx (_ZN10tensorflow")
        assert faults[0].endswith("sampled functions with vector registers), the floor is sse3")


def test_every_extension_belongs_to_a_level() -> None:
    assert set(cpu.EXTENSIONS.values()) == set(LEVELS[1:])
