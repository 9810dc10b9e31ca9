from tests.host.conftest import described, play

__all__ = ["described", "play"]
