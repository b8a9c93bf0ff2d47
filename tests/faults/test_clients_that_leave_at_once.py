"""Clients that leave while what they asked for is just being stored: it is begun and ends, or it is not there."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk, gateway, to_upstream
from media_gateway import to_media
from media_providers import MediaProviders
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges
from trunkline.core.money import Budget
from trunkline.http.front_door import FrontDoor
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.streams import SqlStreams

pytestmark = pytest.mark.faults
RESUME = {"x_trunkline_resume": "true", "idempotency_key": "one"}
CANCEL = {"x_trunkline_on_disconnect": "cancel"}


class Held:
    """A store that has stored something, and whose answer does not come before `go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: type, method: str) -> None:
        self.stored, self.go = asyncio.Event(), asyncio.Event()
        self._real: Callable[..., Coroutine[Any, Any, Any]] = getattr(store, method)

        async def held(*args: Any) -> Any:
            answer = await self._real(*args)
            self.stored.set()
            await self.go.wait()
            return answer

        monkeypatch.setattr(store, method, held)


def body(**members: Any) -> bytes:
    return json.dumps(chat(stream=True, **members)).encode()


def told(monkeypatch: pytest.MonkeyPatch, store: type, method: str) -> asyncio.Event:
    """Give what is set when a store was asked for something."""
    event, real = asyncio.Event(), getattr(store, method)

    async def noted(*args: Any) -> Any:
        answer = await real(*args)
        event.set()
        return answer

    monkeypatch.setattr(store, method, noted)
    return event


def left(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Give what is set when the gateway has noticed that a client left."""
    event, real = asyncio.Event(), FrontDoor.connection_lost

    def noted(door: FrontDoor, error: Exception | None) -> None:
        real(door, error)
        event.set()

    monkeypatch.setattr(FrontDoor, "connection_lost", noted)
    return event


async def word(peer: Peer) -> None:
    await peer.request()
    events = chunk({"content": "one"}) + chunk({}, "stop") + b"data: [DONE]\n\n"
    await peer.answer(events, "content-type: text/event-stream")


async def test_a_stream_that_is_stored_is_written_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, gone = Held(monkeypatch, SqlStreams, "open"), left(monkeypatch)
    async with raw_upstream(word) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.send("POST", "/v1/chat/completions", body(), **RESUME)
        await held.stored.wait()
        answer.leave()
        await gone.wait()
        held.go.set()
        async with asyncio.timeout(60):
            again = await (await gate.ask(body(), **RESUME)).events()
    assert [event["choices"][0]["delta"].get("content") for event in again[:-1]][1] == "one"
    assert again[-1] == "[DONE]"


async def test_a_stream_that_is_to_end_with_its_client_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, stopped = Held(monkeypatch, SqlStreams, "open"), told(monkeypatch, SqlStreams, "cancel")
    async with raw_upstream(word) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.send("POST", "/v1/chat/completions", body(), **RESUME, **CANCEL)
        await held.stored.wait()
        answer.leave()
        async with asyncio.timeout(60):
            await stopped.wait()
            held.go.set()
            again = await (await gate.ask(body(), **RESUME)).events()
        assert again[-1]["error"]["code"] == "cancelled"
        assert not upstream.peers


async def test_a_key_that_two_bodies_use_at_once_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = SqlStreams.joined

    async def joined(*args: Any) -> Any:
        asked.append(await real(*args))
        while len(asked) < 2:  # noqa: ASYNC110 - until both know of none
            await asyncio.sleep(0.01)
        return asked[0]

    monkeypatch.setattr(SqlStreams, "joined", joined)
    async with raw_upstream(word) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answers = await asyncio.gather(*(gate.ask(body(user=user), **RESUME) for user in "ab"))
        assert sorted(answer.status for answer in answers) == [200, 409]


@pytest.mark.parametrize("on_disconnect", [{}, CANCEL])
async def test_a_job_that_is_to_end_with_its_client_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disconnect: dict[str, str]
) -> None:
    held, gone = Held(monkeypatch, SqlJobs, "add"), left(monkeypatch)
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        made = await gate.application.keys.create(KeyChanges(name="anna", budget=Budget(total=10**8)))
        film = b'{"model":"paint/reel","prompt":"a dog","seconds":"4"}'
        bearer = {"authorization": f"Bearer {made.token}"}
        answer = await gate.send("POST", "/v1/videos", film, content_type="application/json", **bearer, **on_disconnect)
        await held.stored.wait()
        answer.leave()
        await gone.wait()
        held.go.set()
        database = Database.at(tmp_path / "trunkline.db")
        async with asyncio.timeout(60):
            while True:
                [spend] = await SqlMoney(database).spend(made.key.id, ["total"])
                if not spend.reserved:
                    break
                await asyncio.sleep(0.05)
        [row] = await SqlMoney(database).rows()
        await database.close()
    assert (row.end_reason, spend.spent) == (("cancelled", 0) if on_disconnect else ("completed", 200_000))


async def test_who_waits_when_the_gateway_goes_down_is_told(tmp_path: Path) -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.gone()

    asked = asyncio.Event()
    async with raw_upstream(silent) as upstream:
        config = to_upstream(upstream.url, first_event_s=30) | {"server": {"grace_s": 1}}
        async with gateway(tmp_path, config) as gate:
            answer = await gate.send("POST", "/v1/embeddings", b'{"model":"m","input":"hi"}')
            await asked.wait()
            answer.kept = True
        await answer.read_head()
        assert answer.status == 503
        assert (await answer.json())["error"]["code"] == "shutting_down"
        answer.leave()
