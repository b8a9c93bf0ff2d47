"""Streams that are followed: one suite for the database and for Valkey."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import StoredStream
from trunkline.core.ports import EventLog
from trunkline.core.state import StaleOwnerError
from trunkline.storage.shared.event_log import StoredLog
from trunkline.storage.shared.valkey_log import ValkeyLog, _keys
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.streams import SqlStreams

MAX_BYTES = 1000


@pytest_asyncio.fixture(params=["database", pytest.param("valkey", marks=pytest.mark.scale)])
async def logs(request: pytest.FixtureRequest, database: Database) -> AsyncIterator[tuple[EventLog, EventLog]]:
    """The same log in two processes, as far as they know."""
    streams = SqlStreams(database)
    if request.param == "database":
        yield (
            StoredLog(streams, max_bytes=MAX_BYTES, ttl_s=60),
            StoredLog(streams, max_bytes=MAX_BYTES, ttl_s=60),
        )
        return
    url = request.getfixturevalue("valkey_url")
    one, other = (ValkeyLog(streams, url, max_bytes=MAX_BYTES, ttl_s=60) for _ in range(2))
    yield one, other
    await one.close()
    await other.close()


@pytest.fixture
def stream() -> StoredStream:
    return StoredStream(id=f"str_{secrets.token_hex(8)}", key_id="k", owner="me")


async def all_of(log: EventLog, stream_id: str, after: int = 0) -> list[tuple[int, bytes]]:
    async with asyncio.timeout(120):
        return [event async for event in log.follow(stream_id, after)]


async def test_events_are_followed_from_anywhere_without_gap_or_double(
    logs: tuple[EventLog, EventLog], stream: StoredStream
) -> None:
    here, there = logs
    await here.open(stream)
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(all_of(log, stream.id, after)) for log in logs for after in (0, 3)]
        for n in range(1, 11):
            assert await here.append(stream.id, 1, [b"%d" % n]) == n
            await asyncio.sleep(0.01)
        await here.append(stream.id, 1, [b"11", b"12"])
        await here.end(stream.id, 1, "ended")
    expected = [(n, b"%d" % n) for n in range(1, 13)]
    assert [reader.result() for reader in readers] == [expected, expected[3:]] * 2
    assert await all_of(there, stream.id, 12) == []
    known = await there.get(stream.id)
    assert known is not None
    assert (known.state, known.last_seq) == ("ended", 12)


async def test_a_slow_reader_gets_thousands(logs: tuple[EventLog, EventLog], stream: StoredStream) -> None:
    here, there = logs
    await here.open(stream)
    for _ in range(7):
        await here.append(stream.id, 1, [b""] * 500)
    await here.end(stream.id, 1, "ended")
    assert [seq for seq, _ in await all_of(there, stream.id)] == list(range(1, 3501))


async def test_who_was_replaced_writes_nothing(logs: tuple[EventLog, EventLog], stream: StoredStream) -> None:
    here, there = logs
    await here.open(stream)
    await here.append(stream.id, 1, [b"1"])
    claimed = await there.claim(stream.id, "you")
    assert claimed is not None
    assert claimed.generation == 2
    for write in (here.append(stream.id, 1, [b"2"]), here.end(stream.id, 1, "ended")):
        with pytest.raises(StaleOwnerError):
            await write
    await there.append(stream.id, 2, [b"2"])
    await there.end(stream.id, 2, "failed")
    assert await all_of(here, stream.id) == [(1, b"1"), (2, b"2")]
    assert await there.claim(stream.id, "me") is None


async def test_a_stream_is_bounded_in_bytes(logs: tuple[EventLog, EventLog], stream: StoredStream) -> None:
    here, there = logs
    await here.open(stream)
    for n in range(20):
        await here.append(stream.id, 1, [b"%099d" % n + b"x"])
    await here.end(stream.id, 1, "ended")
    assert [seq for seq, _ in await all_of(there, stream.id, 10)] == list(range(11, 21))
    with pytest.raises(GatewayError) as caught:
        await all_of(there, stream.id, 5)
    assert (caught.value.status, caught.value.code) == (410, "stream_expired")


async def test_an_unknown_stream_is_said(logs: tuple[EventLog, EventLog]) -> None:
    with pytest.raises(GatewayError) as caught:
        await all_of(logs[0], "str_none")
    assert (caught.value.status, caught.value.code) == (404, "stream_not_found")


@pytest_asyncio.fixture
async def over_valkey(database: Database, valkey_url: str) -> AsyncIterator[tuple[ValkeyLog, SqlStreams, str]]:
    streams = SqlStreams(database)
    log = ValkeyLog(streams, valkey_url, max_bytes=MAX_BYTES, ttl_s=60)
    yield log, streams, valkey_url
    await log.close()


@pytest.mark.scale
async def test_repeated_after_a_lost_answer_nothing_is_added_twice(
    over_valkey: tuple[ValkeyLog, SqlStreams, str], stream: StoredStream
) -> None:
    log, _, _ = over_valkey
    await log.open(stream)
    assert await log.append(stream.id, 1, [b"1", b"2"]) == 2
    log._lasts[stream.id] = 0  # as it was before, had the answer not come
    assert await log.append(stream.id, 1, [b"1", b"2"]) == 2
    await log.append(stream.id, 1, [b"3"])
    await log.end(stream.id, 1, "ended")
    assert await all_of(log, stream.id) == [(1, b"1"), (2, b"2"), (3, b"3")]


@pytest.mark.scale
async def test_events_that_valkey_loses_are_expired(
    over_valkey: tuple[ValkeyLog, SqlStreams, str], stream: StoredStream
) -> None:
    log, _, _ = over_valkey
    await log.open(stream)
    await log.append(stream.id, 1, [b"1", b"2"])
    read = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        reader = group.create_task(all_of_what_is_left(log, stream.id, read))
        for _ in range(2):
            await read.acquire()
        await log._redis.delete(*_keys(stream.id))
        with pytest.raises(StaleOwnerError):
            await log.append(stream.id, 1, [b"3"])
        await log.end(stream.id, 1, "failed")
    assert reader.result() == ([b"1", b"2"], "stream_expired")
    assert await all_of_what_is_left(log, stream.id) == ([], "stream_expired")


@pytest.mark.scale
async def test_an_end_that_the_database_did_not_hear_of_is_no_orphan(
    over_valkey: tuple[ValkeyLog, SqlStreams, str], stream: StoredStream
) -> None:
    log, streams, url = over_valkey
    await log.open(stream)
    await log.append(stream.id, 1, [b"1"])
    await log._run(stream.id, 1, (), end="ended")
    assert await all_of(log, stream.id) == [(1, b"1")]
    peer = ValkeyLog(streams, url, max_bytes=MAX_BYTES, ttl_s=60)
    assert await peer.claim(stream.id, "peer") is None
    known = await streams.get(stream.id)
    assert known is not None
    assert known.state == "ended"
    assert await all_of(peer, stream.id) == [(1, b"1")]
    await peer.close()


async def all_of_what_is_left(
    log: EventLog, stream_id: str, read: asyncio.Semaphore | None = None
) -> tuple[list[bytes], str]:
    """The events, and with which error they end; `read`: let go of for each."""
    events = []
    try:
        async with asyncio.timeout(120):
            async for _, data in log.follow(stream_id, 0):
                events.append(data)
                if read is not None:
                    read.release()
    except GatewayError as error:
        return events, error.code
    return events, ""


async def test_a_stream_that_is_broken_off_in_an_event_still_gets_its_last(
    logs: tuple[EventLog, EventLog],
) -> None:
    here, there = logs
    for turns in range(30):
        stream = StoredStream(id=f"str_{secrets.token_hex(8)}", key_id="k", owner="me")
        await here.open(stream)
        await here.append(stream.id, 1, [b"first"])
        adding = asyncio.ensure_future(here.append(stream.id, 1, [b"second"]))
        for _ in range(turns):
            await asyncio.sleep(turns % 3 / 10_000)
        adding.cancel()
        await asyncio.wait([adding])
        await here.append(stream.id, 1, [b"last"])
        await here.end(stream.id, 1, "failed")
        told = [data for _, data in await all_of(there, stream.id)]
        assert told in ([b"first", b"last"], [b"first", b"second", b"last"])
