"""The composition root's part for several processes on one address: which one this is, what they ask each other.

Worker 0 alone runs the embedded models, and on SQLite the jobs. Each worker answers the others on a Unix socket in a
directory that only this user can open: one line of JSON is asked, the answer ends with the connection.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from trunkline.calls.traces import Trace, Traces
from trunkline.core.errors import GatewayError
from trunkline.core.secret import Secret
from trunkline.local.supervisor import Address, ChildUnavailableError, SupervisedChild
from trunkline.telemetry.workers import of_all

PATIENCE_S = 5.0
"""How long a worker that is being started again is waited for."""
PART_S = 2.0
MOST_ASKED_BYTES = 4096
log = logging.getLogger(__name__)


class Place(Struct, frozen=True):
    """Which of `count` workers this process is; `directory` is for their sockets."""

    number: int = 0
    count: int = 1
    directory: str = ""

    @property
    def first(self) -> bool:
        """Whether the embedded models run here, and the jobs that are in a SQLite file."""
        return self.number == 0


ALONE = Place()


class Asked(Struct):
    """What one worker asks another; `about` is a detail, such as the name of a model."""

    what: str
    about: str = ""


class Told(Struct):
    """The answer, or why there is none."""

    data: str = ""
    error: str = ""


Answer = Callable[[str], Awaitable[str]]


class Peers:
    """The workers of one parent. `answers` are what this one tells the others; set before `run`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.answers: Mapping[str, Answer] = {}

    async def run(self) -> None:
        """Answer until cancelled."""
        path = self._socket(self.place.number)
        path.unlink(missing_ok=True)  # of this worker's former life
        server = await asyncio.start_unix_server(self._answer, path, limit=MOST_ASKED_BYTES)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()

    async def ask(self, number: int, what: str, about: str = "") -> str:
        """Ask another worker. Raises OSError when it is not there, ValueError with its reason not to answer."""
        reader, writer = await asyncio.open_unix_connection(self._socket(number))
        try:
            writer.write(msgspec.json.encode(Asked(what, about)) + b"\n")
            told = await reader.read(-1)
        finally:
            writer.close()
        try:
            answer = msgspec.json.decode(told, type=Told)
        except msgspec.DecodeError:
            raise ConnectionResetError("the worker has ended") from None
        if answer.error:
            raise ValueError(answer.error)
        return answer.data

    async def metrics(self, own: Callable[[], bytes]) -> bytes:
        """Give the metrics of all workers that answer, each with the label `worker`; of a single one without."""
        if self.place.count == 1:
            return own()
        others = self._others()
        pages = await asyncio.gather(*(self._part(number, "metrics") for number in others))
        known = {number: page for number, page in zip(others, pages, strict=True) if page is not None}
        return of_all(dict(sorted({**known, self.place.number: own().decode()}.items()))).encode()

    async def trace(self, request_id: str, own: Traces) -> Trace | None:
        """Give what is kept of a call, by whichever worker has it."""
        if (found := await own.get(request_id)) is not None:
            return found
        told = await asyncio.gather(*(self._part(number, "trace", request_id) for number in self._others()))
        return next((msgspec.json.decode(each, type=Trace) for each in told if each), None)

    async def nudge(self) -> None:
        """Let worker 0 look for new jobs now; it looks every second anyway."""
        try:
            await self.ask(0, "jobs")
        except (OSError, ValueError) as error:
            log.info("worker 0 looks for jobs a little later: %s", error)

    def _others(self) -> list[int]:
        return [number for number in range(self.place.count) if number != self.place.number]

    async def _part(self, number: int, what: str, about: str = "") -> str | None:
        try:
            async with asyncio.timeout(PART_S):
                return await self.ask(number, what, about)
        except (OSError, ValueError) as error:  # a TimeoutError is an OSError
            log.warning("the %s of worker %d is missing: %s", what, number, error or "it does not answer")
            return None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = msgspec.json.decode(await reader.readline(), type=Asked)
            try:
                told = Told(await self.answers[asked.what](asked.about))
            except (KeyError, ChildUnavailableError) as error:
                told = Told(error=str(error))
            writer.write(msgspec.json.encode(told))
            await writer.drain()
        except (OSError, ValueError, msgspec.DecodeError) as error:
            log.info("another worker has left: %s", error)
        finally:
            writer.close()

    def _socket(self, number: int) -> Path:
        return Path(self.place.directory) / f"{number}"


class LocalAddress:
    """Where an embedded model of this process answers, once it does; `upstream.door.Local`."""

    def __init__(self, child: SupervisedChild) -> None:
        self._child = child

    async def __call__(self) -> tuple[str, Secret]:
        """Wait for the model's process. Raises GatewayError when it cannot start."""
        try:
            address = await self._child.address()
        except ChildUnavailableError as error:
            raise GatewayError("upstream_unavailable", str(error)) from None
        return address.base_url, Secret(address.key, "local")


class PeerAddress:
    """Where an embedded model of worker 0 answers, once it does; `upstream.door.Local`."""

    def __init__(self, peers: Peers, name: str) -> None:
        self._peers = peers
        self._name = name

    async def __call__(self) -> tuple[str, Secret]:
        """Wait for the model's process. Raises GatewayError when it cannot start."""
        until = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            try:
                told = await self._peers.ask(0, "local", self._name)
            except ValueError as error:
                raise GatewayError("upstream_unavailable", str(error)) from None
            except OSError:
                if asyncio.get_running_loop().time() > until:
                    raise GatewayError("upstream_unavailable", "the embedded models are being started again") from None
                await asyncio.sleep(0.1 + secrets.randbelow(100) / 1000)
            else:
                address = msgspec.json.decode(told, type=Address)
                return address.base_url, Secret(address.key, "local")
