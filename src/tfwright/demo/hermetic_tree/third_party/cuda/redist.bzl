"""A repository for each part of CUDA and cuDNN, at the versions that the environment names."""

load(
    ":versions.bzl",
    "CUDA_REDIST_JSON_DICT",
    "CUDNN_REDIST_JSON_DICT",
    "REDIST_REPOSITORIES",
)

_BUILD = """
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
"""

def _redist(context):
    known = context.os.environ
    version = known.get(context.attr.variable, "")
    if version not in context.attr.json_dict:
        fail("The supported versions are %s; %s is %s." % (
            context.attr.json_dict.keys(),
            context.attr.variable,
            version,
        ))
    url, sha256 = context.attr.json_dict[version]
    context.download(url = url, sha256 = sha256, output = "redist.json")
    parts = json.decode(context.read("redist.json"))
    entry = parts[context.attr.part]["linux-x86_64"]
    if "relative_path" not in entry:
        entry = entry["cuda" + known["HERMETIC_CUDA_VERSION"].split(".")[0]]
    context.download_and_extract(
        url = url.rpartition("/")[0] + "/" + entry["relative_path"],
        sha256 = entry["sha256"],
        stripPrefix = entry["relative_path"].rpartition("/")[2][:-len(".tar")],
    )
    context.file("BUILD", _BUILD)

_redist_repository = repository_rule(
    implementation = _redist,
    attrs = {
        "json_dict": attr.string_list_dict(),
        "part": attr.string(),
        "variable": attr.string(),
    },
    environ = ["HERMETIC_CUDA_VERSION", "HERMETIC_CUDNN_VERSION"],
)

def redist_repositories():
    """Declare them; Bazel makes those that a target needs."""
    for part, entry in REDIST_REPOSITORIES.items():
        cudnn = part == "cudnn"
        _redist_repository(
            name = entry["repo_name"],
            json_dict = CUDNN_REDIST_JSON_DICT if cudnn else CUDA_REDIST_JSON_DICT,
            part = part,
            variable = "HERMETIC_CUDNN_VERSION" if cudnn else "HERMETIC_CUDA_VERSION",
        )
