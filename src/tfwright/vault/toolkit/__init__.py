"""Toolkits: CUDA, its libraries and a compiler, by checksum and in NVIDIA's own layout."""
