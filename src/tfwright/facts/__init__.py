"""What goes with what: GPUs, releases of TensorFlow, CUDA, compilers, distributions.

Each table is a TOML file, one row a fact, with its source; every command reads these and no
other. Where a table ends, an answer is "unknown", and never "no" or "fits".
"""
