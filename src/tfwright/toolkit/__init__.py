"""CUDA, its libraries and the compiler."""
