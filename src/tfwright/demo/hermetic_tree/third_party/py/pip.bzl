"""Packages that pip installs, by the interpreter that Bazel downloaded."""

_PACKAGES = """
filegroup(
    name = "packages",
    srcs = glob(["site-packages/**"]),
    visibility = ["//visibility:public"],
)

exports_files(["site-packages"])
"""

def _pip(context):
    wanted = context.os.environ.get("HERMETIC_PYTHON_VERSION", "3.13")
    labels = [label for label, version in context.attr.requirements.items() if version == wanted]
    arguments = [
        context.path(Label("@python//:bin/python3")),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
        "--require-hashes",
        "--target=site-packages",
        "--requirement",
        context.path(labels[0]),
    ]

    # As rules_python does: what the environment says of an index holds only where it is told so.
    if context.os.environ.get("RULES_PYTHON_PIP_ISOLATED", "1") == "1":
        arguments.append("--isolated")
    done = context.execute(arguments)
    if done.return_code:
        fail("pip could not install the packages:\n" + done.stdout + done.stderr)
    context.file("BUILD", _PACKAGES)

_pip_packages = repository_rule(
    implementation = _pip,
    attrs = {"requirements": attr.label_keyed_string_dict()},
    environ = ["HERMETIC_PYTHON_VERSION", "RULES_PYTHON_PIP_ISOLATED"],
)

def pip_packages(name, requirements):
    """Declare a repository of what a file pins.

    Args:
      name: of the repository.
      requirements: the file for each version of Python.
    """
    files = {file: version for version, file in requirements.items()}
    _pip_packages(name = name, requirements = files)
