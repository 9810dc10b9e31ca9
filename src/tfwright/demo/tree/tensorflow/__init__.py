"""Two operations on matrices of floats, computed in C++."""

import ctypes
import os

# RTLD_GLOBAL: libraries of further operations find the registry in this one.
_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_demo_ops.so"), mode=ctypes.RTLD_GLOBAL)
_library.TF_Version.restype = ctypes.c_char_p
_library.TF_CompilerVersion.restype = ctypes.c_char_p
_library.TF_OpName.restype = ctypes.c_char_p
_library.TF_OpName.argtypes = [ctypes.c_size_t]

__version__ = _library.TF_Version().decode()
__compiler_version__ = _library.TF_CompilerVersion().decode()


class Matrix(object):
    """Floats in rows of one length."""

    def __init__(self, rows):
        self.rows, self.columns = len(rows), len(rows[0])
        if any(len(row) != self.columns for row in rows):
            raise ValueError("the rows of a matrix are of one length")
        self.values = (ctypes.c_float * (self.rows * self.columns))(*[value for row in rows for value in row])

    def tolist(self):
        """Return the rows as lists."""
        return [list(self.values[start : start + self.columns]) for start in range(0, self.rows * self.columns, self.columns)]


def constant(rows):
    """Return the matrix with these rows."""
    return Matrix(rows)


def matmul(left, right):
    """Return the product of two matrices."""
    if left.columns != right.rows:
        raise ValueError("%d columns do not fit %d rows" % (left.columns, right.rows))
    product = Matrix([[0.0] * right.columns] * left.rows)
    sizes = [ctypes.c_size_t(size) for size in (left.rows, left.columns, right.columns)]
    _library.TF_MatMul(left.values, right.values, *(sizes + [product.values]))
    return product


def matrix_power(base, exponent):
    """Return a square matrix multiplied with itself; power 0 is the identity."""
    if base.rows != base.columns or exponent < 0:
        raise ValueError("a square matrix and an exponent that is not negative are needed")
    power = Matrix([[0.0] * base.columns] * base.rows)
    _library.TF_MatrixPower(base.values, ctypes.c_size_t(base.rows), ctypes.c_uint(exponent), power.values)
    return power


def ops():
    """Return the names of the operations registered so far."""
    names = []
    while _library.TF_OpName(len(names)) is not None:
        names.append(_library.TF_OpName(len(names)).decode())
    return names
