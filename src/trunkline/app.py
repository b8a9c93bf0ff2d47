"""The composition root: a configuration in, an application out; the only file that knows every concrete class."""

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route, Router, request_response

from trunkline import web
from trunkline.app_background import Background, Work
from trunkline.app_media import MediaParts
from trunkline.app_workers import ALONE, LocalAddress, PeerAddress, Peers, Place
from trunkline.calls import traces
from trunkline.calls.admission import Admission, Watcher
from trunkline.calls.billing import Billing
from trunkline.calls.cached import Answers
from trunkline.calls.chat import Targets
from trunkline.calls.inbox import Inbox
from trunkline.calls.job_accounts import JobAccounts, JobWatcher
from trunkline.calls.keys import Keys
from trunkline.calls.life import Life
from trunkline.calls.open_calls import OpenCalls
from trunkline.calls.pricing import Pricing
from trunkline.config.changes import taken_over
from trunkline.config.check import check_open
from trunkline.config.load import Loaded
from trunkline.config.prices import read_price_table
from trunkline.config.read import ConfigError
from trunkline.config.schema import Config
from trunkline.config.secret_file import private_dir, server_secret
from trunkline.config.watch import ConfigWatch
from trunkline.core.errors import GatewayError
from trunkline.core.loopback import is_loopback
from trunkline.core.state import StorageError
from trunkline.dialects import CHAT_DIALECTS
from trunkline.http import pages
from trunkline.http.chat_completions import ChatCompletions
from trunkline.http.cors import Cors
from trunkline.http.embeddings import Embeddings
from trunkline.http.error_response import gateway_error
from trunkline.http.exchange import Handler
from trunkline.http.front_door import FrontDoor
from trunkline.http.later import Later
from trunkline.http.live import Live, Settings
from trunkline.http.operator import OperatorOnly
from trunkline.http.system import system_routes, unknown_endpoint
from trunkline.http.text_streams import ResumableChat
from trunkline.local.scene.process import SCENE, local_scene
from trunkline.local.supervisor import SupervisedChild
from trunkline.local.text.process import local_text
from trunkline.local.text.weights import WeightsError, find_weights
from trunkline.policy.price import PriceBook
from trunkline.routing.table import RoutingTable
from trunkline.storage.journal import FileJournal
from trunkline.storage.shared.rates import LocalRates
from trunkline.storage.shared.shared import Shared, share
from trunkline.storage.shared.sqlite_rates import SqliteRates
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.keys import SqlKeys
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.migrate import upgrade
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.streams import SqlStreams
from trunkline.telemetry.call_log import CallLog
from trunkline.telemetry.job_tracer import JobTracer
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.recorder import FileRecorder, Tracer
from trunkline.upstream.client import Client
from trunkline.upstream.door import Door, Local

if TYPE_CHECKING:
    from trunkline.telemetry.otel import OpenTelemetry

_log = logging.getLogger(__name__)
STDERR = 2


class Application:
    """The gateway: `asgi` and the front door's class are what the server runs. Raises ConfigError."""

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        again: Callable[[], Loaded] | None = None,
        place: Place = ALONE,
    ) -> None:
        """`again` reads the configuration anew, for a reload (None: this one stays); `place`: which worker this is."""
        config = self.config = loaded.config
        data_dir = private_dir(config.server.data_dir)
        secret = config.server.secret.reveal().encode() if config.server.secret else server_secret(data_dir)
        self.loopback = is_loopback(config.server.listen.rpartition(":")[0].strip("[]"))
        check_open(config, str(loaded.path or ""))
        self.metrics = Metrics()
        self.models: dict[str, str] = {}
        self._off = _off(loaded)
        self.live = Live(_table(config, self._off), _settings(config))
        self.watch = ConfigWatch(loaded.path, again, self.use) if again is not None else None
        self._peers = Peers(place)
        self._background = Background()
        self._children = self._make_children()
        self._client = Client(environ)
        self._database = Database.at(
            config.storage.database.reveal() if config.storage.database else data_dir / "trunkline.db"
        )
        replica = f"{socket.gethostname()}:{secrets.token_hex(4)}"
        leases, self._inbox = SqlLeases(self._database), Inbox(SqlSignals(self._database))
        self._life = Life(leases, replica)
        self._billing = Billing(SqlMoney(self._database), self._life, FileJournal(data_dir / "journal"), self._inbox)
        self.keys = Keys(SqlKeys(self._database), secret)
        pricing = Pricing(config.server.reserve_output_tokens, PriceBook(read_price_table))
        self._shared = _shared(config, self._database, place)
        self._log = CallLog(STDERR) if config.server.log == "json" else None
        self._otel = _otel(config.server.otlp, environ, replica)
        called, made = self._watchers()
        gate = Admission(self.keys, self._billing, pricing, self._shared.rates, self._keys_required, called)
        local = {("local", name): self._local(name) for name in self._children}
        door = self._door = Door(self._client, local)
        targets = Targets()
        files = FileRecorder(Path(config.debug.record or data_dir / "recordings"), always=bool(config.debug.record))
        self._traces = traces.Traces(self._shared.traces)
        recorder = Tracer(files, self._traces)
        accounts = JobAccounts(self._billing, pricing, made)
        self._open_calls = OpenCalls(leases, self._inbox, self._life, self._traces.here)
        parts = (config, secret, self.live, gate, targets, accounts, self._shared, self._database, replica, self._life)
        tracer = JobTracer(self._traces)
        self._media = MediaParts(*parts, self._open_calls, self._client, local, door, recorder, tracer.listener)
        self._measure(gate, targets)
        self._meet_peers()
        resumable, answers = ResumableChat(self.live, self._media.texts), Answers(self._shared.answers)
        routes: dict[tuple[bytes, bytes], Handler] = {
            (b"POST", b"/v1/chat/completions"): ChatCompletions(
                *(self.live, door, targets, gate, resumable, self._media.chat, recorder, self._open_calls, answers),
            ),
            (b"POST", b"/v1/embeddings"): Embeddings(self.live, door, targets, gate),
            **self._media.routes,
        }
        self.protocol: type[FrontDoor] = type("ConfiguredFrontDoor", (FrontDoor,), {"routes": routes})
        self._set_limits()
        self.asgi = self._asgi(gate, Later(lambda: self._admin(secret, targets)))

    def _admin(self, secret: bytes, targets: Targets) -> Router:
        from trunkline.app_admin import admin_api  # noqa: PLC0415 - of no use until an operator looks
        from trunkline.http.admin.providers import Known  # noqa: PLC0415 - the same
        from trunkline.http.admin.session import Sessions  # noqa: PLC0415 - the same

        return admin_api(
            lambda: Known(self.config.providers, self._off),
            Sessions(secret, self.config.server.admin_key, loopback=self.loopback),
            live=self.live,
            keys=self.keys,
            calls=self._open_calls,
            find_trace=lambda request_id: self._peers.trace(request_id, self._traces),
            health=targets.health,
            media=self._media,
            database=self._database,
        )

    def _watchers(self) -> tuple[tuple[Watcher, ...], tuple[JobWatcher, ...]]:
        """Give who hears of calls and of jobs that have ended."""
        if self._log is not None:
            self.metrics.dropped = self._log.lost
        watching = [watcher for watcher in (self.metrics, self._log, self._otel) if watcher is not None]
        return tuple(one.settled for one in watching), tuple(one.job_ended for one in watching)

    def _measure(self, gate: Admission, targets: Targets) -> None:
        """Tell the metrics where to look for what is so at the moment."""
        gate.refusals = (self.metrics.refused, *([self._log.refused] if self._log is not None else ()))
        self.metrics.open_calls = lambda: gate.open
        self.metrics.open_streams = lambda: gate.open_streams
        self.metrics.open_jobs = self._media.engine.open_jobs
        self.metrics.health = targets.health
        self.metrics.storage = lambda: {"database": self._life.reachable, **self._shared.usable()}

    def _asgi(self, gate: Admission, admin: Later) -> Router:
        """Make the application that answers whatever is not a hot route."""
        started_s = time.time_ns() // 1_000_000_000
        return Router(
            routes=[
                Route("/admin/api/{path:path}", admin),
                *system_routes(self.live, gate, self._metrics_page, self.models, started_s=started_s),
                Route("/v1/{path:path}", unknown_endpoint, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
                *pages.routes(web.DIST, web.why_not),
            ],
            default=request_response(unknown_endpoint),
            middleware=[
                Middleware(Cors, live=self.live),
                Middleware(OperatorOnly, admin_key=self.config.server.admin_key, loopback=self.loopback),
                Middleware(ExceptionMiddleware, handlers={GatewayError: gateway_error}),
            ],
            lifespan=self._lifespan,
        )

    def use(self, loaded: Loaded) -> list[str]:
        """Go on with another configuration; calls that run keep the one that they began with.

        Gives the names of what has changed and is used from the next start on.
        """
        config, late = taken_over(self.config, loaded.config)
        off = _off(loaded)
        table = _table(config, off)
        self.config, self._off = config, off
        self.live.table, self.live.settings = table, _settings(config)
        self._door.renew()
        self._media.door.renew(config.providers)
        self._set_limits()
        return late

    def _set_limits(self) -> None:
        self.protocol.body_max_bytes = self.config.server.body_max_bytes
        self.protocol.grace_s = self.config.server.grace_s

    async def begin(self) -> None:
        """Make the database ready, before anything is served. Raises StorageError; nothing is open then."""
        try:
            await upgrade(self._database)
            await self._life.begin()
        except StorageError:
            await self._close()
            raise
        await self._billing.sweep()
        await self.keys.look()

    async def _close(self) -> None:
        await self._client.aclose()
        await self._media.close()
        await self._shared.close()
        await self._database.close()

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        """Own what lives as long as the server: money, keys, embedded models, connections."""
        keep = self._background.keep
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(keep(work)) for work in self._works()]
            writing = [group.create_task(keep(work)) for work in self._media.works(jobs=self._runs_jobs)]
            for child in set(self._children.values()):
                group.create_task(keep(child.run))
            try:
                yield
            finally:
                for task in writing:
                    task.cancel()
                await asyncio.wait(writing)  # what they were doing is settled before the ledger is closed
                for task in running:
                    task.cancel()
                for child in self._children.values():
                    child.stop()
        if self._otel is not None:
            await asyncio.to_thread(self._otel.close)
        await self._life.end()
        await self._close()

    @property
    def failed(self) -> bool:
        """Whether the process is to end, because something that calls need has failed."""
        return self._background.failed

    @property
    def _runs_jobs(self) -> bool:
        """Whether jobs run in this process: of several on one SQLite file, in the first alone."""
        return self._peers.place.first or not self._database.sqlite

    def _works(self) -> list[Work]:
        """Give what runs as long as the server does."""
        works: list[Work] = [self._life.run, self._billing.run, self.keys.watch, self._shared.run, self._inbox.run]
        works += [self._log.run] if self._log is not None else []
        works += [self.watch.run] if self.watch is not None else []
        works += [self._peers.run] if self._peers.place.count > 1 else []
        return works

    def _keys_required(self) -> bool:
        """Say whether a key is needed: as configured, else unless on loopback with no key made yet."""
        required = self.config.keys.required
        return required if required is not None else not self.loopback or self.keys.made

    def _make_children(self) -> dict[str, SupervisedChild]:
        local = self.config.providers.get("local")
        if local is None:
            return {}
        scene = local_scene()
        children = {"image": scene, "video": scene}
        self.models |= {"local/image": SCENE, "local/video": SCENE}
        try:
            weights = find_weights(local.model)
        except WeightsError as error:
            if local.model:
                raise
            _log.warning("local/text is off: %s", error)
            return children
        self.models["local/text"] = weights.name
        return {"text": local_text(weights), **children}

    def _local(self, name: str) -> Local:
        return LocalAddress(self._children[name]) if self._peers.place.first else PeerAddress(self._peers, name)

    def _meet_peers(self) -> None:
        """Say what other workers may ask of this one."""
        self._peers.answers = {
            "metrics": self._told_metrics,
            "local": self._told_local,
            "jobs": self._told_jobs,
            "trace": self._told_trace,
        }
        if not self._runs_jobs:
            self._media.engine.elsewhere = self._peers.nudge

    async def _metrics_page(self) -> bytes:
        return await self._peers.metrics(self.metrics.text)

    async def _told_metrics(self, _about: str) -> str:
        return self.metrics.text().decode()

    async def _told_local(self, name: str) -> str:
        return msgspec.json.encode(await self._children[name].address()).decode()

    async def _told_trace(self, request_id: str) -> str:
        trace = await self._traces.get(request_id)
        return msgspec.json.encode(trace).decode() if trace is not None else ""

    async def _told_jobs(self, _about: str) -> str:
        await self._media.engine.recover()
        return ""


def _otel(endpoint: str, environ: Mapping[str, str], replica: str) -> "OpenTelemetry | None":
    """Tell a collector of calls, where one is named. Raises ConfigError without the extra."""
    if not endpoint:
        return None
    from trunkline.telemetry.otel import OpenTelemetry  # noqa: PLC0415 - an extra, imported when it is on

    try:
        return OpenTelemetry(endpoint, environ, replica)
    except ImportError:
        raise ConfigError(["`server.otlp` needs the extra `otel`: pip install 'trunkline[otel]'"], "") from None


def _table(config: Config, off: Mapping[str, str]) -> RoutingTable:
    """Build the table of models; import what their providers speak."""
    for provider in config.providers.values():
        CHAT_DIALECTS.bring_in({provider.chat.dialect} if provider.chat else ())
        CHAT_DIALECTS.bring_in(facts.dialect for facts in provider.models.values())
    return RoutingTable.build(config.providers, config.models, off)


def _off(loaded: Loaded) -> dict[str, str]:
    """Give the providers that are not on, and why."""
    return {state.name: state.why for state in loaded.states.values() if not state.on}


def _shared(config: Config, database: Database, place: Place) -> Shared:
    """Choose what is shared with other processes, and how."""
    file = Path(config.server.data_dir) / "rates.db"
    return share(
        config.storage.shared.reveal() if config.storage.shared else "",
        lambda: LocalRates() if place.count == 1 else SqliteRates(file, place.number, place.count),
        SqlStreams(database),
        fail_closed=config.storage.fail_closed,
        max_bytes=config.resume.max_bytes,
        ttl_s=config.resume.ttl_s,
        cache_bytes=config.cache.max_bytes,
        cache_s=config.cache.ttl_s,
        traces_bytes=traces.ROOM_BYTES,
        traces_s=traces.KEPT_S,
    )


def _settings(config: Config) -> Settings:
    server = config.server
    return Settings(
        grace_s=server.grace_s,
        keepalive_s=server.keepalive_s,
        unstreamed_wait_s=server.unstreamed_wait_s,
        cors_origins=server.cors_origins,
        public_url=server.public_url,
        trusted_proxies=server.trusted_proxies,
        messages_max=server.messages_max,
        images_max=server.images_max,
    )
