"""What is said of an error of no known form: its words, and whose output it is.

The logs are of our own making, in the form in which such tools write.
"""

import pytest
from tests.diagnosis.reading import diagnose, explaining, root_of

STUCK = "... still trying to reach the local Bazel server after 30 seconds ..."
ENOUGH = "Fetched one more file\n" * 20


def test_the_last_words_of_a_log_are_quoted_where_no_line_has_a_known_form() -> None:
    match = explaining(f"Starting\n{STUCK}\n")[0]
    assert match.entry.id == "plain-complaint"
    assert STUCK in match.cause
    assert "does not answer" in match.cause


def test_words_that_a_program_went_on_after_are_no_error() -> None:
    assert diagnose(f"{STUCK}\n{ENOUGH}").first is None


def test_a_line_of_a_known_form_counts_for_more_than_words() -> None:
    assert root_of(f"a.c:1:2: error: expected ';'\n{STUCK}\n").line == 1


def test_the_words_of_an_unknown_tool_count_for_more_than_the_report_of_its_failure() -> None:
    log = "ERROR: /w/BUILD:1:2: Executing genrule //a:b failed: (Exit 1)\nfrob: wheels mismatch\n"
    assert root_of(log).what == "frob: wheels mismatch"


def test_another_tools_error_is_not_mended_by_a_recipe() -> None:
    refused = "connect to host 10.0.0.2 port 22: Connection refused"
    assert explaining(f"curl: {refused}\n")[0].advice.commands
    assert not explaining(f"ssh: {refused}\n")[0].advice


def test_the_line_below_is_the_root_where_a_line_announces_it() -> None:
    log = "Error: could not mend:\nCaused by: java.lang.IllegalStateException: two frobs\n"
    assert root_of(log).line == 2


def test_bazels_families_do_not_speak_of_what_another_tool_says() -> None:
    line = "Error: cannot read the frob: No such file or directory\n"
    assert explaining(line)[0].entry.id == "bazel-action-result"
    assert explaining(f"npm ERR! code 1\n{line}")[0].entry.id == "general-error"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("> Task :app:merge FAILED\nFailed to mend the frob.\n", "Gradle"),
        ("*** An error occurred in MPI_Frob\n", "MPI"),
        ("$ singularity exec a.sif b\nERROR  : Failed to set frobs: Invalid argument\n", "kernel"),
        ("bash: orted: command not found\n", "ssh"),
        (
            (
                "  Warning  FailedScheduling  9s  default-scheduler  0/3 nodes: 3 Insufficient "
                "nvidia.com/gpu."
            ),
            "device plugin",
        ),
        (
            (
                "ImportError: dlopen(/p/site-packages/frob/a.so, 2): Library not loaded: "
                "@rpath/libb.dylib\n  Referenced from: /p/site-packages/frob/a.so\n"
            ),
            "Install frob again",
        ),
        (
            (
                "ERROR: /w/BUILD:1:2: Compiling a/b.cc failed: (Exit 34): Invalid entry 0a1b: expected "
                "output a/b.o does not exist.\n"
            ),
            "remote cache",
        ),
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "Secure Boot"),
        ("$ nvidia-smi\nSegmentation fault\n", "driver's"),
        (
            (
                "ERROR: Could not find a version that satisfies the requirement frob~=3.1.0 "
                "(from versions: 3.0.0, 3.1.0, 3.2.0)\n"
            ),
            "as source",
        ),
        ("> A problem occurred starting process 'command '/opt/frob''\n", "/opt/frob"),
        ("Caused by: java.util.MissingResourceException: no frob\n", "this Java"),
        ("ImportError: libfrob.so: object file has no loadable segments\n", "cut off"),
        ("ImportError: libfrob.so: cannot open shared object file: Permission denied\n", "rights"),
        ("Unknown startup option: '--config=frob'.\n", "before the command"),
        (
            (
                "error running 'git init x' while working with @frob:\n"
                'java.io.IOException: ERROR: process.cc(9): CreateProcessW("git" init x): Nein\n'
            ),
            "not installed",
        ),
        ("frob (exitCode=132, image=a)\n", "signal 4"),
        ("ld: unknown option: --no-undefined\n", "GNU ld"),
        ("python: a/hip_frob.cc:3: frob: Assertion `a == b' failed.", "ROCm"),
        ("npm ERR! frob is not set", "npm"),
        ("error[E0432]: unresolved import `frob`", "Rust"),
        ("The hosted runner lost communication with the server.", "memory or disk"),
        ("frob : The term 'frob' is not recognized as the name of a cmdlet.", "calls a program"),
        ("Exit code 137", "137"),
    ],
)
def test_what_is_said_names_the_tool_and_what_the_line_is_about(log: str, said: str) -> None:
    match = explaining(log)[0]
    assert said in f"{match.cause} {match.remedy}"
