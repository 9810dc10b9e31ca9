"""A product of matrices of floats, computed in C++ or by a CUDA kernel."""

import ctypes
import os

__version__ = "1.0.0"

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_library = ctypes.CDLL(os.path.join(_FOLDER, "_matmul.so"))
_library.DemoGpuError.restype = ctypes.c_char_p


class GpuError(RuntimeError):
    """What CUDA reported: no driver, no GPU, or a failure on it."""


class Matrix(object):
    """Floats in rows of one length."""

    def __init__(self, rows):
        self.rows, self.columns = len(rows), len(rows[0])
        if any(len(row) != self.columns for row in rows):
            raise ValueError("the rows of a matrix are of one length")
        values = [value for row in rows for value in row]
        self.values = (ctypes.c_float * len(values))(*values)

    def tolist(self):
        """Return the rows as lists."""
        starts = range(0, self.rows * self.columns, self.columns)
        return [list(self.values[start : start + self.columns]) for start in starts]


def constant(rows):
    """Return the matrix with these rows."""
    return Matrix(rows)


def matmul(left, right, gpu=False):
    """Return the product of two matrices, computed on the CPU or on the first GPU.

    Raises GpuError if the GPU is asked for and cannot be used.
    """
    if left.columns != right.rows:
        raise ValueError("%d columns do not fit %d rows" % (left.columns, right.rows))
    product = Matrix([[0.0] * right.columns] * left.rows)
    sizes = left.rows, left.columns, right.columns
    compute = _library.DemoMatMulOnGpu if gpu else _library.DemoMatMul
    error = compute(left.values, right.values, *(sizes + (product.values,)))
    if gpu and error:
        raise GpuError(_library.DemoGpuError(error).decode())
    return product
