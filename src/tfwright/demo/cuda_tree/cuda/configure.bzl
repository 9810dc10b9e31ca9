"""The repository @local_config_cuda: the toolkit and the GPUs that ./configure.py was given."""

_VARIABLES = [
    "TF_NEED_CUDA",
    "CUDA_TOOLKIT_PATH",
    "GCC_HOST_COMPILER_PATH",
    "TF_CUDA_COMPUTE_CAPABILITIES",
]

_RUNTIME = """
cc_library(
    name = "runtime",
    srcs = ["libcudart_static.a"],
    linkopts = ["-ldl", "-lpthread", "-lrt"],
    visibility = ["//visibility:public"],
)
"""

_SETTINGS = """
CUDA = {cuda}
NVCC = "{toolkit}/bin/nvcc"
COMPILER = "{compiler}"
CAPABILITIES = {capabilities}
"""

def _cuda_configure(context):
    known = context.os.environ
    cuda = known.get("TF_NEED_CUDA") == "1"
    toolkit = known.get("CUDA_TOOLKIT_PATH", "")
    capabilities = known.get("TF_CUDA_COMPUTE_CAPABILITIES", "")
    if cuda:
        context.symlink(toolkit + "/lib64/libcudart_static.a", "libcudart_static.a")
    context.file("BUILD", _RUNTIME if cuda else "")
    context.file("settings.bzl", _SETTINGS.format(
        cuda = cuda,
        toolkit = toolkit,
        compiler = known.get("GCC_HOST_COMPILER_PATH", ""),
        capabilities = [number.strip() for number in capabilities.split(",")],
    ))

cuda_configure = repository_rule(
    implementation = _cuda_configure,
    environ = _VARIABLES,
    local = True,
)
