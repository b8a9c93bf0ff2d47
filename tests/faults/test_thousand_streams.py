"""A thousand streams at once: a third is cut by its client, a third by the provider, a third ends.

Every one is settled once. Where usage arrived, the ledger equals the provider's own books to the micro-dollar; where a
stream was cut before, it is settled by the documented count, whose deviation is reported. The provider counts the
tokens of a real tokenizer.
"""

import asyncio
import json
import random
import resource
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest
from counted_texts import TEXTS
from gateway import Gateway, chunk, gateway, to_upstream
from msgspec import Struct
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges
from trunkline.core.money import Budget, LedgerRow, Spend
from trunkline.policy.tokens import count_tokens
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.faults
STREAMS = 999
INPUT_USD, OUTPUT_USD = 2.5, 10.0
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
End = Literal["ends", "left by its client", "closed", "reset", "closed after usage"]


class Stream(Struct):
    """What is to happen to one stream, and the provider's own books of it."""

    number: int
    end: End
    prompt: list[str]
    answer: list[str]
    """Tokens."""
    read: asyncio.Event
    """Its client has read all pieces."""
    asked: int = 0

    @property
    def tokens(self) -> tuple[int, int]:
        """The provider's own count of what it read and wrote."""
        return len(self.prompt) + 4, len(self.answer)

    @property
    def microusd(self) -> int:
        """What the provider will put on its bill."""
        prompt, completion = self.tokens
        tenths = round(prompt * INPUT_USD * 10 + completion * OUTPUT_USD * 10)
        return -(-tenths // 10)

    @property
    def has_usage(self) -> bool:
        return self.end in ("ends", "closed after usage")

    def usage(self) -> dict[str, int]:
        prompt, completion = self.tokens
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def part(chance: random.Random, tokens: list[str]) -> list[str]:
    begin = chance.randrange(len(tokens) - 60)
    return ["1", *tokens[begin : begin + chance.randrange(60)]]


def make_streams() -> list[Stream]:
    chance = random.Random(7)
    cuts: tuple[End, ...] = ("closed", "reset", "closed after usage")
    streams = []
    for number in range(STREAMS):
        end: End = ("ends", "left by its client", cuts[number // 3 % 3])[number % 3]
        language = chance.choice([*TEXTS])
        prompt, answer = (part(chance, TEXTS[language]) for _ in range(2))
        streams.append(Stream(number, end, prompt, answer, asyncio.Event()))
    return streams


def provider(streams: list[Stream]) -> Any:
    async def script(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            stream = streams[int(json.loads(body)["user"])]
            stream.asked += 1
            await peer.send(HEAD)
            for token in stream.answer:
                await peer.send(chunk({"content": token}))
            if stream.end == "closed after usage":
                await peer.send(chunk(choices=[], usage=stream.usage()))
            if stream.end == "ends":
                await peer.send(chunk({}, "stop") + chunk(choices=[], usage=stream.usage()) + b"data: [DONE]\n\n")
                return
            if stream.end == "left by its client":
                await peer.gone()
                return
            await stream.read.wait()
            if stream.end == "reset":
                peer.reset()
            return

    return script


async def ask(gate: Gateway, stream: Stream, token: str) -> str:
    """Read a stream to its end, or leave it; gives how it looked to its client."""
    messages = [{"role": "user", "content": "".join(stream.prompt)}]
    body = {"model": "m", "messages": messages, "stream": True, "user": str(stream.number), "max_tokens": 200}
    answer = await gate.ask(body, authorization=token, x_request_id=f"stream-{stream.number}")
    wanted, text, last = "".join(stream.answer), "", b""
    while text != wanted:
        last = await answer.chunk()
        for line in last.decode().split("\n"):
            if line.startswith("data: {"):
                text += json.loads(line[6:])["choices"][0]["delta"].get("content", "")
    stream.read.set()
    if stream.end == "left by its client":
        answer.leave()
        return "left"
    while piece := await answer.chunk():
        last = piece
    answer.leave()
    return "done" if last.endswith(b"data: [DONE]\n\n") else json.loads(last.split(b"data: ")[-1])["error"]["code"]


async def booked(database: Database) -> list[LedgerRow]:
    rows: list[LedgerRow] = []
    async with asyncio.timeout(60):
        while len(rows) < STREAMS:
            await asyncio.sleep(0.2)
            rows = await SqlMoney(database).rows(limit=2 * STREAMS)
    return rows


async def at_rest(money: SqlMoney, key_id: str) -> Spend:
    """What the key has spent, once nothing is set aside any more."""
    async with asyncio.timeout(60):
        while (spend := (await money.spend(key_id, ["total"]))[0]).reserved:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.2)
        return spend


def estimated_microusd(stream: Stream) -> int:
    """The documented count, and 4 for the message."""
    prompt, completion = count_tokens("".join(stream.prompt)) + 4, count_tokens("".join(stream.answer))
    return -(-round(prompt * INPUT_USD * 10 + completion * OUTPUT_USD * 10) // 10)


async def test_every_stream_is_settled_once(tmp_path: Path, record_property: Any) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    streams = make_streams()
    async with raw_upstream(provider(streams)) as upstream:
        tables = to_upstream(upstream.url, first_event_s=120, idle_s=120)
        tables["models"]["*"]["price"] = {"input_per_mtok": INPUT_USD, "output_per_mtok": OUTPUT_USD}
        tables["server"] = {"log": "off"}
        async with gateway(tmp_path, tables) as gate:
            made = await gate.application.keys.create(KeyChanges(name="anna", budget=Budget(total=10**9)))
            looked = await asyncio.gather(*(ask(gate, stream, f"Bearer {made.token}") for stream in streams))
            database = Database.at(tmp_path / "trunkline.db")
            try:
                rows = await booked(database)
                await asyncio.sleep(2)  # what is settled twice would be booked by now
                rows = await SqlMoney(database).rows(limit=2 * STREAMS)
                spend = await at_rest(SqlMoney(database), made.key.id)
            finally:
                await database.close()
    assert Counter(looked) == {"done": 333, "left": 333, "upstream_incomplete": 333}
    assert all(stream.asked == 1 for stream in streams)
    by_number = {int(row.request_id.removeprefix("stream-")): row for row in rows}
    assert len(rows) == len(by_number) == STREAMS
    assert Counter(row.end_reason for row in rows) == {"completed": 333, "cancelled": 333, "failed": 333}
    for stream in streams:
        row = by_number[stream.number]
        assert row.estimated is not stream.has_usage, stream.end
        assert row.cost_microusd == (stream.microusd if stream.has_usage else estimated_microusd(stream)), stream.end
    told = [stream for stream in streams if stream.has_usage]
    assert sum(by_number[stream.number].cost_microusd or 0 for stream in told) == sum(item.microusd for item in told)
    assert (spend.spent, spend.reserved, spend.calls) == (sum(row.cost_microusd or 0 for row in rows), 0, STREAMS)
    cut = [stream for stream in streams if not stream.has_usage]
    ours, theirs = sum(by_number[item.number].cost_microusd or 0 for item in cut), sum(item.microusd for item in cut)
    report = f"{len(cut)} streams cut before usage: settled at {ours} µ$, by the provider's own count {theirs} µ$"
    record_property("estimate", f"{report}: {100 * (ours - theirs) / theirs:+.1f} %")
    print(f"{report}: {100 * (ours - theirs) / theirs:+.1f} %")
