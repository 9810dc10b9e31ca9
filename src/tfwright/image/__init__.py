"""Container images."""
