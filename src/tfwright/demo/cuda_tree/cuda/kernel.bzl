"""Compiles a kernel by nvcc, for the compute capabilities that were configured."""

load("@local_config_cuda//:settings.bzl", "CAPABILITIES", "COMPILER", "CUDA", "NVCC")

def gencode(capabilities):
    """Return nvcc's flags: machine code for each capability, and PTX of the last for newer GPUs."""
    flags = []
    for capability in capabilities:
        number = capability.replace(".", "")
        code = "sm_" + number
        if capability == capabilities[-1]:
            code = "[sm_{0},compute_{0}]".format(number)
        flags.append("'-gencode=arch=compute_{},code={}'".format(number, code))
    return flags

def cuda_kernel(name, src, hdrs, without):
    """Define a library with the kernel, or with a source that does without CUDA.

    Args:
      name: of the library.
      src: the kernel, a .cu.cc file.
      hdrs: headers that it includes.
      without: the source that is compiled where CUDA was not configured.
    """
    if not CUDA:
        native.cc_library(name = name, srcs = [without] + hdrs, alwayslink = True)
        return

    # --keep gives nvcc's intermediate files names without the process's number, which would
    # otherwise get into the object file.
    flags = ["-x cu", "-c", "-O2", "-std=c++14", "-Xcompiler=-fPIC", "-I.", "--keep"]
    command = ["mkdir -p $(@D)/nvcc &&", NVCC, "-ccbin=" + COMPILER, "--keep-dir=$(@D)/nvcc"]
    native.genrule(
        name = name + "_object",
        srcs = [src] + hdrs,
        outs = [name + ".pic.o"],
        cmd = " ".join(command + flags + gencode(CAPABILITIES) + ["-o $@ $(location %s)" % src]),
        message = "Compiling CUDA kernel",
    )
    native.cc_library(
        name = name,
        srcs = [name + ".pic.o"],
        alwayslink = True,
        deps = ["@local_config_cuda//:runtime"],
    )
