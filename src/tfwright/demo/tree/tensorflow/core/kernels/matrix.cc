#include "tensorflow/core/kernels/matrix.h"

#include "tensorflow/core/framework/op.h"

namespace tensorflow {

REGISTER_OP("MatMul");
REGISTER_OP("MatrixPower");

Matrix MatMul(const Matrix& left, const Matrix& right) {
  Matrix product{left.rows, right.columns, std::vector<float>(left.rows * right.columns)};
  for (std::size_t row = 0; row < left.rows; ++row) {
    for (std::size_t inner = 0; inner < left.columns; ++inner) {
      const float factor = left.values[row * left.columns + inner];
      for (std::size_t column = 0; column < right.columns; ++column) {
        product.values[row * right.columns + column] += factor * right.values[inner * right.columns + column];
      }
    }
  }
  return product;
}

Matrix MatrixPower(const Matrix& base, unsigned exponent) {
  Matrix power = base;
  for (unsigned factor = 1; factor < exponent; ++factor) {
    power = MatMul(power, base);
  }
  return power;
}

}  // namespace tensorflow
