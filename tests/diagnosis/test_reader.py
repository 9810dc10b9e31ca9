import gzip
import time
from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose, root_of
from tests.failing import fails
from tests.making import make_file

from tfwright.diagnosis import log as log_reading
from tfwright.diagnosis import page, reader
from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family, refinements
from tfwright.diagnosis.reader import Diagnosis
from tfwright.errors import RecipeError
from tfwright.progress import Progress, Silence
from tfwright.terminal.answer import plain

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


def test_the_root_may_stand_before_the_report_of_its_action() -> None:
    found = diagnose(NVCC)
    assert found.first is not None
    assert found.first.line == 2
    assert found.first.action == "output 'a_gpu.cu.pic.o' was not created"
    assert names(found)[:1] == ["nvcc-architecture"]


def test_of_chained_tracebacks_the_first_one_is_the_root() -> None:
    found = diagnose(CHAIN)
    assert found.first is not None
    assert found.first.what.startswith("ImportError: libcublas.so.9.0")
    assert names(found)[0] == "import-cuda-library"


def test_an_exception_of_any_name_ends_a_traceback() -> None:
    log = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nOops.Sorry: no\n'
    )
    found = diagnose(log)
    assert found.first is not None
    assert found.first.what == "Oops.Sorry: no"
    assert names(found) == ["python-exception"]


def test_source_lines_that_a_traceback_quotes_are_no_complaints() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n'
        '    raise ValueError("error: cannot find -lcuda")\n'
        "ModuleNotFoundError: No module named 'mock'\n"
    )
    assert names(diagnose(log)) == ["python-module-missing"]


def test_the_end_of_a_starlark_traceback_is_the_root() -> None:
    log = (
        "ERROR: An error occurred during the fetch of repository 'local_config_cuda':\n"
        "   Traceback (most recent call last):\n"
        '\tFile "/t/third_party/gpus/cuda_configure.bzl", line 1406, column 38, in _impl\n'
        "\t\t_create_local_cuda_repository(repository_ctx)\n"
        "Error in fail: Repository command failed\n"
        "ERROR: Analysis of target '//x' failed; build aborted\n"
    )
    assert root_of(log).what == "Error in fail: Repository command failed"


def test_the_innermost_cause_of_a_java_exception_is_the_root() -> None:
    log = (
        "java.lang.RuntimeException: Unrecoverable error while evaluating node 'X'\n"
        "\tat com.google.A.run(A.java:1)\n"
        "Caused by: java.lang.RuntimeException: java.io.IOException\n"
        "\tat com.google.B.run(B.java:1)\n"
        "Caused by: java.io.IOException: No such thing\n"
    )
    assert root_of(log).what == "Caused by: java.io.IOException: No such thing"


def test_a_summary_is_the_root_only_where_nothing_else_is() -> None:
    found = diagnose("INFO: Elapsed time: 3 s\nFAILED: Build did NOT complete successfully\n")
    assert names(found) == ["bazel-build-failed"]


@pytest.mark.parametrize(
    "prefix",
    [
        "2021-03-04T12:34:56.1234567Z ",
        "[2021-03-04 12:34:56] ",
        "12:34:56 ",
        "#12 345.6 ",
        "build_1  | ",
        "\x1b[31m\x1b[1m",
        "[31m[1m",
    ],
)
def test_what_a_build_service_puts_before_a_line_does_not_hide_it(prefix: str) -> None:
    found = diagnose(f"{prefix}ERROR: Config value 'cuda' is not defined in any .rc file\n")
    assert names(found)[0] == "bazel-no-config"


def test_a_cause_that_a_fact_rules_out_is_not_given() -> None:
    log = "ImportError: undefined symbol: _PyThreadState_Current\n"
    allowed = diagnose(log).matches
    assert all(Facts(system="Linux").allow(match.entry) for match in allowed)


def test_a_wheel_for_gpus_shows_no_error_on_a_machine_without_one() -> None:
    libraries = ("libcudart.so.11.0", "libcublasLt.so.11", "libnvinfer.so.7")
    lines = [
        f"W dso_loader.cc:64] Could not load dynamic library '{name}'; "
        f"dlerror: {name}: cannot open shared object file"
        for name in libraries
    ]
    found = diagnose("\n".join(lines))
    assert found.first is None
    assert [match.entry.id for match in found.harmless] == ["tf-library-not-opened"]


def test_a_built_tool_that_finds_no_cuda_library_is_an_error() -> None:
    log = (
        "bazel-out/host/bin/gen_ops: error while loading shared libraries: "
        "libcudart.so.9.2: cannot open shared object file\n"
    )
    assert names(diagnose(log))[0] == "import-cuda-library"


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
    shown = {"musl": "Alpine Linux", "modules": "module load TensorFlow"}
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


def test_a_packed_log_is_read(tmp_path: Path) -> None:
    path = make_file(tmp_path / "compile.log.gz", gzip.compress(BAZEL.encode()))
    assert names(reader.diagnose(str(path)))[0] == "compile-gettid"


@pytest.mark.parametrize(
    "content", [None, gzip.compress(BAZEL.encode() * 100)[:-20], b"\x1f\x8bno gzip"]
)
def test_a_log_that_cannot_be_read_is_explained(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.log"
    if content is not None:
        path.write_bytes(content)
    with fails(RecipeError, path):
        reader.diagnose(str(path))


@pytest.mark.parametrize(
    ("log", "said"),
    [("", "The log is empty"), ("all is well\n", "No line of this log reports an error")],
)
def test_an_empty_log_is_told_from_one_without_complaints(
    log: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page.show_diagnosis(diagnose(log), None)
    assert said in capsys.readouterr().err


def test_only_what_is_proved_is_called_known(capsys: pytest.CaptureFixture[str]) -> None:
    page.show_diagnosis(diagnose(BAZEL), None)
    shown = capsys.readouterr().err
    assert shown.startswith("Line 8: b.cc:10:1: error: ambiguating")
    assert "  likely:" in shown
    assert "host-source-error" in shown


def test_a_long_log_reports_how_far_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Listening(Silence):
        def __init__(self) -> None:
            self.last = Progress(0, None)

        def progress(self, progress: Progress) -> None:
            self.last = progress

    monkeypatch.setattr(log_reading, "LONG", 1000)
    path = make_file(tmp_path / "a.log", "x\n" * 5000)
    listening = Listening()
    reader.diagnose(str(path), listening)
    assert listening.last == Progress(10_000, 10_000, "B")


def test_an_unknown_error_makes_a_report_without_the_users_name(tmp_path: Path) -> None:
    log = f"ERROR: {Path.home()}/tree/BUILD:12:1: C++ compilation of rule '//b' failed (Exit 1)\n"
    path = page.report(diagnose(log), "/somewhere/compile.log", tmp_path)
    assert path == tmp_path / "compile.log.md"
    written = path.read_text("utf-8")
    assert "C++ compilation of rule '//b' failed (Exit 1)" in written
    assert str(Path.home()) not in written


def test_a_known_error_and_no_error_make_no_report(tmp_path: Path) -> None:
    assert page.report(diagnose(BAZEL), "-", tmp_path) is None
    assert page.report(diagnose("fine\n"), "-", tmp_path) is None


def seconds(log: bytes) -> float:
    begun = time.process_time()
    diagnose(log)
    return time.process_time() - begun


JAVA = """\
java.lang.RuntimeException: Unrecoverable error while evaluating node 'X'
\tat com.google.devtools.build.skyframe.Evaluator.run(Evaluator.java:563)
\tat java.base/java.lang.Thread.run(Unknown Source)
Caused by: java.lang.IllegalStateException: no more
\tat com.google.A.b(A.java:1)
\t... 3 more
Caused by: java.io.IOException: No space left on device
\tat com.google.A.c(A.java:1)
INFO: Elapsed time: 3.1s
Caused by: java.io.IOException: of another trace
"""


def test_of_a_trace_of_java_the_last_cause_is_the_root() -> None:
    assert root_of(JAVA).line == 7


def test_an_exception_of_java_that_holds_its_cause_stays_the_root() -> None:
    log = JAVA.replace(
        "Unrecoverable", "java.io.IOException: No space left on device: Unrecoverable"
    )
    assert root_of(log).line == 1


SEVERAL = """\
Traceback (most recent call last):
  File "/w/train.py", line 1, in <module>
    run()
NotFoundError: 2 root error(s) found.
  (0) Internal: libdevice not found at ./libdevice.10.bc
  (1) Internal: libdevice not found at ./libdevice.10.bc
0 successful operations.
"""


def test_of_several_errors_of_ops_the_first_is_the_root() -> None:
    assert root_of(SEVERAL).line == 5


def test_a_diagnosis_is_one_document_of_json() -> None:
    told = plain(page.diagnosis_data(diagnose(BAZEL)))
    assert told["first"]["line"] == 8


def test_where_the_report_of_an_unknown_message_is_stands_alone_on_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.show_diagnosis(diagnose("error: nobody knows\n"), tmp_path)
    shown = capsys.readouterr()
    assert shown.out == f"{tmp_path}\n"
    assert "This message is not in the catalogue" in shown.err
