"""What one attempt says of its failure, and what people are shown of it."""

from pathlib import Path

import pytest
from tests.diagnosis.reading import explaining
from tests.making import Read, make_file

from tfwright.diagnosis import page, reader
from tfwright.diagnosis.reader import Match
from tfwright.errors import Evidence

TIMEOUT = """\
ERROR: /t/BUILD:1:1: no such package '@grpc//': java.io.IOException: \
Error downloading [https://a/b.zip] to /o/b.zip: connect timed out
"""
GETTID = """\
ERROR: /t/BUILD:9:1: C++ compilation of rule '@grpc//:gpr' failed (Exit 1): gcc failed: \
error executing command
external/grpc/log_linux.cc:43:13: error: ambiguating new declaration of 'long int gettid()'
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log of two attempts that failed for different reasons."""
    return make_file(tmp_path / "compile.log", TIMEOUT + GETTID)


def match(log: Path, start: int = 0, *, killed: bool = False, died: bool = False) -> Match:
    """Return what is known of a run whose log begins at a byte."""
    found = reader.read_failure(log, start, killed=killed, died=died).match
    assert found
    return found


def test_only_what_the_last_attempt_wrote_is_read(log: Path) -> None:
    assert match(log).entry.id == "fetch-connection"
    assert match(log, len(TIMEOUT)).entry.id == "compile-gettid"


def test_people_are_shown_the_cause_that_the_stage_decided_by(log: Path, err: Read) -> None:
    record = reader.read_failure(log, len(TIMEOUT), killed=False, died=False)
    page.tell_cause(Evidence(log=log, failure=record))
    shown = err()
    assert "compile-gettid" in shown
    assert "fetch-connection" not in shown


def test_a_log_without_a_record_is_read_as_a_whole(log: Path, err: Read) -> None:
    page.tell_cause(Evidence(log=log))
    assert "fetch-connection" in err()
    log.write_text("all is well\n", "utf-8")
    page.tell_cause(Evidence(log=log))
    page.tell_cause(Evidence(log=log.with_name("gone.log")))
    assert err() == ""


def test_a_log_that_only_repeats_the_error_adds_nothing_to_it(log: Path, err: Read) -> None:
    log.write_text("icu: the mirror cannot give the commit\n", "utf-8")
    page.tell_cause(Evidence(log=log))
    assert err() == ""


@pytest.mark.parametrize(
    ("seen", "name"), [("killed", reader.OUT_OF_MEMORY), ("died", reader.SERVER_DIED)]
)
def test_what_leaves_no_line_is_known_from_the_outside(
    tmp_path: Path, seen: str, name: str
) -> None:
    log = make_file(tmp_path / "a.log", "[1 / 2] Compiling a.cc\n")
    assert match(log, killed=seen == "killed", died=seen == "died").entry.id == name


def test_a_server_that_a_busy_host_starts_too_slowly_is_no_lack_of_memory(tmp_path: Path) -> None:
    log = make_file(
        tmp_path / "a.log",
        "Starting local Bazel server and connecting to it...\n"
        "... still trying to connect to local Bazel server after 110 seconds ...\n"
        "FATAL: couldn't connect to server (2566) after 120 seconds.\n"
        "Killed non-responsive server process (pid=2566)\n",
    )
    # Bazel then ends with the status that it has when its server died.
    entry = match(log, died=True).entry
    assert (entry.id, entry.retry) == ("bazel-server-too-slow", "pass")


def test_a_run_that_says_nothing_has_no_match(tmp_path: Path) -> None:
    log = make_file(tmp_path / "a.log", "")
    assert reader.read_failure(log, 0, killed=False, died=False) == reader.FailureRecord(None, None)


def test_facts_of_the_build_rule_out_a_cause_and_prove_another() -> None:
    error = "ERROR: WORKSPACE:3:1: name 'http_archive' is not defined\n"
    old, new = (explaining(f"Build label: {bazel}\n{error}")[0] for bazel in ("0.15.0", "0.26.1"))
    assert old.entry.id == "bazel-name-not-defined"
    assert (new.entry.id, new.certain) == ("bazel-http-archive-gone", True)


def test_a_full_disk_is_told_from_a_family_that_only_looks_at_the_disk(tmp_path: Path) -> None:
    log = make_file(tmp_path / "a.log", "/usr/bin/ld: error: a.o: file too short\n")
    damaged = reader.read_failure(log, 0, killed=False, died=False)
    log.write_text("g++: error: a.o: No space left on device\n", "utf-8")
    full = reader.read_failure(log, 0, killed=False, died=False)
    assert (damaged.disk_is_full, full.disk_is_full) == (False, True)
