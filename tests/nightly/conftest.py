"""Other machines, as workers have them."""

from tests.workers.conftest import programs

__all__ = ["programs"]
