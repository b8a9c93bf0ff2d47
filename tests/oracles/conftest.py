"""The client libraries, running as long as the tests do."""

from collections.abc import Iterator

import pytest
from readers import Readers


@pytest.fixture(scope="session")
def readers() -> Iterator[Readers]:
    running = Readers()
    yield running
    running.close()
