"""Builds of one recipe."""
