"""The pipeline: one module per stage, in order."""

from importlib import import_module

from tfwright.pipeline.stage import Stage

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
PIPELINE = tuple(Stage(import_module(f"{__name__}.{name}")) for name in NAMES)
