"""The repositories of WORKSPACE for MODULE.bazel."""

load("//third_party/cuda:redist.bzl", "redist_repositories")
load("//third_party/py:pip.bzl", "pip_packages")
load("//third_party/py:python.bzl", "python_repository")

def _hermetic(_):
    python_repository(name = "python")
    pip_packages(
        name = "pypi",
        requirements = {"3.13": "//:requirements_lock_3_13.txt"},
    )
    redist_repositories()

hermetic = module_extension(implementation = _hermetic)
