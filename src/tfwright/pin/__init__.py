"""Versions and checksums pinned."""
