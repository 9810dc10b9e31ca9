"""The processors that a wheel may ask for.

A module of its own: `invoke inspect` needs the names and not the recipe, whose model takes half of
its start-up.
"""

from typing import Literal

CpuLevel = Literal["x86-64", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "avx512"]
"""What a wheel may need of an x86-64 CPU, least first."""
