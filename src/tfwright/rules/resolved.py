"""What Bazel made external repositories of: ``--experimental_repository_resolved_file``."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tfwright.rules.starlark.evaluator import Program
from tfwright.rules.starlark.model import ExhaustedError, Scope, UnknownError

UNREADABLE = (UnknownError, ExhaustedError, RecursionError)
"""What reading a text may end in; a name that stands for itself is followed without an end."""


def pins(text: str) -> dict[str, str]:
    """Return the repositories in such a file by name, each with its digest or commit if it has one.

    One name may be declared several times, with different digests: Bazel tells which it took.
    """
    program = Program({"resolved.bzl": text})
    pinned = {}
    for entry in _entries(program):
        # What cannot be read says nothing about a repository.
        with suppress(*UNREADABLE):
            # The original attributes are those of WORKSPACE; Bazel adds resolved ones next to them.
            attributes = program.force(entry.get("original_attributes"))
            if isinstance(attributes, dict) and "name" in attributes:
                pin = attributes.get("sha256") or attributes.get("commit") or ""
                name = str(program.force(attributes["name"]))
                pinned[name] = str(program.force(pin))
    return pinned


def _entries(program: Program) -> Iterator[dict[Any, Any]]:
    """Yield what the file lists: it is Starlark, ``resolved = [...]``, read here and not run."""
    made = None
    with suppress(*UNREADABLE):
        module = program.module("resolved.bzl")
        made = program.value(ast.Name("resolved", ast.Load()), Scope(module))
    for entry in made if isinstance(made, list) else ():
        if isinstance(entry, dict):
            yield entry
