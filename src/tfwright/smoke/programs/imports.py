"""The module imports."""

import importlib

from compatibility import report, timed


def check(name):
    """Import the module; say which one it is."""
    module, seconds = timed(lambda: importlib.import_module(name))
    version = module.__version__
    # From 0.11 on TensorFlow says which commit it was built from; the demo does not.
    commit = getattr(
        module, "__git_version__", getattr(getattr(module, "version", None), "GIT_VERSION", "")
    )
    if isinstance(commit, bytes):
        commit = commit.decode("ascii", "replace")
    return "%s %s in %.1f s" % (name, version, seconds), {
        "version": version,
        "commit": str(commit),
        "seconds": seconds,
    }


if __name__ == "__main__":
    report(check)
