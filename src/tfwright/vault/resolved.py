"""What Bazel says that it made external repositories of: the file of ``--experimental_repository_resolved_file``."""

import ast

from tfwright.vault.starlark import Program, Scope


def names(text: str) -> frozenset[str]:
    """Return the names of the repositories in such a file, which is a list of dictionaries in Starlark; nothing is executed."""
    program = Program({"resolved.bzl": text})
    module = program.module("resolved.bzl")
    made = program.value(ast.Name("resolved", ast.Load()), Scope(module))
    attributes = [program.force(one["original_attributes"]) for one in made if isinstance(one, dict)] if isinstance(made, list) else []
    return frozenset(str(program.force(one["name"])) for one in attributes if isinstance(one, dict))
