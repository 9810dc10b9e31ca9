"""Toolkits: CUDA, its libraries and a compiler, obtained by digest and arranged as NVIDIA lays them out."""
