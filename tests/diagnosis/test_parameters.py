"""What a sentence says of a message: the names in it, whole, with and without quotes."""

import pytest
from tests.diagnosis.reading import diagnose

from tfwright.diagnosis import tables

MESSAGES = {
    "/w/gpu.h:2:53: fatal error: third_party/gpus/cuda/include/cuda_fp16.h: "
    "No such file or directory": "header third_party/gpus/cuda/include/cuda_fp16.h.",
    "a.cc:2:5: fatal error: 'cuda/include/cuda.h' file not found": "header cuda/include/cuda.h.",
    "a.cc:4:2: error: no member named 'numeric_limits' in namespace 'std'": "limits in std.",
    "a.cc:4:2: error: no type named 'any' in 'absl::Status'": "the name any in absl::Status.",
    "a.h:78:71: error: context was not declared in this scope": "the name context.",
    "ImportError: /a/b.so: undefined symbol: _ZTVN6icu_639ErrorCodeE": "It belongs to ICU",
    "/opt/conda/compiler_compat/ld: cannot find -lpthread": "the system's own",
    "ERROR: /w/BUILD:9:1: no such target '@bazel_tools//tools/cpp:cc_flags': target 'cc_flags' "
    "not declared in package 'tools/cpp' defined by /o/BUILD": "a part of Bazel itself",
    "bazel-out/host/bin/swig: line 17: swig: command not found": "calls a program (swig)",
    "ERROR: In --require-hashes mode, all requirements must have their versions pinned with ==. "
    "These do not:": "an exact version (==)",
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_cause_names_the_parameters_whole(message: str) -> None:
    found = diagnose(message)

    causes = [match.cause for match in found.matches if match.explains]
    assert any(MESSAGES[message] in cause for cause in causes), causes


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("It failed ({a} {b}): see `df -h . /tmp`.", "It failed (x): see `df -h . /tmp`."),
        ("The path ({b} {a} {b}) fails.", "The path (x) fails."),
        ("Use --linkopt=-L... or more.", "Use --linkopt=-L... or more."),
        ("It says {a}. {b}. More.", "It says x. More."),
        ("It is {a} {b}. Then", "It is x. Then"),
        ("It raised {a}: {b}. Then", "It raised x. Then"),
        ("It failed: {b}: {b} {a}.", "It failed: x."),
        ("It failed: {a}: {b} {b}.", "It failed: x."),
        ("Why {a}? {b}. Then", "Why x? Then"),
    ],
)
def test_an_empty_parameter_leaves_no_gap(template: str, text: str) -> None:
    assert tables.fill(template, {"a": "x", "b": ""}) == text


def test_a_failure_that_make_ignores_is_harmless() -> None:
    log = (
        b"rm: cannot remove 'a.o': No such file or directory\n"
        b"make: [Makefile:6: clean] Error 1 (ignored)\n"
    )
    assert diagnose(log).first is None
    assert diagnose(log.splitlines(keepends=True)[0]).first is not None
