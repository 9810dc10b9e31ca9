#include <cuda_runtime.h>

#include "tensorflow_demo_cuda/matmul.h"

namespace {

constexpr int kTile = 16;

// Each thread computes one element of the product.
__global__ void MatMulKernel(const float* left, const float* right, int rows, int inner,
                             int columns, float* product) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float sum = 0;
  for (int i = 0; i < inner; ++i) {
    sum += left[row * inner + i] * right[i * columns + column];
  }
  product[row * columns + column] = sum;
}

// Memory of the GPU that is freed with the object.
class Buffer {
 public:
  explicit Buffer(size_t count) : bytes_(count * sizeof(float)) {
    error = cudaMalloc(&place, bytes_);
  }
  ~Buffer() { cudaFree(place); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void Fill(const float* values) {
    if (error == cudaSuccess) error = cudaMemcpy(place, values, bytes_, cudaMemcpyHostToDevice);
  }

  float* place = nullptr;
  cudaError_t error;

 private:
  size_t bytes_;
};

}  // namespace

int DemoMatMulOnGpu(const float* left, const float* right, int rows, int inner, int columns,
                    float* product) {
  const size_t count = static_cast<size_t>(rows) * columns;
  Buffer on_left(static_cast<size_t>(rows) * inner);
  Buffer on_right(static_cast<size_t>(inner) * columns);
  Buffer result(count);
  on_left.Fill(left);
  on_right.Fill(right);
  for (const Buffer* buffer : {&on_left, &on_right, &result}) {
    if (buffer->error != cudaSuccess) return buffer->error;
  }
  const dim3 threads(kTile, kTile);
  const dim3 blocks((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  MatMulKernel<<<blocks, threads>>>(on_left.place, on_right.place, rows, inner, columns,
                                    result.place);
  const cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return launched;
  // The copy waits for the kernel, and reports what went wrong in it.
  return cudaMemcpy(product, result.place, count * sizeof(float), cudaMemcpyDeviceToHost);
}

const char* DemoGpuError(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
