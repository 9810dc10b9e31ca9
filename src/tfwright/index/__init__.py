"""The wheel index."""
