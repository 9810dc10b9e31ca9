"""Wheel variants."""
