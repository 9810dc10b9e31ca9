"""Reproducible source builds of TensorFlow wheels."""

__version__ = "0.1.0"
