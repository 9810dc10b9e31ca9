"""Programs in Python as text: they are read, and never run."""

import ast
import warnings


def parsed(text: str | bytes) -> ast.Module | None:
    """Return what a program means; None if it cannot be said, as of one for Python 2."""
    try:
        with warnings.catch_warnings():
            # Old sources have invalid escapes, which the parser would print on the user's
            # terminal.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    # NUL bytes, and brackets that are nested too deeply.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
