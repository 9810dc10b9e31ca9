"""The pipeline: one module per stage, in order."""

from tfwright.stage import Stage
from tfwright.stages import check, compile, configure, fetch, nccl, package, publish, seal, source, verify  # noqa: A004 named as users type it

PIPELINE = tuple(Stage(module) for module in (check, fetch, source, configure, compile, nccl, package, seal, verify, publish))
