"""The build cache."""
