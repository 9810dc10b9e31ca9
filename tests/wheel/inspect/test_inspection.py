import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.failing import fails
from tests.libraries import X86_64, compile_library, fat_binary, macho
from tests.making import Maker, Read

from tfwright.errors import RecipeError
from tfwright.terminal.answer import json_value
from tfwright.wheel import archive, page, record
from tfwright.wheel.binary.cpu import Cpu, Use
from tfwright.wheel.binary.elf import LibraryPart, VersionRequirement
from tfwright.wheel.inspect import cuda, floors, inspection, needs, tags
from tfwright.wheel.inspect.inspection import Inspection
from tfwright.wheel.inspect.leaks import HostDirectory
from tfwright.wheel.inspect.library import Library
from tfwright.wheel.inspect.needs import Summary, WheelNeed

compiler = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("otool") is not None,
    reason="there is no g++ that makes ELF files",
)

LINUX = "small-1.0-cp36-cp36m-manylinux2010_x86_64.whl"
MAC = "small-1.0-cp36-cp36m-macosx_10_11_x86_64.whl"


def wheel_of(folder: Path, name: str, content: Mapping[str, bytes]) -> Path:
    """Make a wheel with binary content and a RECORD that is true."""
    project, version, *tag = name.removesuffix(".whl").split("-")
    metadata = f"{project}-{version}.dist-info"
    described = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    tagged = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {'-'.join(tag)}\n"
    own = {f"{metadata}/METADATA": described.encode(), f"{metadata}/WHEEL": tagged.encode()}
    path = folder / name
    with zipfile.ZipFile(path, "w") as wheel:
        for member, data in {**content, **own}.items():
            wheel.writestr(member, data)
        lines = [record.describe(wheel, member) for member in wheel.infolist()]
        lines.append(record.RecordEntry(f"{metadata}/RECORD", "", ""))
        wheel.writestr(f"{metadata}/RECORD", record.render(lines))
    return path


def library(
    glibc: str = "2.12", architectures: tuple[str, ...] = (), path: str = "a.so"
) -> Library:
    needs, gpu = {"GLIBC": VersionRequirement(glibc, "memcpy")}, dict.fromkeys(architectures, 1)
    part = LibraryPart(system="Linux", machine="x86_64", requires=needs, gpu=gpu)
    return Library(path, 10, (part,))


def mac_library(minimum: str) -> bytes:
    major, minor = map(int, minimum.split("."))
    return macho(X86_64, struct.pack("<4I", 0x24, 16, major << 16 | minor << 8, 0))


def faults(path: Path) -> str:
    return "\n".join(inspection.inspect(path).faults)


def test_a_true_wheel_has_no_fault(make_wheel: Maker) -> None:
    report = inspection.inspect(make_wheel())
    assert (report.project, report.version) == ("small", "1.0")
    assert (report.tags, report.faults) == (("py3-none-any",), ())
    inspection.check_sound(report)


def test_a_wheel_that_is_not_there_is_an_error_and_no_report(tmp_path: Path) -> None:
    with fails(RecipeError, "none.whl"):
        inspection.inspect(tmp_path / "none.whl")


@pytest.mark.parametrize(
    "name", ["bin/tool", "tool", "libtensorflow.so.1.12.0-rc2", "a.so_", "a.so.1a"]
)
def test_a_library_is_known_by_its_content_under_other_names(tmp_path: Path, name: str) -> None:
    content = {f"small/{name}": mac_library("10.13"), "small/Eigen": b"// text"}
    report = inspection.inspect(wheel_of(tmp_path, MAC, content))
    assert [library.path for library in report.libraries] == [f"small/{name}"]
    assert "10.13" in "".join(report.faults)


@compiler
def test_a_library_is_read_with_the_paths_of_its_builder(tmp_path: Path) -> None:
    source = 'extern "C" const char* where() { return "/home/builder/.cache/bazel/a.cc"; }\n'
    made = compile_library(tmp_path / "a.so", source, "-Wl,-rpath,../lib").read_bytes()
    report = inspection.inspect(wheel_of(tmp_path, LINUX, {"small/a.so": made, "small/a.py": b""}))
    (found,) = report.libraries
    assert found.system == "Linux"
    assert (found.path, found.fault) == ("small/a.so", "")
    (leak,) = report.leaks
    assert (leak.file, leak.path) == ("small/a.so", "/home/builder/.cache/bazel/a.cc")
    assert any(leak.path in note for note in report.notes)
    assert any("looks for libraries in ../lib" in note for note in report.notes)


def test_every_file_is_searched_for_the_directories_of_this_host(tmp_path: Path) -> None:
    path = b"/srv/out/toolkits/cuda-11.8"
    content = {
        "small/a.dylib": mac_library("10.11") + path,
        "small/cuda_config.h": b'#define TF_CUDA_TOOLKIT_PATH "%s"\n' % path,
        "small/a.py": b"",
        "small-1.0.dist-info/tfwright.json": b"{}",
    }
    wheel = wheel_of(tmp_path, MAC, content)
    directory = HostDirectory("/srv/out", "the build_out", "Patch it.")
    report = inspection.inspect(wheel, directories=lambda: [directory])
    assert {leak.file for leak in report.leaks} == {"small/a.dylib", "small/cuda_config.h"}
    (note,) = report.notes
    assert note.startswith(
        "2 files (small/a.dylib, small/cuda_config.h) name /srv/out, the build_out of this host"
    )
    assert inspection.inspect(wheel).leaks == ()


def test_for_a_wheel_from_elsewhere_the_directories_of_this_host_are_not_asked_for(
    make_wheel: Maker,
) -> None:
    def directories() -> list[HostDirectory]:
        pytest.fail("only a wheel of ours can have been built here")

    assert inspection.inspect(make_wheel(), directories=directories).leaks == ()


@compiler
@pytest.mark.parametrize(
    ("source", "kind"),
    [('void op() asm("OpKernelRegistrar"); void load() { op(); }\n', "real"), ("", "stub")],
)
def test_nccl_ops_is_said_to_be_real_or_a_stub(tmp_path: Path, source: str, kind: str) -> None:
    content = {"small/_nccl_ops.so": compile_library(tmp_path / "a.so", source).read_bytes()}
    report = inspection.inspect(wheel_of(tmp_path, LINUX, content))
    assert any("a stub" in note for note in report.notes) is (kind == "stub")


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            b"is_cuda_build = True\ncuda_version_number = '10.1'\ncudnn_version_number = ''\n",
            {"is_cuda_build": "True", "cuda_version_number": "10.1"},
        ),
        (
            b"build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('c', os.name)])\n",
            {"cuda_version": "12.5.1"},
        ),
    ],
    ids=["1.15", "later"],
)
def test_what_tensorflow_states_about_its_build_is_read_in_both_of_its_forms(
    tmp_path: Path, text: bytes, stated: dict[str, str]
) -> None:
    content = {"tensorflow/python/platform/build_info.py": text}
    assert dict(inspection.inspect(wheel_of(tmp_path, LINUX, content)).stated) == stated


FAULTY: dict[str, tuple[str, dict[str, bytes], list[str]]] = {
    "a library that is none": (
        LINUX,
        {"small/a.so": b"no library"},
        ["small/a.so cannot be read: it is neither"],
    ),
    "a macOS that is too new for the tag": (
        MAC,
        {"a.so": mac_library("10.12"), "b.so": mac_library("10.13"), "c.so": mac_library("10.11")},
        [
            "b.so needs macOS 10.13, and the tag macosx_10_11_x86_64 promises 10.11",
            " (2 libraries need more than that)",
        ],
    ),
    "another machine or Python than the tags": (
        "small-1.0-cp36-cp36m-manylinux2014_aarch64.whl",
        {"a.cpython-37m-darwin.so": mac_library("10.9")},
        [
            "a.cpython-37m-darwin.so is for x86_64, and the tag is manylinux2014_aarch64",
            "a.cpython-37m-darwin.so is for CPython 37, and the tags are",
        ],
    ),
    "machine code under a tag for any machine": (
        "small-1.0-py3-none-any.whl",
        {"a.so": mac_library("10.9")},
        ["a.so is machine code, and the tag says any machine"],
    ),
    "a member outside the wheel": (LINUX, {"../../bin/sh": b""}, ["would leave the directory"]),
}


@pytest.mark.parametrize(("name", "content", "said"), FAULTY.values(), ids=FAULTY)
def test_a_wheel_that_holds_something_else_than_it_says_is_faulty(
    tmp_path: Path, name: str, content: dict[str, bytes], said: list[str]
) -> None:
    found = faults(wheel_of(tmp_path, name, content))
    assert all(fault in found for fault in said)


@pytest.mark.parametrize("name", ["small/_a.pyd", "small/a.dll", "small/ops.so"])
def test_of_a_library_for_windows_only_the_gpu_code_is_read(tmp_path: Path, name: str) -> None:
    content = {name: b"MZ\x90\x00 library" + fat_binary((2, 80, 0), (1, 80, 0))}
    report = inspection.inspect(wheel_of(tmp_path, "small-1.0-cp312-cp312-win_amd64.whl", content))
    assert not report.faults
    assert report.for_windows
    assert report.notes == (
        f"{name}: is for Windows, and what it needs is not read, apart from GPU code",
    )
    assert report.summary
    assert [*report.summary.gpu] == ["sm_80", "compute_80"]


@pytest.mark.parametrize(
    ("tag", "glibc", "untrue"),
    [
        ("manylinux1", "2.5", 0),
        ("manylinux1", "2.17", 1),
        ("manylinux_2_27", "2.27", 0),
        ("manylinux_2_9", "2.12", 1),
        ("linux", "2.40", 0),
    ],
)
def test_a_manylinux_tag_is_true_if_its_glibc_is_enough(tag: str, glibc: str, untrue: int) -> None:
    path = Path(f"small-1.0-cp36-cp36m-{tag}_x86_64.whl")
    assert len(tags.faults(path, tags.tags_in_name(path), [library(glibc)])) == untrue


@pytest.mark.parametrize("named", ["tensorflow ~=2.16.1", "tensorflow-cpu (~=2.16.1)"])
def test_the_tensorflow_that_a_wheel_requires_is_read(named: str, tmp_path: Path) -> None:
    path = tmp_path / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        stated = f"Name: small\nVersion: 1.0\nRequires-Dist: {named}\nRequires-Dist: six\n"
        wheel.writestr("small-1.0.dist-info/METADATA", stated)
    assert inspection.inspect(path).requires_tensorflow == "~=2.16.1"


def test_a_name_that_does_not_agree_with_what_is_inside_is_a_fault(make_wheel: Maker) -> None:
    path = make_wheel()
    renamed = path.rename(path.with_name("other-2.0-py2-none-any.whl"))
    said = faults(renamed)
    assert "METADATA says small 1.0, the name of the file says other 2.0" in said
    assert "small-1.0.dist-info says small 1.0" in said
    assert "the file WHEEL says py3-none-any, the name says py2-none-any" in said


def encrypted(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def adding(name: str) -> Callable[[Path], None]:
    def add(path: Path) -> None:
        with zipfile.ZipFile(path, "a") as wheel:
            wheel.writestr(name, "import os\n")

    return add


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "not a whole zip archive"),
        (encrypted, "is encrypted"),
        (adding("hidden.py"), "hidden.py is not listed"),
        (adding("small.py"), "small.py is in it twice"),
    ],
    ids=["truncated", "encrypted", "not in RECORD", "twice"],
)
def test_a_damaged_wheel_is_a_fault(
    change: Callable[[Path], object], said: str, make_wheel: Maker
) -> None:
    path = make_wheel()
    change(path)
    assert said in faults(path)


def test_a_name_that_is_no_wheels_name_is_a_fault(make_wheel: Maker) -> None:
    path = make_wheel()
    assert "Invalid wheel filename" in faults(path.rename(path.with_name("wheel.whl")))


def test_a_wheel_with_64_bit_fields_is_read(tmp_path: Path) -> None:
    path = wheel_of(tmp_path, LINUX, {})
    with zipfile.ZipFile(path) as plain, zipfile.ZipFile(tmp_path / "copy", "w") as copy:
        for member in plain.infolist():
            with copy.open(member.filename, "w", force_zip64=True) as target:
                target.write(plain.read(member))
    (tmp_path / "copy").replace(path)
    assert inspection.inspect(path).faults == ()


def test_a_description_that_would_fill_the_memory_is_a_fault(
    make_wheel: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST_HEADERS", 20)
    assert "METADATA has 47 bytes" in faults(make_wheel())


def test_a_report_is_shown_as_a_table_and_as_json(out: Read) -> None:
    one = library(architectures=("sm_70", "compute_70"))
    needs = {"macOS": VersionRequirement("12.0")}
    mac = LibraryPart(system="macOS", machine="arm64", requires=needs)
    libraries = one, Library("b.dylib", 5, (mac,))
    report = Inspection("a.whl", 100, 200, libraries=libraries, notes=("It is small.",))
    page.show_report(report)
    shown = out()
    assert "sm_70 compute_70" in shown
    assert "macOS 12.0" in shown
    assert "note: It is small." in shown
    (linux, _) = json_value(report)["libraries"]
    assert linux["parts"][0]["requires"]["GLIBC"]["version"] == "2.12"


def test_what_a_wheel_needs_and_where_it_finds_cuda_is_shown(out: Read) -> None:
    need = WheelNeed("2.17", "x.data/purelib/tensorflow/a.so", "memcpy")
    unknown = Cpu("sse3", (), (Use("avx", "f", "9 of 9"),))
    asking = LibraryPart(system="Linux", machine="x86_64", cpu=unknown)
    needs = {"GLIBC": need, "CPU": WheelNeed("avx", "a.so", "f", "9 of 9")}
    report = Inspection(
        "small.whl",
        100,
        unpacked=200,
        stated=(("is_cuda_build", "True"),),
        signed_by="0123",
        cuda=(cuda.CudaSource("inside the wheel", ("libcudnn.so.7",)),),
        cuda_in_reach=("cudnn",),
        libraries=(Library("a.so", 10, (asking,), nccl="2.4.7"),),
        summary=Summary(needs, ("cxx11",), {"sm_70": 1}, ("2.4.7",), 1234),
    )
    page.show_report(report)
    # The terminal may be narrow, and break lines.
    shown = " ".join(out().split())
    for line in (
        "the key with the id 0123",
        "libcudnn.so.7: inside the wheel",
        "site-packages/nvidia/*/lib of pip's packages (cudnn)",
        "GLIBC 2.17 tensorflow/a.so: memcpy",
        "needs CPU",
        "1,234 symbols in TensorFlow's namespace, std::string cxx11",
        "NCCL 2.4.7",
        "sse3, or avx: unknown",
    ):
        assert line in shown


def test_the_floor_names_the_library_and_the_symbol_that_need_more() -> None:
    found = [library("2.4"), library("2.18", path="b.so"), library("2.27", path="c.so")]
    assert floors.glibc_faults(found, "2.27") == []
    assert floors.glibc_faults(found, "2.17") == [
        "c.so needs glibc 2.27 (memcpy), the floor is 2.17",
        "b.so needs glibc 2.18 (memcpy), the floor is 2.17",
    ]


def test_every_library_with_gpu_code_must_hold_the_architectures() -> None:
    found = [
        library(),
        library(architectures=("sm_30", "sm_70"), path="b.so"),
        library(architectures=("sm_70", "compute_70"), path="c.so"),
    ]
    assert floors.architecture_faults(found[2:], ("sm_70",)) == []
    assert floors.architecture_faults(found, ("sm_70",)) == [
        "b.so (x86_64) holds code for sm_30 as well, and verify.architectures lists only sm_70"
    ]
    assert floors.architecture_faults(found, ("sm_70", "sm_30")) == [
        "c.so (x86_64) holds no code for sm_30, only for sm_70, compute_70"
    ]
    assert floors.architecture_faults(found[:1], ("sm_30",)) == [
        "no library holds GPU code, wanted is sm_30"
    ]


def test_the_gpu_code_of_a_library_of_nvidia_that_is_packed_into_a_wheel_is_not_its_own() -> None:
    tensorrt = library(architectures=("sm_30", "sm_50"), path="tensorrt/lib/libnvinfer.so.4")
    own = library(architectures=("sm_35", "compute_35"))
    assert [*needs.summarize([tensorrt, own]).gpu] == ["sm_35", "compute_35"]
    assert [*needs.summarize([tensorrt]).gpu] == ["sm_30", "sm_50"]


def test_a_library_about_which_nothing_can_be_said_is_named() -> None:
    assert needs.unreadable_libraries([library(), Library("b.so", 1, fault="it is cut")]) == [
        "b.so cannot be read: it is cut"
    ]


def test_a_library_that_neither_the_wheel_nor_a_system_has_is_outside() -> None:
    def needing(path: str, *needed: str) -> Library:
        return Library(path, 1, (LibraryPart(system="Linux", needed=needed),))

    system = ("libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2", "libpython3.10.so.1.0")
    known = ("libcudart.so.11.0", "libtensorflow_framework.so.2", "libown.so.1")
    op = needing("a/_op.so", *system, *known, "libmpi.so.40")
    assert inspection.outside_libraries([op, needing("a/libown.so.1")]) == ["libmpi.so.40"]
