"""The pipeline: one module per stage, in order."""

from importlib import import_module

from tfwright.pipeline.stage import Stage
from tfwright.progress import STAGES

# By name: documents need the names, and may not import the stages.
PIPELINE = tuple(Stage(import_module(f"{__name__}.{name}")) for name in STAGES)
