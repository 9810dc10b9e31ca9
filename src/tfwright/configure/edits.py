"""The tracked files that ./configure itself edits, so that they differ from the commit."""

TRACKED = frozenset(
    {
        "tensorflow/core/common_runtime/gpu/gpu_device.cc",  # 0.8, 0.9: the compute capabilities
        # 0.8 to 1.0: versions, later WITH_ switches
        "tensorflow/core/platform/default/build_config.bzl",
        "tensorflow/stream_executor/dso_loader.cc",  # 0.8, 0.9: the versions of CUDA and cuDNN
        # 0.8, 0.9: compiler, capabilities
        "third_party/gpus/crosstool/clang/bin/crosstool_wrapper_driver_is_not_gcc",
        "third_party/gpus/cuda/platform.bzl",  # 0.9: the versions of CUDA and cuDNN
        "third_party/mpi/mpi.bzl",  # 1.3 to 2.0, with MPI: whose library it is
    }
)
