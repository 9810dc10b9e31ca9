"""The names of the stages, in order.

Users type them; recipes, and findings about a host, refer to them.
"""

NAMES = (
    "check",
    "fetch",
    "source",
    "configure",
    "compile",
    "nccl",
    "package",
    "seal",
    "verify",
    "publish",
)
