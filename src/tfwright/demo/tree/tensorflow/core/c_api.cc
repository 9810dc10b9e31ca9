// What Python reaches through ctypes.

#include <algorithm>
#include <iterator>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/kernels/matrix.h"
#include "tensorflow/core/public/version.h"

using tensorflow::Matrix;

namespace {

Matrix Read(const float* values, std::size_t rows, std::size_t columns) {
  return Matrix{rows, columns, std::vector<float>(values, values + rows * columns)};
}

void Write(const Matrix& matrix, float* values) { std::copy(matrix.values.begin(), matrix.values.end(), values); }

}  // namespace

extern "C" {

const char* TF_Version() { return TF_VERSION_STRING; }

const char* TF_CompilerVersion() { return __VERSION__; }

// Returns the name of the operation at `index`, in alphabetical order; null behind the last one.
const char* TF_OpName(std::size_t index) {
  const auto& names = tensorflow::RegisteredOps();
  return index < names.size() ? std::next(names.begin(), index)->c_str() : nullptr;
}

void TF_MatMul(const float* left, const float* right, std::size_t rows, std::size_t inner, std::size_t columns, float* product) {
  Write(tensorflow::MatMul(Read(left, rows, inner), Read(right, inner, columns)), product);
}

void TF_MatrixPower(const float* base, std::size_t size, unsigned exponent, float* power) {
  Write(tensorflow::MatrixPower(Read(base, size, size), exponent), power);
}

}  // extern "C"
