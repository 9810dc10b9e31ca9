import codecs
import gzip
from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose, root_of
from tests.failing import fails
from tests.making import make_file
from tests.results import Notebook

from tfwright.diagnosis import log as log_reading
from tfwright.diagnosis import page, reader
from tfwright.diagnosis.families import Family, refinements
from tfwright.diagnosis.reader import Diagnosis
from tfwright.errors import RecipeError
from tfwright.progress import Progress

CLEAN = sorted(Path(__file__).with_name("clean").iterdir())
HARMLESS = sorted(Path(__file__).with_name("harmless").iterdir())
BAZEL = """\
INFO: From Compiling tensorflow/core/a.cc:
a.cc:1:2: warning: this quotes ": error: " and means nothing
ERROR: /tree/tensorflow/core/BUILD:12:1: C++ compilation of rule \
'//tensorflow/core:b' failed (Exit 1): gcc failed: error executing command
  (cd /execroot && \\
  exec env - \\
  /usr/bin/gcc -c b.cc)
b.cc:9:1: warning: unused variable
b.cc:10:1: error: ambiguating new declaration of 'long int gettid()'
b.cc:11:1: error: 'numeric_limits' is not a member of 'std'
ERROR: /tree/tensorflow/core/BUILD:99:1: C++ compilation of rule \
'//tensorflow/core:c' failed (Exit 1)
gcc: internal compiler error: Killed (program cc1plus)
Target //tensorflow/tools/pip_package:build_pip_package failed to build
FAILED: Build did NOT complete successfully
"""


def names(found: Diagnosis) -> list[str]:
    return [match.entry.id for match in found.matches]


def test_the_root_is_what_the_compiler_says_inside_the_first_failed_action() -> None:
    root = root_of(BAZEL)
    assert root.what == "b.cc:10:1: error: ambiguating new declaration of 'long int gettid()'"
    assert root.action == "C++ compilation of rule '//tensorflow/core:b' failed (Exit 1)"
    assert (root.line, root.where) == (8, "/tree/tensorflow/core/BUILD:12")
    assert root.command.endswith("/usr/bin/gcc -c b.cc)")
    assert root.lines[0] == root.what


def test_the_refinement_of_the_root_comes_first_then_its_family() -> None:
    explaining = [match.entry.id for match in diagnose(BAZEL).matches if match.explains]
    assert explaining == ["compile-gettid", "host-source-error"]


def test_other_complaints_are_named_in_the_order_of_the_log() -> None:
    others = [
        (match.entry.id, match.line) for match in diagnose(BAZEL).matches if not match.explains
    ]
    assert others == [("host-name-missing", 9), ("memory-compiler-killed", 11)]


def test_a_wheel_for_gpus_shows_no_error_on_a_machine_without_one() -> None:
    libraries = ("libcudart.so.11.0", "libcublasLt.so.11", "libnvinfer.so.7")
    lines = [
        f"W dso_loader.cc:64] Could not load dynamic library '{name}'; "
        f"dlerror: {name}: cannot open shared object file"
        for name in libraries
    ]
    found = diagnose("\n".join(lines))
    assert found.first is None
    # TensorRT is optional on a machine with a GPU as well.
    assert [match.entry.id for match in found.harmless] == [
        "tf-library-not-opened",
        "tf-optional-part",
    ]


def test_harmless_lines_are_named_and_are_no_error() -> None:
    log = (
        "WARNING: ignoring http_proxy in environment.\n"
        "Not found: TF GPU device with id 0 was not registered\n"
    )
    found = diagnose(log)
    assert found.first is None
    assert [match.entry.id for match in found.harmless] == ["bazel-remark", "tf-no-gpu"]


@pytest.mark.parametrize("log", CLEAN, ids=lambda path: path.name)
def test_the_log_of_a_good_build_has_no_error(log: Path) -> None:
    found = diagnose(log.read_bytes())
    assert (found.first, found.matches) == (None, ())


@pytest.mark.parametrize("log", HARMLESS, ids=lambda path: path.stem)
def test_what_went_well_has_no_error_however_it_looks(log: Path) -> None:
    assert diagnose(log.read_bytes()).first is None


@pytest.mark.parametrize("family", refinements(), ids=lambda family: family.id)
def test_every_sample_is_found_in_a_log(family: Family) -> None:
    # What a family needs that its own line cannot show.
    shown = {
        "arm": "on a Jetson",
        "musl": "Alpine Linux",
        "modules": "module load TensorFlow",
        "training": "Epoch 1/5",
    }
    around = "".join(f"{shown[need]}\n" for need in family.needs if need in shown)
    found = diagnose(f"[1 / 2] Compiling a.cc\n{around}{family.sample}\n")
    assert family.id in [match.entry.id for match in (*found.matches, *found.harmless)]


def test_colours_bars_binary_junk_and_a_missing_last_newline_do_no_harm() -> None:
    junk = bytes(range(256)) * 50
    bar = b"[1 / 2] Compiling\r\x1b[1A\x1b[K"
    error = b"\x1b[31m\x1b[1mERROR: \x1b[0mConfig value cuda is not defined in any .rc file"
    found = diagnose(junk + b"\n" + bar + error)
    assert names(found)[0] == "bazel-no-config"
    assert found.first is not None
    assert all(line.isprintable() for line in found.first.lines)


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(BAZEL.encode()),
        BAZEL.replace("\n", "\r\n").encode("utf-16"),
        codecs.BOM_UTF16_BE + BAZEL.encode("utf-16-be") + b"\0",
        BAZEL.encode("utf-8-sig"),
        "Größe\n".encode("latin-1") + BAZEL.encode(),
        b"\0" * 100 + BAZEL.encode(),
    ],
    ids=["gzip", "PowerShell", "UTF-16, cut off", "UTF-8 of Windows", "Latin-1", "rotated"],
)
def test_a_log_is_read_however_it_was_kept(tmp_path: Path, content: bytes) -> None:
    path = make_file(tmp_path / "compile.log", content)
    assert names(reader.diagnose(str(path)))[0] == "compile-gettid"


@pytest.mark.parametrize(
    "content",
    [
        None,
        gzip.compress(BAZEL.encode() * 100)[:-20],
        b"\x1f\x8bno gzip",
        b"\x7fELF\x02\x01\0\xff" + BAZEL.encode(),
    ],
)
def test_a_log_that_cannot_be_read_is_explained(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.log"
    if content is not None:
        path.write_bytes(content)
    with fails(RecipeError, path):
        reader.diagnose(str(path))


def test_a_long_log_reports_how_far_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Notebook
) -> None:
    monkeypatch.setattr(log_reading, "LONG", 1000)
    path = make_file(tmp_path / "a.log", "x\n" * 5000)
    reader.diagnose(str(path), listener)
    assert listener.steps[-1] == Progress(10_000, 10_000, "B")


def test_an_unknown_error_makes_a_report_without_the_users_name(tmp_path: Path) -> None:
    log = f"ERROR: {Path.home()}/tree/BUILD:12:1: C++ compilation of rule '//b' failed (Exit 1)\n"
    path = page.write_report(diagnose(log), "/somewhere/compile.log", tmp_path)
    assert path == tmp_path / "compile.log.md"
    written = path.read_text("utf-8")
    assert "C++ compilation of rule '//b' failed (Exit 1)" in written
    assert str(Path.home()) not in written


def test_a_known_error_and_no_error_make_no_report(tmp_path: Path) -> None:
    assert page.write_report(diagnose(BAZEL), "-", tmp_path) is None
    assert page.write_report(diagnose("fine\n"), "-", tmp_path) is None
