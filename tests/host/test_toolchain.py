"""Compilers, and the flags that they are given."""

import pytest

from tfwright.host import toolchain
