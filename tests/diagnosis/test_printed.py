"""What tools print, as the formats in their sources have it: which family explains it, and how.

Each message is a format of the source that is named, with names put in its gaps.
"""

import io

import pytest

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Diagnosis


def diagnose(log: str) -> Diagnosis:
    return reader.read(io.BytesIO(log.encode()))


def first(log: str) -> tuple[str, str]:
    """Return the name of the first match that explains the root, and its cause."""
    match = next(match for match in diagnose(log).matches if match.explains)
    return match.entry.id, match.cause


MODULES = {
    # bzlmod/ModuleFileFunction.java
    "module not found in registries: rules_cc@0.99": "bazel-module-not-found",
    "in module dependency chain <root> -> a@1 -> b@2: module not found in registries: b@2": (
        "bazel-module-not-found"
    ),
    "Error accessing registry https://registry.example.org/: timed out": "bazel-module-not-found",
    "Invalid registry URL: no scheme": "bazel-module-not-found",
    "the MODULE.bazel file of re2@1 declares a different version (2)": "bazel-module-versions",
    "the MODULE.bazel file of re2@1 declares a different name (re)": "bazel-module-versions",
    # bzlmod/Selection.java, bzlmod/BazelModuleResolutionFunction.java
    "a@1 depends on c@1 which is not allowed by the multiple_version_override on c, which allows "
    "only [2]": "bazel-module-versions",
    "a@1 depends on c@1 with compatibility level 1, but b@1 depends on c@2 with compatibility level "
    "2 which is different": "bazel-module-versions",
    "multiple_version_override for module c contains version 2, but it doesn't exist in the "
    "dependency graph": "bazel-module-versions",
    "the root module specifies overrides on nonexistent module(s): zlib": "bazel-module-versions",
    "For repository 'a', the root module requires module version a@1, but got a@2 in the resolved "
    "dependency graph. Please update the version in your MODULE.bazel": "bazel-module-versions",
    'Bazel version 7.4.1 is not compatible with module "a@1" (bazel_compatibility: [>=8.0.0])': (
        "bazel-module-versions"
    ),
    "Yanked version detected in your resolved dependency graph: a@1, for the reason: a fault.": (
        "bazel-module-versions"
    ),
    # bzlmod/RegularRunnableExtension.java, bzlmod/SingleExtensionFunction.java
    "@@a~//:a.bzl does not export a module extension called b, yet its use is requested at "
    "https://registry.example.org/modules/a/MODULE.bazel:8:14": "bazel-module-extension",
    "Error loading '@@a~//:a.bzl' for module extensions, requested by /w/MODULE.bazel:6:23: at "
    "/w/a.bzl:3:6: cannot load '@@b~//lib:modules.bzl': no such file": "bazel-module-extension",
    'module extension "pip" from "@@rules_python~//python:e.bzl" does not generate repository "x", '
    'yet it is imported as "x" in the usage at /w/MODULE.bazel:7:28': "bazel-module-extension",
    'module extension "pip" from "@@rules_python~//python:e.bzl" generates repository "x", yet it '
    "is injected via inject_repo() at /w/MODULE.bazel:9:1.": "bazel-module-extension",
    "invalid label for module extension found at @@a~//:MODULE.bazel:56:23: no repo visible as "
    "'@rules_python' here": "bazel-module-extension",
    # bzlmod/BazelLockFileFunction.java and what asks it
    "MODULE.bazel.lock is no longer up-to-date because: the root MODULE.bazel has been modified. "
    "Please run `bazel mod deps --lockfile_mode=update` to update your lockfile.": (
        "bazel-module-lock-file"
    ),
    # cmdline/RepositoryName.java
    "No repository visible as '@rules_python' from main repository": "bazel-module-visibility",
}


@pytest.mark.parametrize(
    "head",
    [
        "ERROR: ",
        "ERROR: Error computing the main repository mapping: ",
        "ERROR: Analysis of target '//a:b' failed; build aborted: ",
    ],
)
@pytest.mark.parametrize("message", MODULES)
def test_bazels_modules_are_explained_behind_every_report(message: str, head: str) -> None:
    log = f"Starting local Bazel server (7.4.1) and connecting to it...\n{head}{message}\n"
    found = diagnose(log)

    assert found.first is not None
    assert found.first.line == 2
    assert first(log)[0] == MODULES[message]


def test_a_warning_about_a_modules_version_is_no_error() -> None:
    log = (
        "WARNING: For repository 'a', the root module requires module version a@1, but got a@2 in "
        "the resolved dependency graph.\n"
    )

    assert diagnose(log).first is None


SAID = {
    # bazel: packages/StarlarkNativeModule, cmdline/Label
    "Error in cc_library: This rule has been removed from Bazel. Please add a `load()` statement "
    "for it.": ("bazel-rule-removed", "rule cc_library was built into Bazel"),
    "ERROR: Skipping '//a:b': error loading package 'a': Label '//a:c/d.bzl' crosses boundary of "
    "subpackage 'a/c' (perhaps you meant to put the colon here: '//a/c:d.bzl'?)": (
        "bazel-crosses-package",
        "the folder a/c has a BUILD file",
    ),
    "ERROR: /w/a.bzl:3:1: name 'module_extension' is not defined": (
        "bazel-name-not-defined",
        "came with the modules of Bazel 5.0",
    ),
    # bazelisk
    "2022/04/29 09:33:34 could not run Bazel: could not start Bazel: fork/exec /x/bazel: exec "
    "format error": ("bazel-launcher", "is for another processor"),
    # HotSpot, arguments.cpp and java.c
    "Unrecognized VM option 'UseConcMarkSweepGC'": ("bazel-java-start", "UseConcMark"),
    "Error occurred during initialization of VM": ("bazel-java-start", "did not start"),
    # Java, sun.security.validator
    "ERROR: /w/BUILD:1:1: no such package '@a//': java.io.IOException: Error downloading [http://x] "
    "to /o/a: sun.security.validator.ValidatorException: End user tried to act as a CA": (
        "fetch-certificate",
        "(End user tried to act as a CA)",
    ),
    # bash, env of coreutils
    "./configure: line 2: $'\\r': command not found": (
        "windows-line-endings",
        "line endings of Windows",
    ),
    "/usr/bin/env: \u2018python3\\r\u2019: No such file or directory": (
        "windows-line-endings",
        "as of python3",
    ),
    "/bin/bash^M: bad interpreter: No such file or directory": (
        "windows-line-endings",
        "as of /bin/bash",
    ),
    # git
    "error: unable to create file a/b.mlir: Filename too long": (
        "too-many-files",
        "A path is longer",
    ),
    # bazel: src/main/tools/linux-sandbox-pid1.cc, process-wrapper-legacy.cc
    'src/main/tools/linux-sandbox-pid1.cc:95: "fopen(/proc/self/uid_map)": No such file or '
    "directory": ("sandbox-refused", "no namespaces of its own"),
    'src/main/tools/process-wrapper-legacy.cc:80: "execvp(a/b_is_not_gcc, ...)": No such file or '
    "directory": ("sandbox-refused", "the interpreter in its first line"),
    # lld: ELF/SymbolTable.cpp, ELF/InputFiles.cpp, COFF/SymbolTable.cpp; mold
    "ld.lld: error: version script assignment of 'global' to symbol 'init_a' failed: symbol not "
    "defined": ("link-version-script", "from version 17 on"),
    "ld.lld: error: corrupt input file: version definition index 0 for symbol curl_jmpenv is out of "
    "bounds\n>>> defined in /l/libtensorflow.so": ("link-of-another-linker", "/l/libtensorflow.so"),
    "lld-link: error: <root>: undefined symbol: class tensorflow::Session * __cdecl f(void)": (
        "link-undefined",
        "It belongs to TensorFlow itself",
    ),
    "mold: error: undefined symbol: nsync::nsync_mu_lock": (
        "link-undefined",
        "It belongs to nsync",
    ),
    # gold: target-reloc.h, yyscript.y; GNU ld: ldgram.y, reloc.c
    "a.pic.o(.debug_aranges+0x6): error: relocation overflow: reference to local symbol 9 in "
    "a.pic.o": ("link-debug-too-large", "section .debug_aranges"),
    "a.o:(.debug_info+0x12): relocation truncated to fit: R_X86_64_32 against `.debug_str'": (
        "link-debug-too-large",
        "section .debug_info",
    ),
    "a.o(.text+0x6): error: relocation overflow: reference to 'main'": (
        "link-out-of-reach",
        "cannot place a jump",
    ),
    "/usr/bin/ld.gold: error: tf_exported_symbols.lds:2:1: syntax error, unexpected STRING": (
        "link-version-script",
        "tf_exported_symbols.lds: syntax error",
    ),
    "/usr/bin/ld:a.lds:1: syntax error in VERSION script": (
        "link-version-script",
        "syntax error in VERSION script",
    ),
    # ld of Xcode 15
    "ld: Undefined symbols:\n  _SecTrustCopyCertificateChain, referenced from:\n      _f in a.o": (
        "link-undefined",
        "a framework of macOS",
    ),
    # glibc: elf/dl-lookup.c, elf/dl-load.c
    "OSError: /n/libcublas.so.11: symbol cublasLtX, version libcublasLt.so.11 not defined in file "
    "libcublasLt.so.11 with link time reference": (
        "load-parts-of-two-versions",
        "wants cublasLtX of libcublasLt.so.11",
    ),
    "ImportError: /x/a.so: failed to map segment from shared object: Operation not permitted": (
        "load-not-mappable",
        "/x/a.so",
    ),
    # cuDNN's loader of its own parts
    "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open "
    "shared object file: No such file or directory": ("gpu-cudnn-parts", "was not found"),
    "Could not load library libcudnn_cnn_infer.so.8. Error: /u/libcudnn_cnn_infer.so.8: undefined "
    "symbol: _ZN5cudnn3opsE, version libcudnn_ops_infer.so.8": (
        "load-parts-of-two-versions",
        "parts of one package in two versions",
    ),
    "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9, libcudnn_ops.so}": (
        "gpu-cudnn-parts",
        "libcudnn_ops.so.9",
    ),
    # EDG, clang: Sema
    'a.cu.h(57): error: calling a __host__ function("__builtin_expect") from a __global__ '
    'function("f<int> ") is not allowed': ("nvcc-host-function", "calls __builtin_expect"),
    'a.cu.cc(102): error: identifier "std::operator -<float> " is undefined in device code': (
        "nvcc-host-function",
        "C++ library",
    ),
    "a.cu.cc:4:3: error: reference to __host__ function 'pow' in __global__ function": (
        "nvcc-host-function",
        "calls pow",
    ),
    'Error: Internal Compiler Error (codegen): "there was an error in verifying the lgenfe '
    'output!"': ("compiler-crashed", "crashed"),
    # gcc 14, clang 16: diagnostics that became errors
    "a.c:12:3: error: call to undeclared function 'getpid'; ISO C99 and later do not support "
    "implicit function declarations [-Wimplicit-function-declaration]": (
        "host-c-is-stricter",
        "undeclared function 'getpid'",
    ),
    "a.c:12:3: error: passing argument 1 of \u2018f\u2019 from incompatible pointer type "
    "[-Wincompatible-pointer-types]": ("host-c-is-stricter", "gcc from 14 on"),
    # uv: crates/uv/src/commands/diagnostics.rs, crates/uv-resolver/src/error.rs
    "  \u00d7 No solution found when resolving dependencies:\n  \u2570\u2500\u25b6 Because "
    "tensorflow==1.8.0 has no wheels with a matching Python ABI tag": (
        "uv-no-solution",
        "tensorflow==1.8.0 has no wheels",
    ),
    "error: Distribution `a==1 @ registry+https://x` can't be installed because it doesn't have a "
    "source distribution or wheel for the current platform": ("uv-no-solution", "a==1"),
    "  \u00d7 Failed to build `h5py==3.1.0`\n  \u251c\u2500\u25b6 The build backend returned an "
    "error": ("uv-failed", "The build backend returned an error"),
    # distutils, setuptools, CMake
    "unable to execute 'aarch64-linux-gnu-g++': No such file or directory": (
        "pip-no-compiler",
        "aarch64-linux-gnu-g++",
    ),
    'error: Microsoft Visual C++ 14.0 or greater is required. Get it with "Microsoft C++ Build '
    'Tools"': ("pip-no-compiler", "Microsoft Visual C++ 14.0"),
    "CMake Error at CMakeLists.txt:2 (cmake_minimum_required):\n  Compatibility with CMake < 3.5 "
    "has been removed from CMake.": ("cmake-stopped", "CMake 4"),
    "CMake Error at FindPackageHandleStandardArgs.cmake:230 (message):\n  Could NOT find OpenSSL, "
    "try to set the path to OpenSSL root folder": ("cmake-stopped", "OpenSSL"),
    # runtime_version.py of protobuf
    "google.protobuf.runtime_version.VersionError: Detected mismatched Protobuf Gencode/Runtime "
    "major versions when loading a.proto: gencode 6.31.1 runtime 5.29.5. Same major version is "
    "required.": ("python-protobuf", "generated for 6.31.1, and 5.29.5 is installed"),
    # clang and gcc: how a warning that counts as an error is named
    "a.c:19:10: error: defining a type within '__builtin_offsetof' is a Clang extension "
    "[-Werror,-Wgnu-offsetof-extensions]": ("host-werror", "(-Wgnu-offsetof-extensions)"),
    "a.c:19:10: error: unused variable [-Werror=unused-variable]": (
        "host-werror",
        "(-Wunused-variable)",
    ),
    # status_macros.h of XLA, subprocess.cc of protoc, and perl
    "XlaRuntimeError: INTERNAL: RET_CHECK failure (xla/service/gpu/gpu_compiler.cc:626) dnn != "
    "nullptr": ("tf-check-failed", "It is about cuDNN"),
    "bazel-out/host/bin/external/grpc/grpc_cpp_plugin: program not found or is not executable": (
        "host-protoc-plugin",
        "its plugin bazel-out/host/bin/external/grpc/grpc_cpp_plugin",
    ),
    'Can\'t exec "g++": No such file or directory at /opt/rocm/bin/hipcc line 243.': (
        "execution-not-found",
        "cannot be run: g++: No such file",
    ),
    # jobs.c of bash, base_command.py of pip, blaze.cc of bazel
    "/bin/bash: line 1: 133735 Segmentation fault      (core dumped) bazel-out/host/bin/a/gen_cc 0": (
        "process-crashed",
        "a tool that this build had just made",
    ),
    "/usr/bin/bash: line 1: realpath: command not found": (
        "command-not-found",
        "coreutils on macOS",
    ),
    "ERROR: Could not find an activated virtualenv (required).": (
        "pip-environment",
        "PIP_REQUIRE_VIRTUALENV",
    ),
    "ERROR: build interrupted": ("bazel-interrupted", "time limit"),
    # how a compiler names what is a status at run time, and ld an object of another machine
    "/l/libnvinfer.so: undefined reference to `cudnnSetLRNDescriptor'": (
        "link-undefined",
        "It belongs to that library of CUDA",
    ),
    "a.cc:12:3: error: 'cudnnSetTensorNdDescriptor' was not declared in this scope": (
        "nvcc-cuda-too-new",
        "no cudnnSetTensorNdDescriptor",
    ),
    "/usr/lib/aarch64-linux-gnu/libcudnn.so: error adding symbols: File in wrong format": (
        "link-object-damaged",
        "for another processor",
    ),
    "/c/thrust/config.h:112:2: error: #error The version of CUB in your include path is not "
    "compatible with this release of Thrust.": ("host-error-directive", "a CUB of its own"),
    "tensorflow/core/kernels/cuda_sparse.cc(759): error C2061: syntax error: identifier 'X'": (
        "host-msvc",
        "That file calls CUDA",
    ),
    "ERROR: /w/BUILD:100:1: name 'tf_cc_shared_object' is not defined": (
        "bazel-name-not-defined",
        "a macro of TensorFlow's own",
    ),
    'The "tensorflow-gpu" package has been removed!': (
        "pip-package-withdrawn",
        "from 2.1 on `tensorflow` has the GPU parts",
    ),
    "error: metadata-generation-failed": ("pip-metadata", "an empty one that refuses"),
    # xcrun
    'xcrun: error: SDK "macosx10.11" cannot be located': ("bazel-xcode", "install the whole Xcode"),
    # Docker, old and new: what the status of a step means.
    "The command '/bin/sh -c make' returned a non-zero code: 137": ("memory-killed", "memory"),
    "The command '/bin/sh -c make' returned a non-zero code: 127": ("docker-failed", "127 means"),
    'failed to solve: process "/bin/sh -c apt-get install x" did not complete successfully: exit '
    "code: 100": ("docker-failed", "apt-get ends with 100"),
    # src/main/cpp/blaze.cc and blaze_util_posix.cc, 0.4 to 8
    "FATAL: corrupt installation: file '/o/install/ab/A-server.jar' is missing or modified.  Please "
    "remove '/o/install/ab' and try again.": ("bazel-client", "unpacks itself"),
    "FATAL: $USER is not set, and unable to look up name of current user: (error: 0): Success": (
        "bazel-client",
        "/etc/passwd",
    ),
    "Error: '/home/u/.cache/bazel/_bazel_u' is not owned by me": (
        "bazel-client",
        "belongs to another user",
    ),
    "FATAL: Output base directory '/o' must be readable and writable.": (
        "bazel-client",
        "belongs to another user",
    ),
    "FATAL: Output base directory '/o' could not be created: (error: 30): Read-only file system": (
        "bazel-client",
        "may not be written",
    ),
    "FATAL: cannot open lockfile '/o/lock' for writing: (error: 37): No locks available": (
        "bazel-client",
        "without locks",
    ),
    "FATAL: Could not find system javabase. Ensure JAVA_HOME is set, or javac is on your PATH.": (
        "bazel-client",
        "no Java of its own",
    ),
    # bfd's linker.c and ldmain.c, gold, lld, ld64, lto-streamer-in.cc, install_name_tool
    "/usr/bin/ld: hidden symbol `x' in a.o is referenced by DSO": ("link-other", "to itself"),
    "ld.lld: error: undefined hidden symbol: f": ("link-other", "to itself"),
    "/usr/bin/ld: a.o: plugin needed to handle lto object": ("link-other", "-flto"),
    "lto1: fatal error: bytecode stream in file 'a.o' generated with LTO version 9.2 instead of the "
    "expected 8.1": ("link-other", "-flto"),
    "/usr/bin/ld: fatal error: libbfd ABI mismatch": ("link-other", "two installations"),
    "ld: unsupported tapi file type '!tapi-tbd' in YAML file '/x.tbd' for architecture x86_64": (
        "link-other",
        "older than the SDK",
    ),
    "ld: Assertion failed: (resultIndex < sectData.atoms.size()), function findAtom, file "
    "Relocations.cpp, line 1336.": ("link-other", "Xcode 15"),
    "ld: can't open output file for writing: out/x, errno=13 for architecture x86_64": (
        "link-other",
        "another user",
    ),
    "ld: unknown options: --build-id": ("link-option", "--build-id"),
    "/usr/bin/ld.gold: out of file descriptors and couldn't close any": ("link-other", "ulimit -n"),
    "collect2: fatal error: ld terminated with signal 11 [Segmentation fault], core dumped": (
        "link-other",
        "itself crashed",
    ),
    "install_name_tool: changing install names or rpaths can't be redone for: a (for architecture "
    "x86_64) because larger updated load commands do not fit": ("link-other", "no room"),
    # curl's strerror.c, and what its parts say
    "curl: (23) Failure writing output to destination": ("fetch-unknown-cause", "disk is full"),
    "curl: (47) Maximum (50) redirects followed": ("fetch-unknown-cause", "login page"),
    "curl: (77) error setting certificate verify locations:  CAfile: /etc/ssl/ca.crt": (
        "fetch-certificate",
        "/etc/ssl/ca.crt",
    ),
    "curl: (56) CONNECT tunnel failed, response 407": ("fetch-proxy", "wants a password"),
    "curl: (92) HTTP/2 stream 0 was not closed cleanly: CANCEL (err 8)": ("fetch-connection", ""),
    "curl: (52) Empty reply from server": ("fetch-connection", ""),
    "curl: (28) Operation too slow. Less than 1000 bytes/sec transferred the last 30 seconds": (
        "fetch-connection",
        "",
    ),
    # git
    "fatal: Unable to create '/w/.git/index.lock': File exists.": ("git-failed", "left its lock"),
    "fatal: unable to find remote helper for 'https'": ("git-failed", "without curl"),
    "fatal: no submodule mapping found in .gitmodules for path 'a'": (
        "git-failed",
        ".gitmodules does not name",
    ),
    "fatal: pack has 12 unresolved deltas": ("git-failed", "clone again"),
    "fatal: empty ident name (for <>) not allowed": ("git-failed", "who commits"),
    "fatal: transport 'file' not allowed": ("git-failed", "protocol.file.allow"),
    "fatal: cannot create directory at 'x': Permission denied": (
        "git-failed",
        "may not be written",
    ),
    "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)": ("memory-refused", ""),
    'error: No valid patches in input (allow with "--allow-empty")': ("patch-failed", ""),
    # pip's req/constructors.py and exceptions.py
    "ERROR: *.whl is not a valid wheel filename.": (
        "pip-requirement-invalid",
        "neither a package nor a file",
    ),
    "ERROR: file:///w/x does not appear to be a Python project: neither 'setup.py' nor "
    "'pyproject.toml' found.": ("pip-requirement-invalid", "file:///w/x"),
    "ERROR: Some build dependencies for file:///w conflict with PEP 517/518 supported requirements: a "
    "is incompatible with b.": ("pip-conflict", "do not fit"),
    "ERROR: No .egg-info directory found in /tmp/pip-pip-egg-info-x": (
        "marked-error",
        "not known here",
    ),
    "ERROR: something new about '//a:b'": ("bazel-error", "Bazel stopped"),
    "/usr/bin/ld: i386 architecture of input file `a.o' is incompatible with i386:x86-64 output": (
        "link-object-damaged",
        "another processor",
    ),
    # Bazel 0.x, FuncallExpression.java
    "ERROR: /s/a.bzl:4:1: function 'repository_rule' does not exist.": (
        "bazel-name-not-defined",
        "older than 0.17.2",
    ),
    # bzlmod/TypeCheckedTag.java, bzlmod/ModuleExtensionUsage and SingleExtensionEvalFunction.java
    "ERROR: in tag at <root>/MODULE.bazel:3:9, unknown attribute pythons provided": (
        "bazel-module-extension",
        "unknown attribute pythons",
    ),
    "ERROR: The module extension defined at //p:e.bzl:3:9 does not have a tag class named parse, but "
    "its use is requested at <root>/MODULE.bazel:3:9": (
        "bazel-module-extension",
        "tag class named parse",
    ),
    # ld64, Options.cpp and its successor
    "ld: file not found: /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain"
    "/usr/lib/arc/libarclite_iphoneos.a": ("link-sdk-part-gone", "14.3 dropped"),
    "ld: library not found: /Library/Developer/CommandLineTools/SDKs/MacOSX14.0.sdk/usr/lib/libz.tbd": (
        "link-sdk-part-gone",
        "libz.tbd",
    ),
    "a.cc:3:10: fatal error: tensorflow/core/framework/node_def.pb_text.h: No such file or directory": (
        "host-header-missing",
        "A program of the build writes it",
    ),
    "a.cc:3:10: fatal error: mlir/Dialect/Ops.h.inc: No such file or directory": (
        "host-header-missing",
        "A program of the build writes it",
    ),
    "FileNotFoundError: [Errno 2] No such file or directory: '/opt/old/bin/x86_64-linux-gnu-g++-8'": (
        "python-file-missing",
        "the compiler that the build was configured for",
    ),
    "AttributeError: 'module' object has no attribute 'MessageMeta'": (
        "python-name-missing",
        "protobuf's",
    ),
}


@pytest.mark.parametrize("message", SAID)
@pytest.mark.medium
def test_a_message_is_explained_by_its_family(message: str) -> None:
    name, part = SAID[message]
    given, cause = first(message + "\n")

    assert given == name
    assert part in cause


def test_a_rule_that_fails_on_a_value_is_no_unknown_program() -> None:
    log = (
        "ERROR: /o/external/r+/e.bzl:496:33: Traceback (most recent call last):\n"
        '\tFile "/o/external/r+/e.bzl", line 496, column 33, in _f\n'
        '\t\tx = fact["features"]\n'
        "Error: type 'NoneType' has no operator [](string)\n"
        "ERROR: error evaluating module extension @@r+//:e.bzl%crate\n"
    )
    name, cause = first(log)

    assert name == "bazel-starlark-error"
    assert "type 'NoneType' has no operator [](string). That is a fault" in cause


RULE = (
    "ERROR: An error occurred during the fetch of repository 'x':\n"
    "   Traceback (most recent call last):\n"
    '\tFile "/t/a.bzl", line 626, column 13, in _impl\n'
    "\t\tfail(result.stderr)\n"
)


@pytest.mark.parametrize(
    ("quoted", "root"),
    [
        ("Error in fail: Repository command failed\nbash: line 1: realpath: command not found", 6),
        ("Error in fail: x failed: (\n  ERROR: Could not find an activated virtualenv (r)", 6),
        ('Error in fail: \nROCm Configuration Error: ERROR: #define "V" is either', 6),
        ("Error in fail: nothing was found\nERROR: no such package '@y//': BUILD", 5),
        ("Error in fail: nothing was found", 5),
    ],
)
def test_what_a_rule_quotes_is_nearer_than_that_the_rule_stopped(quoted: str, root: int) -> None:
    found = diagnose(f"{RULE}{quoted}\nERROR: Analysis of target '//a' failed\n")

    assert found.first is not None
    assert found.first.line == root


def test_a_traceback_that_lost_its_indentation_ends_at_its_message() -> None:
    log = (
        "ERROR: Traceback (most recent call last):\n"
        'File "/t/WORKSPACE", line 100, column 49, in <toplevel>\n'
        'load("@rules_python//python:repositories.bzl", "python_register_toolchains")\n'
        "Error: file '@rules_python//python:repositories.bzl' does not contain symbol 'a'\n"
    )
    found = diagnose(log)

    assert found.first is not None
    assert found.first.line == 4
    assert first(log)[0] == "bazel-symbol-not-in-file"


@pytest.mark.parametrize(
    "line",
    [
        "W asm.cc:232] Falling back to the CUDA driver; ptxas does not support CC 8.9",
        "tar: /lib/libcurl.so.4: no version information available (required by tar)",
        "ERROR: Ignored the following versions: 2.1 Requires-Python >=3.9",
        "ERROR: the flag has been removed from Bazel",
    ],
)
def test_what_proves_nothing_is_not_called_known(line: str) -> None:
    assert not any(match.certain for match in diagnose(line + "\n").matches)


def test_what_a_server_prints_as_it_crashes_is_nearer_than_that_it_crashed() -> None:
    log = (
        "FATAL: Server crashed during startup. Now printing /o/server/jvm.out:\n"
        "Unrecognized VM option 'MaxPermSize=1g'\n"
        "Error: Could not create the Java Virtual Machine.\n"
    )

    assert first(log)[0] == "bazel-java-start"


def test_a_module_that_was_only_looked_for_is_not_the_cause() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 18, in swig_import_helper\n'
        "ImportError: No module named '_pywrap_tensorflow_internal'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "a.py", line 20, in swig_import_helper\n'
        "ImportError: dlopen(/x/a.so, 6): Symbol not found: ___darwin_check_fd_set_overflow\n"
    )
    found = diagnose(log)

    assert found.first is not None
    assert found.first.line == 9
    assert "newer macOS" in first(log)[1]


FAILED = "curl: (28) Operation timed out after 30000 milliseconds\n"
RETRY = "Warning: Problem : timeout. Will retry in 1 seconds. 3 retries left.\n"


def test_a_failure_counts_only_if_nothing_is_tried_afterwards() -> None:
    done = "100  1024k\nsaved\nnext\n"

    assert diagnose(FAILED + RETRY + done).first is None
    assert diagnose(FAILED + RETRY + FAILED).first is not None
    assert diagnose(FAILED + RETRY).first is not None


def test_an_exception_that_is_printed_again_and_again_is_passed_over() -> None:
    bare = "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'\n"
    raised = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'

    assert diagnose(2 * bare + "2.16.2\n").first is None
    assert diagnose(2 * bare).first is not None
    assert diagnose(raised + 2 * bare + "2.16.2\n").first is not None


def test_what_pip_leaves_in_conflict_is_no_failed_installation() -> None:
    head = "ERROR: pip's dependency resolver does not currently take into account all packages.\n"
    wants = "tensorflow-cpu 2.16.2 requires six>=1.12.0, which is not installed.\n"

    assert diagnose(head + 2 * wants).first is None
    assert diagnose(wants).first is not None


def test_what_python_ignores_while_it_ends_is_no_error() -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "s.py", line 5, in __del__\n'
        "    self.close()\n"
        "AttributeError: 'NoneType' object has no attribute 'TF_DeleteSession'\n"
    )

    assert diagnose(f"Exception ignored in: <method>\n{traceback}").first is None
    assert diagnose(traceback).first is not None


def test_times_that_bazel_writes_before_a_line_are_no_part_of_it() -> None:
    log = "(10:00:01) WARNING: error: none\n(10:00:02) ERROR: Unrecognized option: --x\n"
    found = diagnose(log)

    assert found.first is not None
    assert found.first.line == 2
    assert first(log)[0] == "bazel-option"


@pytest.mark.parametrize(
    "prefix",
    [
        "(10:00:02) ",
        "2024-05-01T10:20:30.1234567Z ",
        "[2024-05-01T10:20:30.123Z] ",
        "#12 345.6 ",
        "web-1  | ",
        "[variation=,node=linux-x86_64] ",
        ":info:build ",
        "python3.11-tensorflow> ",
        "\x1b_bk;t=1700000000000\x07",
        "##[error]",
    ],
)
def test_what_a_service_writes_before_a_line_is_no_part_of_it(prefix: str) -> None:
    said = "ERROR: Unrecognized option: --x"

    assert first(f"{prefix}{said}\n")[0] == "bazel-option"


@pytest.mark.parametrize("mark", ["##[debug]", "##[warning]", "::warning file=a::"])
def test_what_a_service_marks_as_a_remark_is_no_error(mark: str) -> None:
    assert diagnose(f"{mark}error: nothing was found\n").first is None


def test_what_pip_says_of_its_subprocess_is_less_than_what_that_said() -> None:
    log = (
        "  error: subprocess-exited-with-error\n"
        "  \u00d7 python setup.py egg_info did not run successfully.\n"
        "  ╰─> [1 lines of output]\n"
        "      ModuleNotFoundError: No module named 'Cython'\n"
        "      [end of output]\n"
        "error: metadata-generation-failed\n"
    )

    assert first(log)[0] == "python-module-missing"


def test_a_symbol_of_a_newer_macos_is_told_from_one_that_is_left_out() -> None:
    log = (
        "dyld[9]: Symbol not found: _f\n"
        "  Referenced from: <00000000> /a/b.so (built for macOS 14.0 which is newer than running OS)\n"
        "  Expected in:     <00000000> /usr/lib/libc++.1.dylib\n"
    )

    assert "built for macOS 14.0, and this macOS is older" in first(log)[1]


def test_a_driver_that_is_not_there_is_named_though_it_is_no_failure() -> None:
    found = diagnose(
        "I tensorflow/stream_executor/dso_loader.cc:126] Couldn't open CUDA library libcuda.so.1. "
        "LD_LIBRARY_PATH: \n"
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:509] failed call to cuInit: CUresult(-1)\n"
    )

    assert found.first is None
    assert any("NVIDIA's driver" in match.cause for match in found.harmless)
