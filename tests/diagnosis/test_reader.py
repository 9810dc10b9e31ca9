import gzip
import io
import time
from pathlib import Path

import pytest

from tfwright.diagnosis import logs, reader, report
from tfwright.diagnosis.catalogue import everything
from tfwright.diagnosis.reader import Diagnosis
from tfwright.errors import RecipeError
from tfwright.progress import Progress, Silence
from tfwright.terminal import diagnose as page

CLEAN = sorted(Path(__file__).with_name("clean").iterdir())
BAZEL = """\
INFO: From Compiling tensorflow/core/a.cc:
a.cc:1:2: warning: this quotes ": error: " and means nothing
ERROR: /tree/tensorflow/core/BUILD:12:1: C++ compilation of rule '//tensorflow/core:b' failed (Exit 1): gcc failed: error executing command
  (cd /execroot && \\
  exec env - \\
  /usr/bin/gcc -c b.cc)
b.cc:9:1: warning: unused variable
b.cc:10:1: error: ambiguating new declaration of 'long int gettid()'
b.cc:11:1: error: 'numeric_limits' is not a member of 'std'
ERROR: /tree/tensorflow/core/BUILD:99:1: C++ compilation of rule '//tensorflow/core:c' failed (Exit 1)
gcc: internal compiler error: Killed (program cc1plus)
Target //tensorflow/tools/pip_package:build_pip_package failed to build
FAILED: Build did NOT complete successfully
"""
NVCC = """\
INFO: From Compiling tensorflow/core/kernels/a_gpu.cu.cc:
nvcc fatal   : Unsupported gpu architecture 'compute_101'
ERROR: /tree/tensorflow/core/kernels/BUILD:5:1: output 'a_gpu.cu.pic.o' was not created
ERROR: /tree/tensorflow/core/kernels/BUILD:5:1: not all outputs were created or valid
"""
CHAIN = """\
Traceback (most recent call last):
  File "pywrap_tensorflow.py", line 58, in <module>
    from tensorflow.python.pywrap_tensorflow_internal import *
ImportError: libcublas.so.9.0: cannot open shared object file: No such file or directory

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "<stdin>", line 1, in <module>
ImportError: Failed to load the native TensorFlow runtime.
"""


def diagnose(log: str | bytes) -> Diagnosis:
    return reader.read(io.BytesIO(log.encode() if isinstance(log, str) else log))


def names(found: Diagnosis) -> list[str]:
    return [match.entry.id for match in found.matches]


def test_the_first_error_of_a_bazel_log_is_its_first_failed_action() -> None:
    found = diagnose(BAZEL)

    assert found.first is not None
    assert found.first.what == "C++ compilation of rule '//tensorflow/core:b' failed (Exit 1)"
    assert (found.first.line, found.first.where) == (3, "/tree/tensorflow/core/BUILD:12")
    assert found.first.command.endswith("/usr/bin/gcc -c b.cc)")
    assert (
        found.first.lines[0]
        == "b.cc:10:1: error: ambiguating new declaration of 'long int gettid()'"
    )


def test_candidates_are_ranked_in_the_order_of_the_log() -> None:
    found = diagnose(BAZEL)

    assert [(match.entry.id, match.line) for match in found.matches] == [
        ("compile-gettid", 8),
        ("compile-limits", 9),
        ("host-out-of-memory", 11),
    ]


def test_an_error_that_stands_before_its_action_is_the_first_one() -> None:
    found = diagnose(NVCC)

    assert found.first is not None
    assert found.first.line == 2
    assert found.first.what == "output 'a_gpu.cu.pic.o' was not created"
    assert names(found) == ["compile-gpu-architecture"]
    assert found.matches[0].explains


def test_of_chained_tracebacks_the_first_one_is_the_root() -> None:
    found = diagnose(CHAIN)

    assert found.first is not None
    assert found.first.what.startswith("ImportError: libcublas.so.9.0")
    assert names(found) == ["import-cuda-library"]
    assert found.matches[0].explains


def test_what_is_known_further_down_does_not_explain_the_first_error() -> None:
    found = diagnose(
        "a.cc:1:1: error: nobody knows this\n" + "x\n" * 500 + "g.cc: No space left on device\n"
    )

    assert [(match.entry.id, match.explains) for match in found.matches] == [
        ("host-disk-full", False)
    ]


def test_a_wheel_for_gpus_says_on_a_machine_without_one_nothing_that_must_be_mended() -> None:
    libraries = ("libcudart.so.11.0", "libcublasLt.so.11", "libnvinfer.so.7")
    lines = [
        f"W dso_loader.cc:64] Could not load dynamic library '{name}'; dlerror: {name}: cannot open shared object file"
        for name in libraries
    ]
    found = diagnose("\n".join(lines))

    assert found.first is None
    assert [match.entry.id for match in found.harmless] == ["run-library-not-loaded"]


def test_a_built_tool_that_finds_no_cuda_is_no_wheel_without_a_gpu() -> None:
    found = diagnose(
        "bazel-out/host/bin/gen_ops: error while loading shared libraries: libcudart.so.9.2: cannot open shared object file\n"
    )

    assert [match.entry.id for match in found.matches] == ["import-cuda-library"]


def test_harmless_lines_are_named_and_are_no_error() -> None:
    found = diagnose(
        "WARNING: ignoring http_proxy in environment.\nNot found: TF GPU device with id 0 was not registered\n"
    )

    assert found.first is None
    assert [match.entry.id for match in found.harmless] == [
        "fetch-proxy-ignored",
        "run-gpu-not-registered",
    ]


@pytest.mark.parametrize("log", CLEAN, ids=lambda path: path.name)
def test_the_log_of_a_good_build_has_no_error(log: Path) -> None:
    found = diagnose(log.read_bytes())

    assert (found.first, found.recognised) == (None, False)


def test_all_samples_are_found_in_one_log() -> None:
    found = diagnose("".join(f"[1 / 2] Compiling a.cc\n{entry.sample}\n" for entry in everything()))

    assert {match.entry.id for match in (*found.matches, *found.harmless)} == {
        entry.id for entry in everything()
    }


def test_colours_bars_binary_junk_and_a_missing_last_newline_do_no_harm() -> None:
    junk = bytes(range(256)) * 50
    bar = b"[1 / 2] Compiling\r\x1b[1A\x1b[K"
    found = diagnose(
        junk
        + b"\n"
        + bar
        + b"\x1b[31m\x1b[1mERROR: \x1b[0mConfig value cuda is not defined in any .rc file"
    )

    assert names(found) == ["bazel-config-undefined"]
    assert found.first is not None
    assert all(line.isprintable() for line in found.first.lines)


def test_an_error_across_two_pieces_is_found_with_its_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "_PIECE", 128)
    found = diagnose(BAZEL)

    assert names(found)[0] == "compile-gettid"
    assert found.matches[0].line == 8


@pytest.mark.parametrize(
    "hostile",
    [
        b": " * 500_000,
        b": error: " * 110_000,
        b"(" * 1_000_000,
        b": Download from " * 60_000,
        b"] Ignoring visible gpu device (" * 32_000,
        b"\n" * 1_000_000,
        b"\nERROR: x: error: y" * 50_000,
        b"\x1b[1" * 300_000,
        b": Output base '" + b"x" * 1_000_000,
    ],
    ids=lambda log: log[:12].decode(errors="replace"),
)
def test_hostile_lines_take_linear_time(hostile: bytes) -> None:
    diagnose(hostile[: len(hostile) // 8])
    shorter, longer = (
        min(_seconds(hostile[:size]) for _ in range(3))
        for size in (len(hostile) // 4, len(hostile))
    )

    assert longer < 12 * shorter + 0.1


def _seconds(log: bytes) -> float:
    begun = time.process_time()
    diagnose(log)
    return time.process_time() - begun


def test_a_packed_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "compile.log.gz"
    path.write_bytes(gzip.compress(BAZEL.encode()))

    assert names(logs.diagnose(str(path)))[0] == "compile-gettid"


@pytest.mark.parametrize(
    "content", [None, gzip.compress(BAZEL.encode() * 100)[:-20], b"\x1f\x8bno gzip"]
)
def test_a_log_that_cannot_be_read_is_explained(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.log"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(RecipeError, match="cannot be read"):
        logs.diagnose(str(path))


@pytest.mark.parametrize(
    ("log", "said"), [("", "It is empty"), ("all is well\n", "Nothing in it complains")]
)
def test_an_empty_log_is_told_from_one_without_complaints(
    log: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page.show_diagnosis(diagnose(log), None, as_json=False)

    assert said in capsys.readouterr().err


def test_a_long_log_tells_how_far_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(Silence):
        def __init__(self) -> None:
            self.last = Progress(0, None)

        def progress(self, progress: Progress) -> None:
            self.last = progress

    monkeypatch.setattr(logs, "_LONG", 1000)
    path = tmp_path / "a.log"
    path.write_text("x\n" * 5000, "utf-8")
    told = Told()
    logs.diagnose(str(path), told)

    assert told.last == Progress(10_000, 10_000, "B")


def test_an_unknown_error_makes_a_report_without_the_users_name(tmp_path: Path) -> None:
    log = (
        BAZEL.replace("/tree", str(Path.home() / "tree"))
        .replace("gettid", "unheard_of")
        .replace("numeric_limits", "more")
        .replace("Killed", "x")
    )
    path = report.write(diagnose(log), "/somewhere/compile.log", tmp_path)

    assert path == tmp_path / "compile.log.md"
    written = path.read_text("utf-8")
    assert "C++ compilation of rule '//tensorflow/core:b' failed (Exit 1)" in written
    assert "/usr/bin/gcc -c b.cc" in written
    assert str(Path.home()) not in written


def test_a_known_error_and_no_error_make_no_report(tmp_path: Path) -> None:
    assert report.write(diagnose(BAZEL), "-", tmp_path) is None
    assert report.write(diagnose("fine\n"), "-", tmp_path) is None
