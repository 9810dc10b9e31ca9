#include "tensorflow_demo_cuda/matmul.h"

void DemoMatMul(const float* left, const float* right, int rows, int inner, int columns,
                float* product) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = 0;
      for (int i = 0; i < inner; ++i) {
        sum += left[row * inner + i] * right[i * columns + column];
      }
      product[row * columns + column] = sum;
    }
  }
}
