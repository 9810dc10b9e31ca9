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


FAILED = "curl: (28) Operation timed out after 30000 milliseconds\n"
RETRY = "Warning: Problem : timeout. Will retry in 1 seconds. 3 retries left.\n"
BARE = "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'\n"
RAISED = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
RESOLVER = "ERROR: pip's dependency resolver does not currently take into account all packages.\n"
WANTS = "tensorflow-cpu 2.16.2 requires six>=1.12.0, which is not installed.\n"
ENDING = """\
Traceback (most recent call last):
  File "s.py", line 5, in __del__
    self.close()
AttributeError: 'NoneType' object has no attribute 'TF_DeleteSession'
"""
APT = """\
Err:1 http://127.0.0.1:9/debian x InRelease
  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)
W: Failed to fetch http://127.0.0.1:9/debian/dists/x/InRelease  Could not connect
W: Some index files failed to download. They have been ignored, or old ones used instead.
"""
HADOOP = (
    "2020-05-03 14:07:40.471816: E tensorflow/core/platform/hadoop/hadoop_file_system.cc:132] "
    "HadoopFileSystem load error: libhdfs.so: cannot open shared object file: No such file or "
    "directory\n"
)
MODULE = (
    "WARNING: For repository 'a', the root module requires module version a@1, but got a@2 in "
    "the resolved dependency graph.\n"
)
WENT_WELL = {
    "a download that was tried again": FAILED + RETRY + "100  1024k\nsaved\nnext\n",
    "an exception that is printed again and again": 2 * BARE + "2.16.2\n",
    "a conflict that pip leaves": RESOLVER + 2 * WANTS,
    "what Python ignores while it ends": f"Exception ignored in: <method>\n{ENDING}",
    "a list that apt goes on without": APT,
    "a file system that TensorFlow goes on without": HADOOP,
    "a warning about a module's version": MODULE,
    "what a service marks for debugging": "##[debug]error: nothing was found\n",
    "what a service marks as a warning": "##[warning]error: nothing was found\n",
    "what a service says of a file": "::warning file=a::error: nothing was found\n",
}
WENT_WRONG = {
    "a download that failed again": FAILED + RETRY + FAILED,
    "a download that was not tried again": FAILED + RETRY,
    "an exception at the end": 2 * BARE,
    "an exception that was raised before": RAISED + 2 * BARE + "2.16.2\n",
    "a package that is not there": WANTS,
    "an exception that ends Python": ENDING,
}


@pytest.mark.parametrize("log", WENT_WELL.values(), ids=WENT_WELL)
def test_what_looks_bad_and_went_well_is_no_error(log: str) -> None:
    assert diagnose(log).first is None


def test_an_exception_that_is_printed_again_and_again_is_named_as_harmless() -> None:
    assert [match.entry.id for match in diagnose(2 * BARE + "2.16.2\n").harmless] == [
        "python-protobuf"
    ]


@pytest.mark.parametrize("log", WENT_WRONG.values(), ids=WENT_WRONG)
def test_the_same_without_a_good_end_is_an_error(log: str) -> None:
    assert diagnose(log).first is not None


@pytest.mark.parametrize(
    "prefix",
    [
        "12:34:56 ",
        "(10:00:02) ",
        "2024-05-01T10:20:30.1234567Z ",
        "[2021-03-04 12:34:56] ",
        "[2024-05-01T10:20:30.123Z] ",
        "#12 345.6 ",
        "web-1  | ",
        "build_1  | ",
        "[variation=,node=linux-x86_64] ",
        ":info:build ",
        "python3.11-tensorflow> ",
        "\x1b_bk;t=1700000000000\x07",
        "\x1b[31m\x1b[1m",
        "[31m[1m",
        "##[error]",
    ],
)
def test_what_a_service_writes_before_a_line_is_no_part_of_it(prefix: str) -> None:
    assert first(f"{prefix}ERROR: Unrecognized option: --x\n")[0] == "bazel-option"


def test_a_driver_that_is_not_there_is_named_though_it_is_no_failure() -> None:
    found = diagnose(
        "I tensorflow/stream_executor/dso_loader.cc:126] Couldn't open CUDA library libcuda.so.1. "
        "LD_LIBRARY_PATH: \n"
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:509] failed call to cuInit: CUresult(-1)\n"
    )
    assert found.first is None
    assert any("NVIDIA's driver" in match.cause for match in found.harmless)
