#!/usr/bin/env python3
"""Asks where CUDA is and for which GPUs to compile; writes .bazelrc."""

import os
import sys


def ask(variable, question, default):
    """Return the variable of the environment, or else what the user types."""
    if os.environ.get(variable):
        return os.environ[variable]
    sys.stdout.write("%s [Default is %s]: " % (question, default))
    sys.stdout.flush()
    return sys.stdin.readline().strip() or default


def require(path):
    """End the program if a file of the toolkit is missing."""
    if not os.path.isfile(path):
        sys.exit("Could not find %s. Is that a CUDA toolkit?" % path)


def main():
    """Ask, check and write."""
    wanted = ask("TF_NEED_CUDA", "Do you wish to build the kernel with CUDA? [y/N]", "n")
    lines = ["-c opt"]
    if wanted.lower() in ("y", "yes", "1"):
        toolkit = ask("CUDA_TOOLKIT_PATH", "Please specify the CUDA toolkit.", "/usr/local/cuda")
        for file in ("bin/nvcc", "include/cuda_runtime.h", "lib64/libcudart_static.a"):
            require(os.path.join(toolkit, file))
        question = "Please specify the compute capabilities, separated by commas."
        capabilities = ask("TF_CUDA_COMPUTE_CAPABILITIES", question, "7.0")
        compiler = ask("GCC_HOST_COMPILER_PATH", "Please specify the gcc for nvcc.", "/usr/bin/gcc")
        require(compiler)
        lines += [
            '--action_env TF_NEED_CUDA="1"',
            '--action_env CUDA_TOOLKIT_PATH="%s"' % toolkit,
            '--action_env TF_CUDA_COMPUTE_CAPABILITIES="%s"' % capabilities,
            '--action_env GCC_HOST_COMPILER_PATH="%s"' % compiler,
        ]
    else:
        lines.append('--action_env TF_NEED_CUDA="0"')
    with open(".bazelrc", "w") as file:
        file.writelines("build %s\n" % line for line in lines)
    print("Configuration finished")


if __name__ == "__main__":
    main()
