"""What Bazel made external repositories of: ``--experimental_repository_resolved_file``."""

import ast

from tfwright.rules.starlark import Program, Scope


def pins(text: str) -> dict[str, str]:
    """Return the repositories in such a file by name, each with its digest or commit if it has one.

    One name may be declared several times, with different digests: Bazel tells which it took.
    """
    program = Program({"resolved.bzl": text})
    module = program.module("resolved.bzl")
    made = program.value(ast.Name("resolved", ast.Load()), Scope(module))
    attributes = (
        [program.force(entry["original_attributes"]) for entry in made if isinstance(entry, dict)]
        if isinstance(made, list)
        else []
    )
    return {
        str(program.force(entry["name"])): str(
            program.force(entry.get("sha256") or entry.get("commit") or "")
        )
        for entry in attributes
        if isinstance(entry, dict)
    }
