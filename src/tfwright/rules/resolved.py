"""What Bazel says that it made external repositories of: the file of ``--experimental_repository_resolved_file``."""

import ast

from tfwright.rules.starlark import Program, Scope


def pins(text: str) -> dict[str, str]:
    """Return the repositories in such a file by name, each with its digest or commit, if it has one; nothing is executed.

    One name may be declared several times, with different digests: Bazel tells which it took.
    """
    program = Program({"resolved.bzl": text})
    module = program.module("resolved.bzl")
    made = program.value(ast.Name("resolved", ast.Load()), Scope(module))
    attributes = (
        [program.force(one["original_attributes"]) for one in made if isinstance(one, dict)]
        if isinstance(made, list)
        else []
    )
    return {
        str(program.force(one["name"])): str(
            program.force(one.get("sha256") or one.get("commit") or "")
        )
        for one in attributes
        if isinstance(one, dict)
    }
