"""A wheel in a fresh venv of the target Python, and the programs that are run with it."""
