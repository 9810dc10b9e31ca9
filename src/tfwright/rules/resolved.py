"""What Bazel made external repositories of: ``--experimental_repository_resolved_file``."""

import ast

from tfwright.rules.starlark.evaluator import Program
from tfwright.rules.starlark.model import Scope


def pins(text: str) -> dict[str, str]:
    """Return the repositories in such a file by name, each with its digest or commit if it has one.

    One name may be declared several times, with different digests: Bazel tells which it took.
    """
    program = Program({"resolved.bzl": text})
    # The file is Starlark, `resolved = [...]`: it is read here, not run.
    module = program.module("resolved.bzl")
    made = program.value(ast.Name("resolved", ast.Load()), Scope(module))
    entries = made if isinstance(made, list) else []
    pinned = {}
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        # The original attributes are those of WORKSPACE; Bazel adds resolved ones next
        # to them.
        attributes = program.force(entry.get("original_attributes"))
        if isinstance(attributes, dict) and "name" in attributes:
            pin = attributes.get("sha256") or attributes.get("commit") or ""
            pinned[str(program.force(attributes["name"]))] = str(
                program.force(pin)
            )
    return pinned
