"""Starlark, the language of Bazel's rules, read without running it."""
