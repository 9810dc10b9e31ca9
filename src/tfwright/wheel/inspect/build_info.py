"""What TensorFlow's build_info says about its build: with which CUDA and cuDNN, from 1.14 on.

Those releases load CUDA's libraries by hand, so the loader knows nothing of them.
"""

import ast
import zipfile
from collections.abc import Iterator

from tfwright.tools.python import sources
from tfwright.wheel import archive

NAME = "/platform/build_info.py"
LARGEST = 64 * 1024
"""Bytes; TensorFlow's have two thousand. Python's parser takes 200 times as much memory."""
LONGEST = 1_000
"""Characters of a value."""
_PAIR = 2


def read(wheel: zipfile.ZipFile) -> tuple[tuple[str, str], ...]:
    """Return the texts that build_info assigns, in either of its forms.

    Later releases assign one dictionary. Empty where the file is missing, or is not Python.
    Raises WheelError where it is too large to be one.
    """
    # Parsed and never imported: the wheel may be hostile, and for another Python.
    tree = sources.parsed(_text(wheel))
    return tuple(_assigned(tree)) if tree else ()


def _text(wheel: zipfile.ZipFile) -> bytes:
    for member in archive.files(wheel):
        # By its end: the package above it is called tensorflow, tensorflow_core or otherwise.
        if member.filename.endswith(NAME):
            return archive.text(wheel, member.filename, LARGEST)
    return b""


def _assigned(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return names and values of all assignments, and of all pairs in a dictionary."""
    for node in ast.walk(tree):
        # TensorFlow 1.15 assigns cuda_version_number = "10.0".
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield from _constant(node.targets[0].id, node.value)
        elif isinstance(node, ast.Tuple) and len(node.elts) == _PAIR:
            # Later releases: OrderedDict([("cuda_version", "12.5.1"), ...]).
            name, value = node.elts
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield from _constant(name.value, value)


def _constant(name: str, node: ast.expr) -> Iterator[tuple[str, str]]:
    """Return a name and its value where that is a plain one."""
    if isinstance(node, ast.Constant) and _is_plain(node.value):
        yield name[:LONGEST], str(node.value)[:LONGEST]


def _is_plain(value: object) -> bool:
    """Say whether a value is a text that is not empty, a number, or true or false."""
    if isinstance(value, str):
        return bool(value)
    # An integer may have so many digits that Python refuses to write them.
    return isinstance(value, int) and value.bit_length() < LONGEST
