"""Checks of the code."""
