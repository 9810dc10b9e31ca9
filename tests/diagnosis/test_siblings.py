"""A family answers messages of its kind that differ in names, versions and tools from each other.

Each line is a tool's format with names of our own in its gaps.
"""

import io

import pytest

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Match


def first(log: str) -> Match:
    """Return the first match that explains the root error."""
    found = reader.read(io.BytesIO(f"{log}\n".encode()))
    return next(match for match in found.matches if match.explains)


LINK = "is a symbolic link. Only regular files and directories may be uploaded to a remote cache."
SIBLINGS = {
    # bazel: remote/UploadManifest, tools/cpp/cc_toolchain_config of a processor without a compiler
    f"ERROR: /w/BUILD:3:1: Executing genrule //a:b failed: Output bazel-out/k8-opt/bin/a/b.h {LINK}": (
        "fetch-cache-refuses-output",
        "the output bazel-out/k8-opt/bin/a/b.h is a symbolic link",
    ),
    f"ERROR: /w/BUILD:9:1: Copying failed: I/O exception: Output bazel-out/x/c {LINK.replace('symbolic', 'dangling symbolic')}": (
        "fetch-cache-refuses-output",
        "is a dangling symbolic link",
    ),
    "ERROR: /w/BUILD:7:1: C++ compilation of rule '//a:b' failed (Exit 1): false failed: error executing "
    "command /bin/false -MD -MF bazel-out/arm64-v8a-opt/bin/a/b.d": (
        "bazel-no-cross-compiler",
        "here arm64-v8a-opt",
    ),
    "ERROR: /w/BUILD:7:1: Compiling a/b.cc failed: (Exit 1): false failed: error executing command (from "
    "target //a:b)": ("bazel-no-cross-compiler", "that no compiler was configured for"),
    # bazel: ActionExecutionFunction, and the script that builds it
    "ERROR: missing input file '//third_party/x:include/y.h':/w/third_party/x/include/y.h (Permission denied)": (
        "bazel-missing-input",
        "the user who builds may not read it",
    ),
    "ERROR: JDK version (1.7) is lower than 1.8, please set $JAVA_HOME.": (
        "bazel-bootstrap-java",
        "JDK version (1.7) is lower",
    ),
    "ERROR: JAVA_HOME (/usr/lib/jvm/x) is not a path to a working JDK.": (
        "bazel-bootstrap-java",
        "names a JRE",
    ),
    "FATAL: bazel crashed due to an internal error. Printing stack trace:\n"
    "java.lang.IllegalStateException: a\n"
    "Caused by: java.lang.NoSuchMethodError: b": (
        "bazel-crashed",
        "another Java than it was made for",
    ),
    # bazel: linux-sandbox-pid1.cc, below a folder of the cache
    'src/main/tools/linux-sandbox-pid1.cc:9: "mount(/, /h/.cache/bazel/_bazel_u/5/s/1/tmp, NULL)": Permission denied': (
        "sandbox-refused",
        "does not allow it to mount",
    ),
    # What XLA says of ptxas and nvlink
    "F xla/service/gpu/nvptx_compiler.cc:9] ptxas returned an error: 'INTERNAL: ptxas 11.1.1 has a bug that "
    "we think can affect XLA. Please use a different version.'": (
        "gpu-ptxas-version",
        "version 11.1.1 is known",
    ),
    "tensorflow.python.framework.errors_impl.InternalError: nvlink 12.4.5 has a bug": (
        "gpu-ptxas-version",
        "refuses the nvlink",
    ),
    # What TensorFlow says where CUDA does not start
    "InternalError: cudaGetDeviceCount() failed. Status: unknown error": (
        "gpu-runtime-start",
        "restart, or load nvidia_uvm",
    ),
    "InternalError: cudaSetDevice() failed. Status: out of memory": (
        "gpu-runtime-start",
        "another process holds it",
    ),
    # clang: DiagnosticDriverKinds, and the wrappers of CUDA's headers
    "clang-15: error: unsupported CUDA gpu architecture: sm_90": (
        "nvcc-clang-architecture",
        "from 16 on",
    ),
    "clang: error: Unsupported CUDA gpu architecture: sm_86": (
        "nvcc-clang-architecture",
        "sm_86 from 13 on",
    ),
    "/l/clang/19/include/__clang_cuda_intrinsics.h:9:10: fatal error: 'surface_functions.h' file not found": (
        "host-header-missing",
        "newer than this clang knows",
    ),
    "clang: error: unsupported option '--copt=-O3'": ("host-option", "an option of Bazel"),
    "gcc: error: unrecognized command line option '--host_copt=-w'": (
        "host-option",
        "an option of Bazel",
    ),
    # gcc: a warning that counts as an error in a header of the system; its driver
    "/usr/include/bits/stdio2.h:64:10: error: '%s' directive truncated [-Werror=format-truncation=]": (
        "host-werror",
        "(-Wformat-truncation)",
    ),
    "g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory": (
        "host-driver",
        "cc1plus",
    ),
    "gcc: error trying to exec 'as': execvp: No such file or directory": (
        "host-driver",
        "as execvp",
    ),
    "/sw/python/include/python3.8/token.h:9:1: error: unknown type name 'PyAPI_FUNC'": (
        "host-name-missing",
        "another header of that name was meant",
    ),
    "/w/tensorflow/compiler/tf2tensorrt/convert/a.cc:9:5: error: 'IPluginV2Ext' does not name a type": (
        "host-name-missing",
        "uses TensorRT",
    ),
    'a.h(7): error: namespace "nvinfer1" has no member "IFoo"': (
        "nvcc-source-error",
        "TensorRT's interface",
    ),
    # nvlink
    "nvlink error   : entry function 'f' with max regcount of 64 calls function 'g' with regcount of 70": (
        "nvcc-ptxas",
        "limited to so many registers",
    ),
    "nvlink error   : Undefined reference to 'x' in 'obj/a.o' (target: sm_70)": (
        "nvcc-ptxas",
        "in none of the objects",
    ),
    "nvlink fatal   : No input files specified": ("nvcc-ptxas", "is empty"),
    # gold: x86_64.cc, aarch64.cc; GNU ld: elf64-x86-64.c
    "/usr/bin/ld.gold: error: /o/gcc/9/crtend.o: unsupported reloc 41 against global symbol f": (
        "link-older-than-objects",
        "unsupported reloc 41",
    ),
    "/usr/bin/ld: /s/lib/libx.a(y.o): unrecognized relocation (0x2a) in section `.text'": (
        "link-older-than-objects",
        "older than the compiler",
    ),
    "/usr/bin/ld: a/b.o: unknown relocation type 0x2c": (
        "link-older-than-objects",
        "Two installations are mixed",
    ),
    # Apple's ld and dyld
    "ld: -lto_library library filename must be 'libLTO.dylib'": ("link-other", "is not Apple's"),
    "ImportError: dlopen(/p/_x.so, 0x0002): tried: '/p/_x.so' (duplicate LC_RPATH '/q')": (
        "load-no-suitable-image",
        "(-rpath) twice",
    ),
    # Python: names that its own library lacks
    "AttributeError: module 'typing' has no attribute '_GenericAlias'": (
        "python-name-missing",
        "private to Python's own typing",
    ),
    "AttributeError: module 'importlib.metadata' has no attribute 'packages_distributions'": (
        "python-name-missing",
        "Python's own library",
    ),
    "AttributeError: module 'asyncio' has no attribute 'timeout'": (
        "python-name-missing",
        "Python's own library",
    ),
    # ld and gold: an object that is PIC already, a library under two names, one that no flag names
    "/usr/bin/ld: bazel-out/x/_objs/a/b.pic.o: relocation R_X86_64_PC32 against symbol `f' can not be used "
    "when making a shared object; recompile with -fPIC": ("link-not-pic", "its name says so"),
    "/usr/bin/ld.gold: error: bazel-out/host/bin/external/png/_objs/a.o: multiple definition of 'png_free'\n"
    "/usr/bin/ld.gold: bazel-out/host/bin/external/libpng_archive/_objs/b.o: previous definition here": (
        "link-duplicate",
        "of the external repository png, the other of libpng_archive",
    ),
    "/usr/bin/ld: a.o: undefined reference to symbol 'dlsym@@GLIBC_2.2.5'\n"
    "/usr/bin/ld: note: 'dlsym@@GLIBC_2.2.5' is defined in DSO /lib/libdl.so.2 so try adding it": (
        "link-library-not-named",
        "/lib/libdl.so.2",
    ),
    "./a: Relink `/l/libx.so' with `/lib/libm.so.6' for IFUNC symbol `sinf'": (
        "load-relink-ifunc",
        "The loader chose sinf",
    ),
    # Code for other processors
    "external/a/cpu.h:9:3: error: inconsistent operand constraints in an 'asm'": (
        "host-inline-assembly",
        "another processor",
    ),
    "a/b.c:4:1: error: unknown register name 'rax' in asm": ("host-inline-assembly", "in a/b.c"),
    'external/x/arch.h:7:2: error: #error "Unsupported architecture"': (
        "host-error-directive",
        "no code for the processor",
    ),
    # auditwheel, delocate
    'auditwheel: error: cannot repair "a-1-cp310-cp310-linux_x86_64.whl" to "manylinux_2_17_x86_64" ABI because '
    "of the presence of too-recent versioned symbols.": (
        "package-repair",
        "newer than the tag allows",
    ),
    'ValueError: Cannot repair wheel, because required library "libcudnn.so.8" could not be located': (
        "package-repair",
        "a second copy breaks that",
    ),
    "auditwheel repair: error: argument --plat: invalid choice: 'manylinux_2_28_ppc64le' (choose from 'linux_x86_64')": (
        "package-repair",
        "for another processor",
    ),
    # bazel: its launcher, a rule's program that takes too long, a submodule
    "Failed to extract embedded binaries as a zip file: zlib returned error code -5": (
        "bazel-client",
        "is not whole",
    ),
    "Error in fail: whl_library pip_numpy failed:  (Timed out) error code: '256'": (
        "bazel-starlark-error",
        "mostly 10 minutes",
    ),
    "ERROR: /w/BUILD:1: Extension file not found: 'tensorflow/google/x.bzl'.": (
        "bazel-extension-missing",
        "another repository",
    ),
    "/usr/bin/bazel: line 9: /opt/bazel/bin/bazel-real: No such file or directory": (
        "command-not-found",
        "It is Bazel itself",
    ),
    "Cuda Configuration Error: Invalid compute capability: 75": (
        "configure-capability",
        "The dot is missing",
    ),
    # CMake: the generators, its own commands and modules; make and ninja
    'CMake Error: install(EXPORT "aTargets" ...) includes target "a" which requires target "b" that is not in '
    "any export set.": ("cmake-project", "within its own tree"),
    'CMake Error at cmake_install.cmake:7 (file):\n  file INSTALL cannot find\n  "/w/b/liba.a":': (
        "cmake-project",
        "/w/b/liba.a. `cmake --install` copies what was built",
    ),
    'CMake Error at CMakeLists.txt:4 (add_subdirectory):\n  add_subdirectory given source "x/y" which is not an '
    "existing\n  directory.": ("cmake-project", "a git submodule"),
    "CMake Error at CMakeLists.txt:4 (add_library):\n  Cannot find source file:\n\n    src/a.cc": (
        "cmake-project",
        "Cannot find source file: src/a.cc",
    ),
    'CMake Error at CMakeLists.txt:4 (target_link_libraries):\n  Target "a" links to:\n\n    b::c\n\n  but': (
        "cmake-project",
        "b::c. The package",
    ),
    "CMake Error: Error: generator : Ninja\nDoes not match the generator used previously: Unix Makefiles": (
        "cmake-project",
        "from another run",
    ),
    "CMake Error at CMakeDetermineCUDACompiler.cmake:1 (message):\n  Failed to find nvcc.": (
        "cmake-project",
        "found no nvcc",
    ),
    'CMake Error at CMakeTestCXXCompiler.cmake:1 (message):\n  The C++ compiler\n\n    "/usr/bin/c++"': (
        "cmake-stopped",
        "cannot make a program",
    ),
    "CMake Error at CMakeLists.txt:3 (message):\n  Only for Linux.": (
        "make-failed",
        "(Only for Linux)",
    ),
    "make[2]: *** No rule to make target '/usr/lib/liba.so', needed by 'b'.  Stop.": (
        "make-no-rule",
        "/usr/lib/liba.so for b",
    ),
    "ninja: error: '/usr/lib/liba.a', needed by 'b', missing and no known rule to make it": (
        "make-no-rule",
        "found when it configured",
    ),
    "ninja: error: loading 'build.ninja': No such file or directory": (
        "make-no-rule",
        "Nothing was configured",
    ),
    # Cython, and what it says of a file
    "Error compiling Cython file:\n---\n...\n  a = &b\n---\n\na/b.pxi:6:2: Cannot assign type 'c' to 'd'. "
    "Suggest adding 'noexcept'.": ("cython-refused", "refuses a/b.pxi: Cannot assign"),
    "a/b.pyx:6:2: undeclared name not builtin: long": ("cython-refused", "names of Python 2"),
    # bazel: CompressedTarFunction, and the file system below it
    "Error in download_and_extract: java.io.IOException: Error extracting /o/a.tar.gz to /o: /o/b (Input/output error)": (
        "fetch-cannot-unpack",
        "does not answer",
    ),
    "   Error extracting /o/a.zip to /o: Malformed input or input contains unmappable characters: /o/b": (
        "fetch-cannot-unpack",
        "cannot name a file with letters beyond ASCII",
    ),
    "Error extracting /o/a.tar.gz to /o: /o/a.tar.gz: truncated": (
        "fetch-archive-damaged",
        "cut short",
    ),
    # check_version of tensorflow.bzl, which compares text
    "Current Bazel version is 0.4.1, expected at least 0.5.4": ("configure-bazel-version", "0.4.1"),
    "Current Bazel version is 0.11.0, expected at least 0.5.4": (
        "configure-bazel-compared-as-text",
        "compares Bazel's version as text",
    ),
    "Closure Rules requires Bazel >=0.4.5 but was 0.4.2": ("configure-bazel-version", "0.4.2"),
    # libraries and headers of others
    "a.cc:3:1: error: 'ncclCommSplit' was not declared in this scope": (
        "nvcc-cuda-too-new",
        "NCCL's",
    ),
    "a.cc:3:1: fatal error: mkl_blas.h: No such file or directory": (
        "host-header-missing",
        "Intel's MKL",
    ),
    "/w/tools/make/downloads/a/b.cc:9:1: fatal error: c.h: No such file or directory": (
        "host-header-missing",
        "download_dependencies.sh",
    ),
    "gcc: error: unrecognized command line option '-fwrapv-O2-DNDEBUG'": (
        "host-option",
        "without the space",
    ),
    "dyld: Library not loaded: @rpath/liba.2.dylib\n  Reason: image not found": (
        "load-library-missing",
        "none of them has it",
    ),
    # a processor's own part of a library, in any of Eigen's folders
    "./third_party/eigen3/unsupported/Eigen/CXX11/src/FixedPoint/TypeCastingAVX512.h:7:1: error: 'a' is not a "
    "class template": ("host-name-missing", "a part for particular processors"),
    "external/eigen_archive/Eigen/src/Core/arch/AltiVec/a.h:7:1: error: no matching function for call to 'b'": (
        "host-source-error",
        "a part for particular processors",
    ),
    # what several parts of a program say of one failure
    "ERROR: /w/core/util/BUILD:351:1: error executing shell command: '/bin/bash -c x/gen_git_source --generate' "
    "failed (Exit 1)\nTraceback (most recent call last):\nImportError: No module named builtins": (
        "python-module-missing",
        "builtins",
    ),
    "java.io.IOException: Error downloading [https://a.example/b, https://c.example/b] to /o/b: All mirrors are "
    "down: [GET returned 407 Proxy Authentication Required, GET returned 503 Service Unavailable]": (
        "fetch-all-mirrors-refuse",
        "Different servers refuse at once",
    ),
    "Compiling a/b.cc failed: Exec failed due to IOException: xcrun failed with code 1.": (
        "bazel-xcode",
        "xcrun failed with code 1",
    ),
    "E a/cuda_dnn.cc:286] Loaded cudnn library: 5004 but source was compiled against 4007.": (
        "gpu-cudnn-version",
        "loaded (5004)",
    ),
    "b/gen: symbol lookup error: b/gen: undefined symbol: _ZN1a1bB5cxx11E": (
        "load-symbol-missing",
        "symbol: _ZN1a1bB5cxx11E",
    ),
    # coreutils, of a file of an installed package
    "cp: cannot stat '/v/lib/python3.9/site-packages/numpy/core/include': No such file or directory": (
        "package-runfiles",
        "not installed in the Python that was configured",
    ),
}


@pytest.mark.parametrize("log", SIBLINGS)
def test_a_kind_is_recognised_by_other_names_and_versions(log: str) -> None:
    family, part = SIBLINGS[log]
    match = first(log)

    assert match.entry.id == family
    assert part in match.cause


STEPS = {
    "clang: error: unsupported CUDA gpu architecture: sm_120a": "--config=cuda_nvcc",
    "clang: error: unsupported option '--linkopt=-s'": "in quotes of its own",
    "/l/clang/18/include/__clang_cuda_runtime_wrapper.h:5:10: fatal error: 'a.h' file not found": (
        "let nvcc compile"
    ),
    "AttributeError: module 'typing' has no attribute '_x'": "uninstall typing",
    "/sw/include/python3.9/eval.h:1:1: error: unknown type name 'PyObject'": "unset CPATH",
    "ERROR: missing input file '//a:b':/w/b (Permission denied)": "chmod -R a+rX",
    "nvlink fatal   : No input files specified": "-c opt",
    'ValueError: Cannot repair wheel, because required library "libtensorflow_framework.so.2" could not be located': (
        "--exclude libtensorflow_framework"
    ),
    "ERROR: /w/BUILD:1: Extension file not found: 'google/protobuf/a.bzl'.": "git submodule update",
}


@pytest.mark.parametrize("log", STEPS)
def test_a_first_step_follows_from_the_kind(log: str) -> None:
    assert STEPS[log] in first(log).remedy


def test_an_architecture_that_clang_lacks_gives_the_flag_for_nvcc() -> None:
    new = first("clang: error: unsupported CUDA gpu architecture: sm_120")
    old = first("clang: error: unsupported CUDA gpu architecture: sm_61")

    assert any("--config=cuda_nvcc" in line for line in new.advice.recipe)
    assert not old.advice.recipe
