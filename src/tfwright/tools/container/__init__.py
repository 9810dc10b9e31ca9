"""Containers: images kept by digest, and programs that run inside one without a network."""
