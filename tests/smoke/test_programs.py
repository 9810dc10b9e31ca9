"""What of the smoke programs can be held to its word without a TensorFlow."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.making import make_program

from tfwright.smoke import PROGRAMS

Load = Callable[[str], Any]
# Of a TensorFlow 1 whose CUDA is missing, shortened.
NESTED = """Traceback (most recent call last):
  File "pywrap_tensorflow.py", line 58, in <module>
    from tensorflow.python.pywrap_tensorflow_internal import *
ImportError: libcublas.so.9.0: cannot open shared object file: No such file or directory


Failed to load the native TensorFlow runtime.
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that imports a program from its folder, as Python does at its start."""
    monkeypatch.syspath_prepend(PROGRAMS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(name: str) -> ModuleType:
        for path in PROGRAMS.glob("*.py"):
            monkeypatch.delitem(sys.modules, path.stem, raising=False)
        return importlib.import_module(name)

    return load


def test_the_cause_of_a_failed_import_is_shown_and_not_the_traceback_around_it(
    program: Load,
) -> None:
    cause = program("compatibility").cause
    assert cause(ImportError(NESTED)) == (
        "ImportError: libcublas.so.9.0: cannot open shared object file: No such file or directory"
    )
    assert cause(ValueError("first\nsecond")) == "ValueError: first"
    assert cause(ValueError()) == "ValueError: no message"


def test_too_few_gpus_are_a_reason_to_skip(program: Load) -> None:
    compatibility = program("compatibility")
    with pytest.raises(compatibility.Skipped, match="needs 2 GPUs, TensorFlow finds a GPU here"):
        compatibility.insist_on_gpus(1, 2)
    compatibility.insist_on_gpus(2, 2)


@pytest.mark.parametrize(
    ("way", "share"),
    [("growth", 0.95), ("growth by config", 0.5), ("fraction", 0.95), ("fraction", 0.05)],
)
def test_memory_that_was_taken_against_the_wish_is_a_failure(
    program: Load, way: str, share: float
) -> None:
    memory = program("memory")
    said = f"with {way} TensorFlow took {share:.0%} of the GPU's memory"
    with pytest.raises(memory.Failed, match=said):
        memory.insist(way, share, 2 * 10**9)


def test_what_cuda_itself_takes_of_a_small_gpu_is_none(program: Load) -> None:
    memory = program("memory")
    memory.insist("growth", 0.3, 2 * 10**9)
    memory.insist("fraction", 0.27, 16 * 10**9)


def test_a_python_that_loses_the_library_path_is_named(
    program: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library_path = program("library_path")
    # What System Integrity Protection does to programs of the system, simulated.
    script = f'#!/bin/sh\nunset {library_path.VARIABLE}\nexec {sys.executable} "$@"\n'
    protected = make_program(tmp_path / "python", script)
    monkeypatch.setattr(sys, "executable", str(protected))
    said = f"{library_path.VARIABLE} is taken from {protected} when it starts, as SIP does"
    with pytest.raises(library_path.Failed, match=said):
        library_path.check("any")


def test_a_directory_that_is_not_there_is_found_in_the_library_path(
    program: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    library_path = program("library_path")
    monkeypatch.setenv(library_path.VARIABLE, "/usr/lib:/nowhere/cuda/lib64")
    said = "names /nowhere/cuda/lib64, which is not a directory"
    with pytest.raises(library_path.Failed, match=said):
        library_path.check("any")
