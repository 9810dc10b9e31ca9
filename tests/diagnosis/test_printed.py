"""What tools print, as the formats in their sources have it: which family explains it, and how.

Each message is a format of the source that is named, with names put in its gaps.
"""

import pytest
from tests.diagnosis.reading import diagnose, explaining, root_of


def first(log: str) -> tuple[str, str]:
    """Return the name of the first match that explains the root, and its cause."""
    match = explaining(log)[0]
    return match.entry.id, match.cause


MODULES = {
    # bzlmod/ModuleFileFunction.java
    "module not found in registries: rules_cc@0.99": "bazel-module-not-found",
    "in module dependency chain <root> -> a@1 -> b@2: module not found in registries: b@2": (
        "bazel-module-not-found"
    ),
    "Error accessing registry https://registry.example.org/: timed out": "bazel-module-not-found",
    "Invalid registry URL: no scheme": "bazel-module-not-found",
    "the MODULE.bazel file of re2@1 declares a different version (2)": "bazel-module-versions",
    "the MODULE.bazel file of re2@1 declares a different name (re)": "bazel-module-versions",
    # bzlmod/Selection.java, bzlmod/BazelModuleResolutionFunction.java
    "a@1 depends on c@1 which is not allowed by the multiple_version_override on c, which allows "
    "only [2]": "bazel-module-versions",
    "a@1 depends on c@1 with compatibility level 1, but b@1 depends on c@2 with compatibility level "
    "2 which is different": "bazel-module-versions",
    "multiple_version_override for module c contains version 2, but it doesn't exist in the "
    "dependency graph": "bazel-module-versions",
    "the root module specifies overrides on nonexistent module(s): zlib": "bazel-module-versions",
    "For repository 'a', the root module requires module version a@1, but got a@2 in the resolved "
    "dependency graph. Please update the version in your MODULE.bazel": "bazel-module-versions",
    'Bazel version 7.4.1 is not compatible with module "a@1" (bazel_compatibility: [>=8.0.0])': (
        "bazel-module-versions"
    ),
    "Yanked version detected in your resolved dependency graph: a@1, for the reason: a fault.": (
        "bazel-module-versions"
    ),
    # bzlmod/RegularRunnableExtension.java, bzlmod/SingleExtensionFunction.java
    "@@a~//:a.bzl does not export a module extension called b, yet its use is requested at "
    "https://registry.example.org/modules/a/MODULE.bazel:8:14": "bazel-module-extension",
    "Error loading '@@a~//:a.bzl' for module extensions, requested by /w/MODULE.bazel:6:23: at "
    "/w/a.bzl:3:6: cannot load '@@b~//lib:modules.bzl': no such file": "bazel-module-extension",
    'module extension "pip" from "@@rules_python~//python:e.bzl" does not generate repository "x", '
    'yet it is imported as "x" in the usage at /w/MODULE.bazel:7:28': "bazel-module-extension",
    'module extension "pip" from "@@rules_python~//python:e.bzl" generates repository "x", yet it '
    "is injected via inject_repo() at /w/MODULE.bazel:9:1.": "bazel-module-extension",
    "invalid label for module extension found at @@a~//:MODULE.bazel:56:23: no repo visible as "
    "'@rules_python' here": "bazel-module-extension",
    # bzlmod/BazelLockFileFunction.java and what asks it
    "MODULE.bazel.lock is no longer up-to-date because: the root MODULE.bazel has been modified. "
    "Please run `bazel mod deps --lockfile_mode=update` to update your lockfile.": (
        "bazel-module-lock-file"
    ),
    # cmdline/RepositoryName.java
    "No repository visible as '@rules_python' from main repository": "bazel-module-visibility",
}


@pytest.mark.parametrize(
    "head",
    [
        "ERROR: ",
        "ERROR: Error computing the main repository mapping: ",
        "ERROR: Analysis of target '//a:b' failed; build aborted: ",
    ],
)
@pytest.mark.parametrize("message", MODULES)
def test_bazels_modules_are_explained_behind_every_report(message: str, head: str) -> None:
    log = f"Starting local Bazel server (7.4.1) and connecting to it...\n{head}{message}\n"
    assert root_of(log).line == 2
    assert first(log)[0] == MODULES[message]


def test_a_warning_about_a_modules_version_is_no_error() -> None:
    log = (
        "WARNING: For repository 'a', the root module requires module version a@1, but got a@2 in "
        "the resolved dependency graph.\n"
    )
    assert diagnose(log).first is None


def test_a_rule_that_fails_on_a_value_is_no_unknown_program() -> None:
    log = (
        "ERROR: /o/external/r+/e.bzl:496:33: Traceback (most recent call last):\n"
        '\tFile "/o/external/r+/e.bzl", line 496, column 33, in _f\n'
        '\t\tx = fact["features"]\n'
        "Error: type 'NoneType' has no operator [](string)\n"
        "ERROR: error evaluating module extension @@r+//:e.bzl%crate\n"
    )
    name, cause = first(log)
    assert name == "bazel-starlark-error"
    assert "type 'NoneType' has no operator [](string). That is a fault" in cause


RULE = (
    "ERROR: An error occurred during the fetch of repository 'x':\n"
    "   Traceback (most recent call last):\n"
    '\tFile "/t/a.bzl", line 626, column 13, in _impl\n'
    "\t\tfail(result.stderr)\n"
)


@pytest.mark.parametrize(
    ("quoted", "root"),
    [
        ("Error in fail: Repository command failed\nbash: line 1: realpath: command not found", 6),
        ("Error in fail: x failed: (\n  ERROR: Could not find an activated virtualenv (r)", 6),
        ('Error in fail: \nROCm Configuration Error: ERROR: #define "V" is either', 6),
        ("Error in fail: nothing was found\nERROR: no such package '@y//': BUILD", 5),
        ("Error in fail: nothing was found", 5),
    ],
)
def test_what_a_rule_quotes_is_nearer_than_that_the_rule_stopped(quoted: str, root: int) -> None:
    assert root_of(f"{RULE}{quoted}\nERROR: Analysis of target '//a' failed\n").line == root


def test_a_traceback_that_lost_its_indentation_ends_at_its_message() -> None:
    log = (
        "ERROR: Traceback (most recent call last):\n"
        'File "/t/WORKSPACE", line 100, column 49, in <toplevel>\n'
        'load("@rules_python//python:repositories.bzl", "python_register_toolchains")\n'
        "Error: file '@rules_python//python:repositories.bzl' does not contain symbol 'a'\n"
    )
    assert root_of(log).line == 4
    assert first(log)[0] == "bazel-symbol-not-in-file"


@pytest.mark.parametrize(
    "line",
    [
        "W asm.cc:232] Falling back to the CUDA driver; ptxas does not support CC 8.9",
        "tar: /lib/libcurl.so.4: no version information available (required by tar)",
        "ERROR: Ignored the following versions: 2.1 Requires-Python >=3.9",
        "ERROR: the flag has been removed from Bazel",
    ],
)
def test_what_proves_nothing_is_not_called_known(line: str) -> None:
    assert not any(match.certain for match in diagnose(line + "\n").matches)


def test_what_a_server_prints_as_it_crashes_is_nearer_than_that_it_crashed() -> None:
    log = (
        "FATAL: Server crashed during startup. Now printing /o/server/jvm.out:\n"
        "Unrecognized VM option 'MaxPermSize=1g'\n"
        "Error: Could not create the Java Virtual Machine.\n"
    )
    assert first(log)[0] == "bazel-java-start"


def test_a_module_that_was_only_looked_for_is_not_the_cause() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 18, in swig_import_helper\n'
        "ImportError: No module named '_pywrap_tensorflow_internal'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "a.py", line 20, in swig_import_helper\n'
        "ImportError: dlopen(/x/a.so, 6): Symbol not found: ___darwin_check_fd_set_overflow\n"
    )
    assert root_of(log).line == 9
    assert "newer macOS" in first(log)[1]


FAILED = "curl: (28) Operation timed out after 30000 milliseconds\n"
RETRY = "Warning: Problem : timeout. Will retry in 1 seconds. 3 retries left.\n"


def test_a_failure_counts_only_if_nothing_is_tried_afterwards() -> None:
    done = "100  1024k\nsaved\nnext\n"
    assert diagnose(FAILED + RETRY + done).first is None
    assert diagnose(FAILED + RETRY + FAILED).first is not None
    assert diagnose(FAILED + RETRY).first is not None


def test_an_exception_that_is_printed_again_and_again_is_passed_over() -> None:
    bare = "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'\n"
    raised = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
    assert diagnose(2 * bare + "2.16.2\n").first is None
    assert diagnose(2 * bare).first is not None
    assert diagnose(raised + 2 * bare + "2.16.2\n").first is not None


def test_what_pip_leaves_in_conflict_is_no_failed_installation() -> None:
    head = "ERROR: pip's dependency resolver does not currently take into account all packages.\n"
    wants = "tensorflow-cpu 2.16.2 requires six>=1.12.0, which is not installed.\n"
    assert diagnose(head + 2 * wants).first is None
    assert diagnose(wants).first is not None


def test_what_python_ignores_while_it_ends_is_no_error() -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "s.py", line 5, in __del__\n'
        "    self.close()\n"
        "AttributeError: 'NoneType' object has no attribute 'TF_DeleteSession'\n"
    )
    assert diagnose(f"Exception ignored in: <method>\n{traceback}").first is None
    assert diagnose(traceback).first is not None


def test_times_that_bazel_writes_before_a_line_are_no_part_of_it() -> None:
    log = "(10:00:01) WARNING: error: none\n(10:00:02) ERROR: Unrecognized option: --x\n"
    assert root_of(log).line == 2
    assert first(log)[0] == "bazel-option"


@pytest.mark.parametrize(
    "prefix",
    [
        "(10:00:02) ",
        "2024-05-01T10:20:30.1234567Z ",
        "[2024-05-01T10:20:30.123Z] ",
        "#12 345.6 ",
        "web-1  | ",
        "[variation=,node=linux-x86_64] ",
        ":info:build ",
        "python3.11-tensorflow> ",
        "\x1b_bk;t=1700000000000\x07",
        "##[error]",
    ],
)
def test_what_a_service_writes_before_a_line_is_no_part_of_it(prefix: str) -> None:
    said = "ERROR: Unrecognized option: --x"
    assert first(f"{prefix}{said}\n")[0] == "bazel-option"


@pytest.mark.parametrize("mark", ["##[debug]", "##[warning]", "::warning file=a::"])
def test_what_a_service_marks_as_a_remark_is_no_error(mark: str) -> None:
    assert diagnose(f"{mark}error: nothing was found\n").first is None


def test_what_pip_says_of_its_subprocess_is_less_than_what_that_said() -> None:
    log = (
        "  error: subprocess-exited-with-error\n"
        "  \u00d7 python setup.py egg_info did not run successfully.\n"
        "  ╰─> [1 lines of output]\n"
        "      ModuleNotFoundError: No module named 'Cython'\n"
        "      [end of output]\n"
        "error: metadata-generation-failed\n"
    )
    assert first(log)[0] == "python-module-missing"


def test_a_symbol_of_a_newer_macos_is_told_from_one_that_is_left_out() -> None:
    log = (
        "dyld[9]: Symbol not found: _f\n"
        "  Referenced from: <00000000> /a/b.so (built for macOS 14.0 which is newer than running OS)\n"
        "  Expected in:     <00000000> /usr/lib/libc++.1.dylib\n"
    )
    assert "built for macOS 14.0, and this macOS is older" in first(log)[1]


def test_a_driver_that_is_not_there_is_named_though_it_is_no_failure() -> None:
    found = diagnose(
        "I tensorflow/stream_executor/dso_loader.cc:126] Couldn't open CUDA library libcuda.so.1. "
        "LD_LIBRARY_PATH: \n"
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:509] failed call to cuInit: CUresult(-1)\n"
    )
    assert found.first is None
    assert any("NVIDIA's driver" in match.cause for match in found.harmless)
