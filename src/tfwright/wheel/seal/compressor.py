"""The package that compresses the members of a wheel; its version shows in the bytes."""

from importlib import metadata

PACKAGE = "deflate"
"""libdeflate, for Python."""


def version() -> str:
    """Return the version that is installed here."""
    return metadata.version(PACKAGE)
