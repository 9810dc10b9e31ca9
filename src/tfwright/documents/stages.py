"""The names of the stages, in order.

Users type them; recipes, and findings about a host, refer to them.
"""

from typing import Literal, get_args

Stage = Literal[
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
]
NAMES: tuple[Stage, ...] = get_args(Stage)
