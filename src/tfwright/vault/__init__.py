"""Inputs by digest: which a TensorFlow tree names, where each can be had, and that they stay obtainable."""
