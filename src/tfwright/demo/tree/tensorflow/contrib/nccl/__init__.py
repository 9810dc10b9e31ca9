"""The NCCL operation, where it was compiled in; without CUDA its library is empty."""

import ctypes
import os

ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "python", "ops", "_nccl_ops.so"))
