// As in TensorFlow, all of this depends on CUDA: without it the file compiles to nothing.
#if GOOGLE_CUDA

#include "tensorflow/core/framework/op.h"
#include "third_party/nccl/nccl.h"

static_assert(NCCL_MAJOR >= 1, "NCCL counts its major versions from 1");

REGISTER_OP("NcclAllReduce");

#endif  // GOOGLE_CUDA
