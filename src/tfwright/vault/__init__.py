"""Inputs by checksum: where each is found, what locks and bundles say of them, their care."""
