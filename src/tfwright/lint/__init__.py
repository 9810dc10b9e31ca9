"""Checks of recipes."""
