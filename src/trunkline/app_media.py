"""The composition root's half for pictures, films and streams that outlive their clients."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from trunkline.app_background import Work
from trunkline.calls.callback import CallbackNews
from trunkline.calls.chat import Targets
from trunkline.calls.chat_media import ChatMediaKit
from trunkline.calls.gate import Gate
from trunkline.calls.image_answer import ImageAnswers, answers_of
from trunkline.calls.job_accounts import JobAccounts
from trunkline.calls.life import Life
from trunkline.calls.media import MediaCalls
from trunkline.calls.media_answer import ChatAnswers
from trunkline.calls.media_inputs import MediaInputs
from trunkline.calls.media_intake import MediaIntake, MediaLimits
from trunkline.calls.media_links import MediaLinks
from trunkline.calls.media_retention import MediaRetention
from trunkline.calls.open_calls import OpenCalls
from trunkline.calls.streams import TextStreams
from trunkline.calls.upstreams import Recorder, Upstreams
from trunkline.config.schema import Config
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Job
from trunkline.core.ports import EventLog, HttpClient
from trunkline.core.state import StorageError
from trunkline.dialects import MEDIA_DIALECTS
from trunkline.http.chat_images import ChatImages
from trunkline.http.exchange import Handler
from trunkline.http.files import Files
from trunkline.http.film_making import FilmMaking
from trunkline.http.images import Images
from trunkline.http.job_answer import JobAnswer
from trunkline.http.live import Live
from trunkline.http.media import MediaFiles
from trunkline.http.media_chat import MediaChat
from trunkline.http.streams import Streams
from trunkline.http.videos import Films
from trunkline.jobs.callbacks import Callbacks
from trunkline.jobs.durable import Durable
from trunkline.jobs.engine import JobEngine, Stores
from trunkline.jobs.tools import Limits, RealClock, Tools
from trunkline.storage.media.store import media_store
from trunkline.storage.shared.shared import Shared
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.leases import SqlLeases
from trunkline.storage.sql.media import SqlMediaIndex
from trunkline.storage.sql.streams import SqlStreams
from trunkline.upstream.address import names_private
from trunkline.upstream.client import Client
from trunkline.upstream.door import Local
from trunkline.upstream.media_door import MediaDoor

PRUNE_S = 600.0
Listener = Callable[[Job], Callable[[HttpClient], HttpClient] | None]
"""Gives what listens to the exchanges of a job, if anything does."""
_log = logging.getLogger(__name__)


class MediaParts:
    """What makes, keeps and serves media; `routes` are for the front door, `works` is to be run."""

    def __init__(  # noqa: PLR0913, PLR0917 - what the other half has made
        self,
        config: Config,
        secret: bytes,
        live: Live,
        gate: Gate,
        targets: Targets,
        accounts: JobAccounts,
        shared: Shared,
        database: Database,
        replica: str,
        life: Life,
        open_calls: OpenCalls,
        client: Client,
        local: Mapping[tuple[str, str], Local],
        upstreams: Upstreams,
        recorder: Recorder,
        listener: Listener,
    ) -> None:
        data_dir = Path(config.server.data_dir)
        media = config.media
        index, jobs, streams = SqlMediaIndex(database), SqlJobs(database), SqlStreams(database)
        files = media_store(data_dir, config.storage.media.reveal() if config.storage.media else "")
        self._media_client = Client({"ALL_PROXY": media.proxy.reveal()}) if media.proxy else None
        door = self.door = MediaDoor(
            client, config.providers, local, media_client=self._media_client, allow_private=media.allow_private
        )
        intake = MediaIntake(files, index, door, MediaLimits(max_bytes=media.max_bytes, retain_s=media.retain_s))
        tools = _tools(jobs, shared.jobs, door, intake, accounts, listener)
        dbos = config.storage.database.reveal() if config.storage.database else data_dir / "jobs.db"
        self.engine = JobEngine(
            replica,
            life,
            tools,
            Stores(SqlLeases(database), streams, index),
            lambda name, step: Durable(dbos, name, step),
        )
        self.links = MediaLinks(secret, media.link_ttl_s)
        inputs = MediaInputs(intake, index, self.links)
        uncalled = (lambda _url: False) if media.allow_private else names_private
        calls = MediaCalls(self.engine, jobs, targets, accounts, shared.rates, inputs, MEDIA_DIALECTS, uncalled)
        answers = ChatAnswers(self.engine, self.links, files)
        news = CallbackNews(secret, self.engine, answers)
        self._callbacks = Callbacks(
            jobs, self._media_client or client, news.body, news.secret, public_only=not media.allow_private
        )
        answer = JobAnswer(live, self.engine, news.shown_secret)
        kit = ChatMediaKit(intake, inputs, index, answers.shown)
        self.chat = MediaChat(live, calls, answers, answer, kit)
        drawn = ImageAnswers(self.engine, self.links, files)
        over_chat = ChatImages(live, upstreams, targets, gate, recorder, open_calls, kit, drawn)
        images = Images(live, gate, calls, drawn, answer, over_chat)
        self.retention = MediaRetention(files, index)
        films = Films(live, gate, self.engine, jobs, answers, index, files, self.retention)
        self.texts = TextStreams(shared.texts, streams, life, open_calls)
        shown = MediaFiles(live, gate, self.links, index, files)
        stream = Streams(live, gate, shared.jobs, self.texts, self.engine, answers_of(answers, drawn), answer)
        making = FilmMaking(live, gate, calls, films, answer)
        self.routes = _routes(stream, shown, images, Files(live, gate, intake), making, films)

    def works(self, *, jobs: bool) -> list[Work]:
        """Give what runs as long as the server does: streams, and, if they are for this process, jobs."""
        return [self.texts.run, *((self.engine.serve, self._callbacks.serve, self._prune) if jobs else ())]

    async def close(self) -> None:
        """Close what media are fetched with, if that is a client of its own."""
        if self._media_client is not None:
            await self._media_client.aclose()

    async def _prune(self) -> None:
        while True:
            try:
                await self.retention.prune()
            except (StorageError, GatewayError, OSError) as error:
                _log.warning("media that have expired cannot be deleted now: %s", error)
            await asyncio.sleep(PRUNE_S)


def _routes(  # noqa: PLR0913, PLR0917 - the endpoints' handlers
    stream: Handler, shown: Handler, images: Handler, uploads: Handler, making: Handler, films: Handler
) -> dict[tuple[bytes, bytes], Handler]:
    """Say which handler answers where; see `http.front_door`."""
    return {
        (b"GET", b"/v1/streams/"): stream,
        (b"DELETE", b"/v1/streams/"): stream,
        (b"GET", b"/v1/media/"): shown,
        (b"HEAD", b"/v1/media/"): shown,
        (b"POST", b"/v1/images/generations"): images,
        (b"POST", b"/v1/images/edits"): images,
        (b"POST", b"/v1/files"): uploads,
        (b"POST", b"/v1/videos"): making,
        (b"GET", b"/v1/videos"): films,
        (b"GET", b"/v1/videos/"): films,
        (b"HEAD", b"/v1/videos/"): films,
        (b"DELETE", b"/v1/videos/"): films,
    }


def _tools(  # noqa: PLR0913, PLR0917 - what a job needs of the world
    jobs: SqlJobs, log: EventLog, door: MediaDoor, intake: MediaIntake, accounts: JobAccounts, listener: Listener
) -> Tools:
    """Give the engine what its jobs need."""
    limits = Limits()

    def listened(job: Job) -> MediaDoor | None:
        listen = listener(job)
        return door.over(listen) if listen else None

    return Tools(
        jobs=jobs,
        log=log,
        upstream=door,
        intake=intake,
        dialects=MEDIA_DIALECTS,
        settle=accounts.settle,
        submits=asyncio.Semaphore(limits.submits),
        limits=limits,
        clock=RealClock(),
        listened=listened,
    )
