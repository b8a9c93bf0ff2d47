"""The composition root: a configuration in, an application out; the only file that knows every concrete class."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from trunkline.calls.chat import Targets
from trunkline.calls.gate import Admitted
from trunkline.calls.meter import Settlement
from trunkline.config.load import Loaded
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.route import Route as ModelRoute
from trunkline.core.secret import Secret
from trunkline.http import pages
from trunkline.http.chat_completions import ChatCompletions
from trunkline.http.cors import Cors
from trunkline.http.embeddings import Embeddings
from trunkline.http.error_response import gateway_error
from trunkline.http.exchange import Handler
from trunkline.http.front_door import FrontDoor
from trunkline.http.live import Live, Settings
from trunkline.http.system import system_routes, unknown_endpoint
from trunkline.local.supervisor import ChildUnavailableError, SupervisedChild
from trunkline.local.text.process import local_text
from trunkline.local.text.weights import find_weights
from trunkline.routing.table import RoutingTable
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.migrate import upgrade
from trunkline.telemetry.metrics import Metrics
from trunkline.upstream.client import Client
from trunkline.upstream.door import Door
from trunkline.web import built, why_not


class Application:
    """The gateway: `asgi` and the front door's class are what the server runs."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str]) -> None:
        config = loaded.config
        self.config = config
        self.metrics = Metrics()
        self.live = Live(RoutingTable.build(config.providers, config.models), _settings(loaded))
        self._children: dict[str, SupervisedChild] = {}
        self._client = Client(environ)
        door = Door(self._client, {("local", "text"): self._local_text})
        targets = Targets()
        gate = OpenGate(self.metrics)
        chat = ChatCompletions(self.live, door, targets, gate)
        embeddings = Embeddings(self.live, door, targets, gate)
        routes: dict[tuple[bytes, bytes], Handler] = {
            (b"POST", b"/v1/chat/completions"): chat,
            (b"POST", b"/v1/embeddings"): embeddings,
        }
        self.protocol = type(
            "ConfiguredFrontDoor",
            (FrontDoor,),
            {"routes": routes, "body_max_bytes": config.server.body_max_bytes, "grace_s": config.server.grace_s},
        )
        self.asgi = Starlette(
            routes=[
                *system_routes(self.live, self.metrics.text, started_s=time.time_ns() // 1_000_000_000),
                *pages.routes(built(), why_not()),
                Route("/v1/{path:path}", unknown_endpoint, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
            ],
            middleware=[Middleware(Cors, live=self.live)],
            exception_handlers={GatewayError: gateway_error},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Own what lives as long as the server: the database, the embedded models, connections to providers."""
        async with asyncio.TaskGroup() as group:
            database = await self._open_database()
            self._start_children(group)
            try:
                yield
            finally:
                for child in self._children.values():
                    child.stop()
                await self._client.aclose()
                await database.close()

    async def _open_database(self) -> Database:
        url = self.config.storage.database
        place: str | Path = url.reveal() if url else Path(self.config.server.data_dir) / "trunkline.db"
        if isinstance(place, Path):
            place.parent.mkdir(parents=True, exist_ok=True)
        database = Database.at(place)
        await upgrade(database)
        return database

    def _start_children(self, group: asyncio.TaskGroup) -> None:
        local = self.config.providers.get("local")
        if local is None:
            return
        child = local_text(find_weights(local.model))
        self._children["text"] = child
        group.create_task(child.run())

    async def _local_text(self) -> tuple[str, Secret]:
        child = self._children.get("text")
        if child is None:
            raise GatewayError("upstream_unavailable", "the embedded text model is not there")
        try:
            address = await child.address()
        except ChildUnavailableError as error:
            raise GatewayError("upstream_unavailable", str(error)) from None
        return address.base_url, Secret(address.key, "local")


class OpenGate:
    """Lets everybody in and counts: for a loopback listener without keys."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def caller(self, authorization: str, request_id: str) -> Caller:  # noqa: ARG002 - whoever it is
        """Say who asks: nobody in particular."""
        return Caller(request_id)

    async def admit(self, caller: Caller, request: ChatRequest, route: ModelRoute) -> Admitted:  # noqa: ARG002
        """Let a call in."""
        self._metrics.open_calls.inc()
        return Admitted(self._settle)

    def _settle(self, settlement: Settlement) -> None:
        self._metrics.open_calls.dec()
        self._metrics.settled(settlement)


def _settings(loaded: Loaded) -> Settings:
    server = loaded.config.server
    return Settings(
        grace_s=server.grace_s,
        keepalive_s=server.keepalive_s,
        unstreamed_wait_s=server.unstreamed_wait_s,
        cors_origins=server.cors_origins,
        public_url=server.public_url,
    )
