// A product of matrices of floats, row by row, on the CPU and on the first GPU.

#ifndef TENSORFLOW_DEMO_CUDA_MATMUL_H_
#define TENSORFLOW_DEMO_CUDA_MATMUL_H_

extern "C" {

// product (rows x columns) = left (rows x inner) * right (inner x columns).
void DemoMatMul(const float* left, const float* right, int rows, int inner, int columns,
                float* product);

// The same on the GPU; returns 0, or CUDA's number of what went wrong.
int DemoMatMulOnGpu(const float* left, const float* right, int rows, int inner, int columns,
                    float* product);

// CUDA's words for a number that DemoMatMulOnGpu returned.
const char* DemoGpuError(int error);

}  // extern "C"

#endif  // TENSORFLOW_DEMO_CUDA_MATMUL_H_
