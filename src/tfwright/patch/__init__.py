"""Patches written from edits."""
