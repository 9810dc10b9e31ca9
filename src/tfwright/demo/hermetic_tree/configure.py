"""Asks what the ./configure of TensorFlow 2.20 asks on Linux, and writes what that release writes.

Features that this tree does not have are refused when chosen.
"""

import os
import sys

TESTS = "-benchmark-test,-no_oss,-oss_excluded,%s"
BAZELRC = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".tf_configure.bazelrc")


def text(variable, question, default=""):
    """Return an answer of the environment, or else of the terminal."""
    answer = os.environ.get(variable)
    if answer is None:
        try:
            answer = input(question)
        except EOFError:
            answer = ""
        print("\n")
    return answer or default


def path(variable, question, default):
    """Return the path of a file that exists."""
    answer = text(variable, "%s [Default is %s]: " % (question, default), default)
    if not os.path.exists(answer):
        sys.exit("Invalid %s: %s does not exist." % (variable, answer))
    return answer


def choice(variable, question, there):
    """Return a yes or no, whose default is no; end the program for a yes to what is not there."""
    chosen = text(variable, question).lower() in ("1", "true", "y", "yes")
    if chosen and not there:
        sys.exit("This tree does not have what %s turns on; answer n." % variable)
    return chosen


def support(variable, feature, there):
    question = "Do you wish to build TensorFlow with %s support? [y/N]: " % feature
    return choice(variable, question, there)


def cuda():
    """Ask for CUDA's versions and compilers, and yield the lines for them."""
    version = "Please specify the hermetic %s version you want to use or leave empty to use the default version. "
    local = "Please specify the local %s path you want to use or leave empty to use the default version. "
    capabilities = (
        "Please specify a list of comma-separated CUDA compute capabilities you want to build with.\n"
        "You can find the compute capability of your device at: https://developer.nvidia.com/cuda-gpus.\n"
        "Each capability can be specified as \"x.y\" or \"compute_xy\". [Default is: 3.5,7.0]: "
    )
    answers = [
        ("HERMETIC_CUDA_VERSION", text("HERMETIC_CUDA_VERSION", version % "CUDA")),
        ("HERMETIC_CUDNN_VERSION", text("HERMETIC_CUDNN_VERSION", version % "cuDNN")),
        (
            "HERMETIC_CUDA_COMPUTE_CAPABILITIES",
            "".join(text("HERMETIC_CUDA_COMPUTE_CAPABILITIES", capabilities, "3.5,7.0").split()),
        ),
        *(
            ("LOCAL_%s_PATH" % part, text("LOCAL_%s_PATH" % part, local % part))
            for part in ("CUDA", "CUDNN", "NCCL")
        ),
    ]
    for variable, answer in answers:
        if answer:
            yield 'build:cuda --repo_env %s="%s"' % (variable, answer)
    choice("TF_CUDA_CLANG", "Do you want to use clang as CUDA compiler? [Y/n]: ", there=False)
    question = "Please specify which gcc should be used by nvcc as the host compiler."
    compiler = os.path.realpath(path("GCC_HOST_COMPILER_PATH", question, "/usr/bin/gcc"))
    yield 'build --action_env GCC_HOST_COMPILER_PATH="%s"' % compiler
    yield "build --config=cuda"


def lines():
    """Ask, and yield the lines for Bazel."""
    python = path("PYTHON_BIN_PATH", "Please specify the location of python.", sys.executable)
    question = "Please input the desired Python library path to use.  Default is [%s]\n" % sys.prefix
    library = text("PYTHON_LIB_PATH", question, sys.prefix)
    yield 'build --action_env PYTHON_BIN_PATH="%s"' % python
    yield 'build --action_env PYTHON_LIB_PATH="%s"' % library
    yield 'build --python_path="%s"' % python
    support("TF_NEED_ROCM", "ROCm", there=False)
    gpu = support("TF_NEED_CUDA", "CUDA", there=True)
    if gpu:
        yield from cuda()
    else:
        question = "Do you want to use Clang to build TensorFlow? [Y/n]: "
        choice("TF_NEED_CLANG", question, there=False)
    question = (
        'Please specify optimization flags to use during compilation when bazel option "--config=opt" is specified '
        "[Default is -Wno-sign-compare]: "
    )
    for flag in text("CC_OPT_FLAGS", question, "-Wno-sign-compare").split():
        yield "build:opt --copt=%s" % flag
        yield "build:opt --host_copt=%s" % flag
    question = "Would you like to interactively configure ./WORKSPACE for Android builds? [y/N]: "
    choice("TF_SET_ANDROID_WORKSPACE", question, there=False)
    yield "test --test_size_filters=small,medium"
    if gpu:
        yield "test --test_env=LD_LIBRARY_PATH"
    left_out = TESTS % ("-no_gpu" if gpu else "-gpu")
    for version, more in (("v1", ""), ("v2", ",-v1only")):
        yield "test:%s --test_tag_filters=%s,-oss_serial%s" % (version, left_out, more)
        yield "test:%s --build_tag_filters=%s%s" % (version, left_out, more)


def main():
    written = list(lines())
    with open(BAZELRC, "w") as stream:
        stream.writelines(line + "\n" for line in written)


if __name__ == "__main__":
    main()
