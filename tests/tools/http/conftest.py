from collections.abc import Iterator

import pytest
from tests.tools.http.hosts import Hosts


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    running = Hosts()
    yield running
    running.stop()
