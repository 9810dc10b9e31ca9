"""Bazel: its binary, its command line, what it prints."""
