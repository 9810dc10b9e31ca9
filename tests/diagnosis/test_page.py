"""What people read of a failure: the root error, its causes, and what only looks bad."""

from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose
from tests.making import Read

from tfwright.diagnosis import page
from tfwright.terminal.answer import json_value

GETTID = """\
ERROR: /t/BUILD:9:1: C++ compilation of rule '@grpc//:gpr' failed (Exit 1): gcc failed
external/grpc/log_linux.cc:43:13: error: ambiguating new declaration of 'long int gettid()'
"""
SEVERAL = """\
a.cc:1:2: fatal error: zorp.h: No such file or directory
b.cc:1:1: error: 'x' was not declared in this scope
c.cc:1:1: error: 'y' was not declared in this scope
undefined reference to `foo'
No space left on device
Connection refused
"""


def shown(log: str, err: Read) -> list[str]:
    """Return the lines on standard error."""
    page.show_diagnosis(diagnose(log), None)
    return err().splitlines()


def test_the_root_line_comes_first_then_the_action_and_the_known_cause(
    err: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = shown(GETTID, err)
    root = GETTID.splitlines()[1]
    assert lines[:4] == [
        f"Line 2: {root}",
        "  action: C++ compilation of rule '@grpc//:gpr' failed (Exit 1)",
        "  where:  /t/BUILD:9",
        "  likely: compile-gettid, line 2",
    ]
    assert [line[:10] for line in lines[4:8]] == [
        "    why:  ",
        "    do:   ",
        "    here: ",
        "    seen: ",
    ]
    assert any(line.startswith("  kind:   host-source-error: ") for line in lines)


def test_a_cause_that_the_line_proves_is_called_known(err: Read) -> None:
    lines = shown("Please downgrade your bazel installation to version 0.26.1 or lower", err)
    assert "  known:  configure-bazel-too-new, line 1" in lines


def test_lines_to_type_stay_whole_below_each_other(
    err: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = shown("ModuleNotFoundError: No module named 'numpy'\n", err)
    first = lines.index("    type:      python -m pip install numpy")
    assert lines[first + 1] == ("               invoke pin --recipe NAME --add numpy")


def test_what_follows_the_root_line_is_quoted_and_other_complaints_are_named(err: Read) -> None:
    lines = shown(SEVERAL, err)
    assert lines[1] == "    | b.cc:1:1: error: 'x' was not declared in this scope"
    also = [line for line in lines if line.startswith("  also:")]
    assert also[0].startswith("  also:   host-name-missing, line 2: b.cc:1:1: ")
    assert also[-1] == "  also:   1 other kind of complaint"
    assert len(also) == page.MOST_OTHERS + 1


def test_a_long_complaint_is_cut(err: Read) -> None:
    long = f"b.cc:1:1: error: '{'x' * 200}' was not declared in this scope\n"
    lines = shown(SEVERAL.splitlines()[0] + "\n" + long, err)
    (also,) = [line for line in lines if line.startswith("  also:")]
    assert also.endswith("x …")


def test_what_only_looks_bad_is_named_as_harmless(err: Read) -> None:
    lines = shown("WARNING: ignoring http_proxy in environment.\n", err)
    assert lines[0] == "tfwright recognises no error in this log."
    assert lines[1].startswith("  harmless: bazel-remark, line 1: ")


def test_what_is_harmless_only_without_a_gpu_says_what_to_do_with_one(err: Read) -> None:
    lines = shown("Num GPUs Available:  0\n", err)
    assert lines[0] == "tfwright recognises no error in this log."
    assert "invoke match --gpu NAME" in " ".join(lines)


def test_a_log_without_an_error_is_shown_with_its_end(err: Read) -> None:
    lines = shown("Reading zorp\nReading frob\n\n", err)
    assert lines[1].split() == ["end:", "Reading", "frob"]
    lines = shown("Collecting package metadata: done\nSolving environment: \\\n", err)
    assert "conda was still looking" in " ".join(lines[1:])


def test_an_empty_log_says_how_to_catch_one(err: Read) -> None:
    (line,) = shown("", err)
    assert line.startswith("The log is empty. Bazel writes to standard error")


def test_the_report_of_an_unknown_error_is_alone_on_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = diagnose("ERROR: the zorp went wrong\n")
    page.show_diagnosis(found, Path("/r/log.md"))
    said = capsys.readouterr()
    assert said.out == "/r/log.md\n"
    assert said.err.splitlines()[-1].startswith("  If that does not help")


def test_scripts_get_all_matches_with_what_to_type() -> None:
    said = json_value(page.diagnosis_data(diagnose(SEVERAL)))
    assert said["first"]["line"] == 1
    assert said["lines"] == 6
    assert said["matches"][0]["explains_first_error"] is True
    assert said["matches"][0]["parameters"]["header"] == "zorp.h"
    assert len(said["matches"]) > page.MOST_OTHERS
    assert json_value(page.diagnosis_data(diagnose("all is well\n")))["first"] is None
