"""Asks what the ./configure of TensorFlow 1.12 asks, and writes what that release writes.

The questions, their order, the environment variables that answer them and the lines of
.tf_configure.bazelrc are those of TensorFlow 1.12 on Linux and macOS. So are its ways to fail:
without a Bazel it exits 0 and has written nothing; a refused path is asked for again, ten times;
a crash leaves half a file. Features that this tree does not have are refused when chosen.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys

ATTEMPTS = 10
OLDEST_BAZEL = (0, 15, 0)
YES = ("1", "t", "true", "y", "yes")
NO = ("0", "f", "false", "n", "no")

LINUX = platform.system() == "Linux"
MACOS = platform.system() == "Darwin"


class UserInputError(Exception):
    """An answer that cannot be used."""


class Dialogue:
    """Takes each answer from the environment, else from the terminal, and keeps the bazelrc."""

    def __init__(self, environment, bazelrc):
        self.environment = dict(environment)
        self.bazelrc = bazelrc

    def write(self, line):
        with open(self.bazelrc, "a") as stream:
            stream.write(line + "\n")

    def write_env(self, variable, value):
        self.write('build --action_env %s="%s"' % (variable, value))

    def text(self, variable, question, default):
        """Return a free answer; an empty variable counts as unset."""
        answer = self.environment.get(variable)
        if not answer:
            answer = ask(question)
            print("\n")
        return answer or default

    def choice(self, variable, question, default, yes, no):
        """Return a yes or no; on the terminal only y and n are taken, in the environment more."""
        given = self.environment.get(variable)
        if given is not None:
            return truth(variable, given)
        while True:
            answer = ask("%s [%s]: " % (question, "Y/n" if default else "y/N"))
            chosen = {"y": True, "n": False, "": default}.get(answer.strip().lower())
            if chosen is not None:
                print((yes if chosen else no) + "\n")
                return chosen
            print("Invalid selection: %s" % answer)

    def support(self, variable, feature, default=False):
        """Ask whether a feature is wanted."""
        question = "Do you wish to build TensorFlow with %s support?" % feature
        reply = "%s support will be enabled for TensorFlow." % feature
        return self.choice(variable, question, default, reply, "No " + reply)

    def insist(self, variable, question, default, valid, complaint):
        """Return a path that is `valid`, asked for ten times at most."""
        for _ in range(ATTEMPTS):
            answer = self.text(variable, "%s [Default is %s]: " % (question, default), default)
            if valid(answer):
                return answer
            print(complaint % answer)
            self.environment[variable] = ""
        raise given_up(variable)


def ask(question):
    """Read one line; the end of the input counts as an empty one."""
    try:
        return input(question)
    except EOFError:
        return ""


def truth(variable, given):
    """Read a yes or no from the environment."""
    if given.strip().lower() in YES + NO:
        return given.strip().lower() in YES
    raise UserInputError(
        "Environment variable %s must be set as a boolean indicator.\n"
        "The following are accepted as TRUE : %s.\n"
        "The following are accepted as FALSE: %s.\n"
        "Current value is %s." % (variable, ", ".join(YES), ", ".join(NO), given)
    )


def given_up(setting):
    return UserInputError("Invalid %s setting was provided %d times in a row. Assuming to be a scripting mistake." % (setting, ATTEMPTS))


def absent(feature):
    return UserInputError("This tree has no %s; answer n." % feature)


def trimmed(version, parts):
    """Cut a version to so many parts, filling up with zeros: 9.2.148 to 9.2, 7 to 7.0."""
    return ".".join((version.split(".") + ["0"] * parts)[:parts])


def check_bazel():
    """Stop, with exit status 0 as in TensorFlow, unless a Bazel is there that is new enough."""
    if shutil.which("bazel") is None:
        print("Cannot find bazel. Please install bazel.")
        sys.exit(0)
    said = subprocess.check_output(["bazel", "--batch", "--bazelrc=/dev/null", "version"]).decode()
    label = re.search(r"^Build label: (\S+)", said, re.MULTILINE)
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", label.group(1)) if label else None
    if not numbers:
        print("WARNING: current bazel installation is not a release version.")
        return
    print("You have bazel %s installed." % label.group(1))
    if tuple(map(int, numbers.groups())) < OLDEST_BAZEL:
        print("Please upgrade your bazel installation to version %d.%d.%d or higher to build TensorFlow!" % OLDEST_BAZEL)
        sys.exit(0)


def start_bazelrc(workspace, bazelrc):
    """Empty the file of the answers, and let .bazelrc import it, by its absolute path as 1.12 does."""
    open(bazelrc, "w").close()
    path = os.path.join(workspace, ".bazelrc")
    lines = []
    if os.path.exists(path):
        with open(path) as stream:
            lines = [line for line in stream.read().splitlines() if os.path.basename(bazelrc) not in line]
    with open(path, "w") as stream:
        stream.write("\n".join(lines + ["import " + bazelrc]) + "\n")


def set_python(dialogue, workspace):
    """Ask which Python the wheel is for."""
    question = "Please specify the location of python. [Default is %s]: " % sys.executable
    while True:
        python = dialogue.text("PYTHON_BIN_PATH", question, sys.executable)
        if os.path.isfile(python) and os.access(python, os.X_OK):
            break
        print("Invalid python path: %s cannot be found." % python)
        dialogue.environment["PYTHON_BIN_PATH"] = ""
    dialogue.write_env("PYTHON_BIN_PATH", python)
    dialogue.write_env("PYTHON_LIB_PATH", python_library(dialogue, python))
    dialogue.write('build --python_path="%s"' % python)
    with open(os.path.join(workspace, "tools", "python_bin_path.sh"), "w") as stream:
        stream.write('export PYTHON_BIN_PATH="%s"' % python)


def python_library(dialogue, python):
    """Ask which of that Python's library directories to use; the question ends in a line break."""
    given = dialogue.environment.get("PYTHON_LIB_PATH")
    if given:
        return given
    program = "import site; print('\\n'.join(site.getsitepackages()))"
    found = dialogue.environment.get("PYTHONPATH", "").split(":")
    found += subprocess.check_output([python, "-c", program]).decode().split("\n")
    found = [path for path in dict.fromkeys(found) if os.path.isdir(path)]
    if dialogue.environment.get("USE_DEFAULT_PYTHON_LIB_PATH") == "1":
        return found[0]
    print("Found possible Python library paths:\n  %s" % "\n  ".join(found))
    return ask("Please input the desired Python library path to use.  Default is [%s]\n" % found[0]) or found[0]


def set_feature(dialogue, variable, feature, name, default):
    """Ask about a feature that is a define; a no still gives it a --config to switch it on."""
    wanted = dialogue.support(variable, feature, default)
    dialogue.write("build%s --define with_%s_support=true" % ("" if wanted else ":" + name, name))


def set_platform(dialogue, variable, feature):
    """Ask about a platform that is told to the build by the environment."""
    wanted = dialogue.support(variable, feature)
    dialogue.write_env(variable, int(wanted))
    return wanted


def set_cuda(dialogue):
    """Ask everything about CUDA."""
    toolkit = set_cuda_version(dialogue)
    set_cudnn_version(dialogue, toolkit)
    if LINUX:
        if dialogue.support("TF_NEED_TENSORRT", "TensorRT"):
            raise absent("TensorRT op")
        set_nccl_version(dialogue, toolkit)
    set_capabilities(dialogue)
    if dialogue.environment.get("LD_LIBRARY_PATH", "1") != "1":
        dialogue.write_env("LD_LIBRARY_PATH", dialogue.environment["LD_LIBRARY_PATH"])
    config = set_cuda_compiler(dialogue, toolkit)
    dialogue.write("build --config=" + config)
    dialogue.write("test --config=" + config)


def set_cuda_version(dialogue):
    """Ask for the toolkit until its runtime library is found; return where it lies."""
    default = "/opt/cuda" if LINUX and os.path.exists("/opt/cuda") and not os.path.exists("/usr/local/cuda") else "/usr/local/cuda"
    for _ in range(ATTEMPTS):
        question = "Please specify the CUDA SDK version you want to use. [Leave empty to default to CUDA 9.0]: "
        version = trimmed(dialogue.text("TF_CUDA_VERSION", question, "9.0"), 2)
        question = "Please specify the location where CUDA %s toolkit is installed. Refer to README.md for more details. [Default is %s]: "
        toolkit = dialogue.text("CUDA_TOOLKIT_PATH", question % (version, default), default)
        names = ["lib64/libcudart.so.", "lib/x86_64-linux-gnu/libcudart.so."] if LINUX else ["lib/libcudart."]
        wanted = [os.path.join(toolkit, name + version + (".dylib" if MACOS else "")) for name in names]
        if any(map(os.path.exists, wanted)):
            dialogue.write_env("CUDA_TOOLKIT_PATH", toolkit)
            dialogue.write_env("TF_CUDA_VERSION", version)
            return toolkit
        print("Invalid path to CUDA %s toolkit. %s cannot be found" % (version, wanted))
        dialogue.environment.update(TF_CUDA_VERSION="", CUDA_TOOLKIT_PATH="")
    raise given_up("TF_CUDA_SETTING")


def set_cudnn_version(dialogue, toolkit):
    """Ask for cuDNN until its library is found."""
    for _ in range(ATTEMPTS):
        question = "Please specify the cuDNN version you want to use. [Leave empty to default to cuDNN 7]: "
        version = trimmed(dialogue.text("TF_CUDNN_VERSION", question, "7"), 1)
        question = "Please specify the location where cuDNN %s library is installed. Refer to README.md for more details. [Default is %s]: "
        path = dialogue.text("CUDNN_INSTALL_PATH", question % (version, toolkit), toolkit)
        path = os.path.realpath(os.path.expanduser(path))
        name = "libcudnn.%s.dylib" % version if MACOS else "libcudnn.so.%s" % version
        wanted = [os.path.join(path, "lib" if MACOS else "lib64", name), os.path.join(path, name)]
        if any(map(os.path.exists, wanted)):
            dialogue.write_env("CUDNN_INSTALL_PATH", path)
            dialogue.write_env("TF_CUDNN_VERSION", version)
            return
        print("Invalid path to cuDNN %s toolkit. None of the following files can be found:" % version)
        print("\n".join(wanted))
        dialogue.environment["TF_CUDNN_VERSION"] = ""
    raise given_up("TF_CUDNN")


def set_nccl_version(dialogue, toolkit):
    """Ask for NCCL; version 1 needs no library, a later one does."""
    question = (
        "Please specify the NCCL version you want to use. If NCCL 2.2 is not installed, then you can use version 1.3 that "
        "can be fetched automatically but it may have worse performance with multiple GPUs. [Default is 2.2]: "
    )
    for _ in range(ATTEMPTS):
        version = trimmed(dialogue.text("TF_NCCL_VERSION", question, "2.2"), 1)
        if version == "1" or set_nccl_path(dialogue, toolkit, version):
            dialogue.write_env("TF_NCCL_VERSION", version)
            return
        dialogue.environment["TF_NCCL_VERSION"] = ""
    raise given_up("TF_NCCL")


def set_nccl_path(dialogue, toolkit, version):
    """Ask where NCCL lies; say whether its library and header are there."""
    question = "Please specify the location where NCCL %s library is installed. Refer to README.md for more details. [Default is %s]:"
    path = dialogue.text("NCCL_INSTALL_PATH", question % (version, toolkit), toolkit)
    path = os.path.realpath(os.path.expanduser(path))
    for folder in ("lib", "lib64", "lib/x86_64-linux-gnu"):
        library = os.path.join(path, folder, "libnccl.so." + version)
        headers = os.path.join(path, folder, "../include")
        if os.path.exists(library) and os.path.exists(os.path.join(headers, "nccl.h")):
            dialogue.write_env("NCCL_INSTALL_PATH", os.path.dirname(library))
            dialogue.write_env("NCCL_HDR_PATH", headers)
            return True
    print("Invalid path to NCCL %s toolkit, %s or nccl.h not found." % (version, library))
    return False


def set_capabilities(dialogue):
    """Ask for compute capabilities until all are X.Y and 3.0 at least."""
    question = (
        "Please specify a list of comma-separated Cuda compute capabilities you want to build with.\n"
        "You can find the compute capability of your device at: https://developer.nvidia.com/cuda-gpus.\n"
        "Please note that each additional compute capability significantly increases your build time and binary size. "
        "[Default is: 3.5,7.0]: "
    )
    while True:
        wanted = "".join(dialogue.text("TF_CUDA_COMPUTE_CAPABILITIES", question, "3.5,7.0").split())
        if all(re.match(r"([3-9]|\d\d)\.\d+$", one) for one in wanted.split(",")):
            dialogue.write_env("TF_CUDA_COMPUTE_CAPABILITIES", wanted)
            return
        print("Only compute capabilities 3.0 or higher are supported.")
        dialogue.environment["TF_CUDA_COMPUTE_CAPABILITIES"] = ""


def set_cuda_compiler(dialogue, toolkit):
    """Ask what compiles for the GPU; return the --config that selects it."""
    question = "Do you want to use clang as CUDA compiler?"
    clang = dialogue.choice("TF_CUDA_CLANG", question, False, "Clang will be used as CUDA compiler.", "nvcc will be used as CUDA compiler.")
    dialogue.write_env("TF_CUDA_CLANG", int(clang))
    if clang:
        set_download_clang(dialogue)
        question, variable, default = "Please specify which clang should be used as device and host compiler.", "CLANG_CUDA_COMPILER_PATH", shutil.which("clang")
    else:
        question, variable, default = "Please specify which gcc should be used by nvcc as the host compiler.", "GCC_HOST_COMPILER_PATH", shutil.which("gcc")
        link = os.path.join(toolkit, "bin", "gcc")
        default = os.path.realpath(link) if os.path.islink(link) else default
    dialogue.write_env(variable, dialogue.insist(variable, question, default or "", os.path.exists, "Invalid compiler path. %s cannot be found."))
    return "cuda_clang" if clang else "cuda"


def set_download_clang(dialogue):
    """Ask whether a clang shall be downloaded; this tree downloads nothing."""
    question = "Do you wish to download a fresh release of clang? (Experimental)"
    if dialogue.choice("TF_DOWNLOAD_CLANG", question, False, "Clang will be downloaded and used to compile tensorflow.", "Clang will not be downloaded."):
        raise absent("clang to download")
    dialogue.write_env("TF_DOWNLOAD_CLANG", 0)


def set_optimisation(dialogue):
    """Ask for the flags of --config=opt."""
    question = 'Please specify optimization flags to use during compilation when bazel option "--config=opt" is specified [Default is -march=native]: '
    for flag in dialogue.text("CC_OPT_FLAGS", question, "-march=native").split():
        dialogue.write("build:opt --copt=" + flag)
    dialogue.write("build:opt --host_copt=-march=native")
    dialogue.write("build:opt --define with_default_optimizations=true")


def set_android(dialogue):
    """Ask about Android."""
    question = "Would you like to interactively configure ./WORKSPACE for Android builds?"
    if dialogue.choice("TF_SET_ANDROID_WORKSPACE", question, False, "Searching for NDK and SDK installations.", "Not configuring the WORKSPACE for Android builds."):
        raise absent("Android build")


def main():
    """Hold the dialogue, in the order of 1.12."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", default=os.path.dirname(os.path.abspath(__file__)))
    workspace = parser.parse_args().workspace
    dialogue = Dialogue(os.environ, os.path.join(workspace, ".tf_configure.bazelrc"))
    check_bazel()
    start_bazelrc(workspace, dialogue.bazelrc)
    set_python(dialogue, workspace)
    set_feature(dialogue, "TF_NEED_IGNITE", "Apache Ignite", "ignite", default=True)
    set_feature(dialogue, "TF_ENABLE_XLA", "XLA JIT", "xla", default=LINUX)
    if set_platform(dialogue, "TF_NEED_OPENCL_SYCL", "OpenCL SYCL"):
        raise absent("OpenCL SYCL op")
    if set_platform(dialogue, "TF_NEED_ROCM", "ROCm"):
        raise absent("ROCm op")
    if set_platform(dialogue, "TF_NEED_CUDA", "CUDA"):
        set_cuda(dialogue)
    else:
        set_download_clang(dialogue)
    if dialogue.support("TF_NEED_MPI", "MPI"):
        raise absent("MPI op")
    set_optimisation(dialogue)
    dialogue.write("build:v2 --define=tf_api_version=2")
    set_android(dialogue)


if __name__ == "__main__":
    main()
