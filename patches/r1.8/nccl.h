// Just enough of NCCL 1.3's interface to compile TensorFlow 1.8's contrib/nccl where NVIDIA ships no NCCL (macOS).
//
// Written for tfwright from the names and signatures that contrib/nccl uses; no code of NVIDIA's. Every call is defined
// here and fails, so nothing is left for the linker to find: TensorFlow imports and runs, and an NCCL op ends with the
// message below instead of an unresolved symbol.

#ifndef TFWRIGHT_NCCL_H_
#define TFWRIGHT_NCCL_H_

#include <cuda_runtime.h>

#define NCCL_MAJOR 1
#define NCCL_MINOR 3
#define NCCL_PATCH 0

#define NCCL_UNIQUE_ID_BYTES 128

typedef struct ncclComm* ncclComm_t;
typedef struct { char internal[NCCL_UNIQUE_ID_BYTES]; } ncclUniqueId;

typedef enum { ncclSuccess = 0, ncclUnsupportedHere = 1 } ncclResult_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin } ncclRedOp_t;
typedef enum { ncclChar, ncclInt, ncclHalf, ncclFloat, ncclDouble, ncclInt64, ncclUint64 } ncclDataType_t;

inline const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "this TensorFlow was built without NCCL: there is none for macOS";
}

inline ncclResult_t ncclGetUniqueId(ncclUniqueId*) { return ncclUnsupportedHere; }

inline ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int) { return ncclUnsupportedHere; }

inline ncclResult_t ncclCommInitAll(ncclComm_t*, int, int*) { return ncclUnsupportedHere; }

inline void ncclCommDestroy(ncclComm_t) {}

inline ncclResult_t ncclReduce(const void*, void*, int, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t) {
  return ncclUnsupportedHere;
}

inline ncclResult_t ncclAllReduce(const void*, void*, int, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return ncclUnsupportedHere;
}

inline ncclResult_t ncclBcast(void*, int, ncclDataType_t, int, ncclComm_t, cudaStream_t) { return ncclUnsupportedHere; }

#endif  // TFWRIGHT_NCCL_H_
