// Matrices as rows of floats, one row after the other.
#ifndef TENSORFLOW_CORE_KERNELS_MATRIX_H_
#define TENSORFLOW_CORE_KERNELS_MATRIX_H_

#include <cstddef>
#include <vector>

namespace tensorflow {

struct Matrix {
  std::size_t rows;
  std::size_t columns;
  std::vector<float> values;
};

// Returns left x right. The columns of `left` must be as many as the rows of `right`.
Matrix MatMul(const Matrix& left, const Matrix& right);

// Returns `base`, which must be square, multiplied with itself.
Matrix MatrixPower(const Matrix& base, unsigned exponent);

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_KERNELS_MATRIX_H_
