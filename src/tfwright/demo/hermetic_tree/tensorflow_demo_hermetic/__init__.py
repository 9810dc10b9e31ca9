"""A product of matrices, and the CUDA that its library was built with."""

import ctypes
import os

__version__ = "1.0.0"

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_matmul.so"))
_library.demo_cuda.restype = _library.demo_cudnn.restype = ctypes.c_char_p

CUDA = _library.demo_cuda().decode()
CUDNN = _library.demo_cudnn().decode()


class Matrix(list):
    """Rows of one length."""

    def tolist(self):
        """Return the rows as lists."""
        return [list(row) for row in self]


def constant(rows):
    """Return the matrix with these rows."""
    return Matrix(rows)


def matmul(left, right):
    """Return the product of two matrices."""
    rows, inner, columns = len(left), len(right), len(right[0])
    if any(len(row) != inner for row in left):
        raise ValueError("the columns of the left matrix do not fit the rows of the right one")
    product = (ctypes.c_double * (rows * columns))()
    left, right = (
        (ctypes.c_double * (len(matrix) * len(matrix[0])))(*(value for row in matrix for value in row))
        for matrix in (left, right)
    )
    _library.demo_matmul(left, right, product, rows, inner, columns)
    return Matrix(product[row * columns : (row + 1) * columns] for row in range(rows))
