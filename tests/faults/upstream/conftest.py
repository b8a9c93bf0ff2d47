import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import trustme
import uvloop

from trunkline.upstream.client import Client
from trunkline.upstream.tls import make_context


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def client(authority: trustme.CA) -> AsyncIterator[Client]:
    client = Client(tls=make_context([authority.cert_pem.bytes().decode()]))
    yield client
    await client.aclose()


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, authority: trustme.CA) -> ssl.SSLContext | None:
    if request.param == "http":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context
