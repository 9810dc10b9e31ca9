"""A wheel in a fresh venv of the target Python, and the programs that are run with it."""

from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
"""Programs that the target Python runs on a module, whose name is the argument.

They import nothing of tfwright.
"""
