// A matrix product, and which CUDA it was built with.
#ifdef TFWRIGHT_DEMO_USING_CUDA
#include "cuda_version.h"
#include "cudnn_version.h"
#else
#define TFWRIGHT_DEMO_CUDA ""
#define TFWRIGHT_DEMO_CUDNN ""
#endif

extern "C" {

const char* demo_cuda() { return TFWRIGHT_DEMO_CUDA; }

const char* demo_cudnn() { return TFWRIGHT_DEMO_CUDNN; }

// Row by row: `left` is rows x inner, `right` is inner x columns.
void demo_matmul(const double* left, const double* right, double* product, int rows, int inner,
                 int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      double sum = 0;
      for (int k = 0; k < inner; ++k) {
        sum += left[row * inner + k] * right[k * columns + column];
      }
      product[row * columns + column] = sum;
    }
  }
}

}  // extern "C"
