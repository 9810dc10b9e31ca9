"""The NCCL that is linked into a library, by what it says of itself."""

import re

from tfwright.wheel.binary.content import Content

_SAYS = b"NCCL version "
"""What NCCL says at its start, before its version."""
_VERSION = re.compile(
    rb"(\d[\w.]{0,30}?(?:\+cuda\d[\d.]{0,20})?)(?:\+cudaCUDA_MAJOR\.CUDA_MINOR)?[^\w.+]"
)
"""The version; Bazel compiles NCCL without the macros that would say its CUDA."""
MOST = 100_000
"""Places that are looked at; a file full of them would take for ever."""


def version(content: Content) -> str:
    """Return the version, with its CUDA if it says that; empty where the library has no NCCL."""
    place = content.find(_SAYS)
    # A text of the same beginning may come first, in a message with a placeholder.
    for _ in range(MOST):
        if place < 0:
            break
        if found := _VERSION.match(content, place + len(_SAYS)):
            return found[1].decode()
        place = content.find(_SAYS, place + 1)
    return ""
