"""Stored streams: events in order, bounded, fenced, readable by anyone who may."""

import asyncio

import pytest

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.core.state import Leases, Signals, StaleOwnerError, StreamStore
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.streams import SqlStreams


@pytest.fixture
def streams(database: Database) -> StreamStore:
    return SqlStreams(database)


@pytest.fixture
def leases(database: Database) -> Leases:
    return SqlLeases(database)


@pytest.fixture
def signals(database: Database) -> Signals:
    return SqlSignals(database)


async def test_events_are_read_in_order_from_anywhere(streams: StreamStore) -> None:
    await streams.open(StoredStream(id="strm_1", key_id="key_1"))
    assert await streams.append("strm_1", 1, [b"a", b"b\x00\xff"], max_bytes=100) == 2
    assert await streams.append("strm_1", 1, [b"c"], max_bytes=100) == 3
    assert await streams.append("strm_1", 1, [], max_bytes=100) == 3
    assert await streams.read("strm_1", 0) == [(1, b"a"), (2, b"b\x00\xff"), (3, b"c")]
    assert await streams.read("strm_1", 1, limit=1) == [(2, b"b\x00\xff")]
    assert await streams.read("strm_1", 3) == []


async def test_what_is_repeated_by_its_writer_is_there_once(streams: StreamStore) -> None:
    """The answer to a commit may be lost."""
    await streams.open(StoredStream(id="strm_1"))
    for _ in range(2):
        assert await streams.append("strm_1", 1, [b"a", b"a"], max_bytes=100, before=0) == 2
    assert await streams.append("strm_1", 1, [b"a"], max_bytes=100, before=2) == 3
    assert (
        await streams.append("strm_1", 1, [b"other"], max_bytes=100, before=2) == 4
    )  # its writer gave the last one up
    for _ in range(2):
        await streams.end("strm_1", 1, "failed", 60)
    assert await streams.append("strm_1", 1, [b"other"], max_bytes=100, before=3) == 4
    assert [data for _, data in await streams.read("strm_1", 0)] == [b"a", b"a", b"a", b"other"]
    for late in (
        streams.append("strm_1", 1, [b"late"], max_bytes=100, before=4),
        streams.end("strm_1", 1, "ended", 60),
    ):
        with pytest.raises(StaleOwnerError):
            await late


async def test_the_oldest_events_go_when_there_are_too_many_bytes(streams: StreamStore) -> None:
    await streams.open(StoredStream(id="strm_1"))
    for _ in range(10):
        await streams.append("strm_1", 1, [b"x" * 10], max_bytes=35)
    stream = await streams.get("strm_1")
    assert stream is not None
    assert (stream.first_seq, stream.last_seq, stream.bytes) == (8, 10, 30)
    assert [seq for seq, _ in await streams.read("strm_1", 0)] == [8, 9, 10]


async def test_a_claimed_streams_former_writer_is_refused(streams: StreamStore) -> None:
    await streams.open(StoredStream(id="strm_1", owner="a"))
    claimed = await streams.claim("strm_1", "b")
    assert claimed is not None
    assert (claimed.owner, claimed.generation) == ("b", 2)
    with pytest.raises(StaleOwnerError):
        await streams.append("strm_1", 1, [b"late"], max_bytes=100)
    with pytest.raises(StaleOwnerError):
        await streams.end("strm_1", 1, "ended", 60)
    await streams.append("strm_1", 2, [b"next"], max_bytes=100)
    await streams.end("strm_1", 2, "ended", 60)
    with pytest.raises(StaleOwnerError):
        await streams.append("strm_1", 2, [b"after the end"], max_bytes=100)
    assert await streams.claim("strm_1", "c") is None
    assert await streams.read("strm_1", 0) == [(1, b"next")]


async def test_an_idempotency_key_joins_the_first_stream(streams: StreamStore) -> None:
    def sent(stream_id: str, body_hash: str = "h") -> Idempotency:
        return Idempotency(key_id="k", route="/v1/chat/completions", name="i", body_hash=body_hash, stream_id=stream_id)

    first, new = await streams.open(StoredStream(id="strm_1", key_id="k"), sent("strm_1"))
    assert new
    assert await streams.open(StoredStream(id="strm_2", key_id="k"), sent("strm_2")) == (first, False)
    assert await streams.joined(sent("strm_2")) == first
    with pytest.raises(GatewayError, match="another body"):
        await streams.open(StoredStream(id="strm_3", key_id="k"), sent("strm_3", "other"))


async def test_orphans_are_open_text_streams_of_dead_processes(streams: StreamStore, leases: Leases) -> None:
    alive = await leases.acquire("a", 60)
    await streams.open(StoredStream(id="strm_alive", owner=alive))
    await streams.open(StoredStream(id="strm_dead", owner="gone#1"))
    await streams.open(StoredStream(id="strm_of_job", owner="gone#1", job_id="job_1"))
    await streams.open(StoredStream(id="strm_ended", owner="gone#1"))
    await streams.end("strm_ended", 1, "failed", 60)
    assert [stream.id for stream in await streams.orphans()] == ["strm_dead"]


async def test_expired_streams_are_pruned_with_their_events(streams: StreamStore) -> None:
    for name, kept_s in (("strm_1", -1.0), ("strm_2", 60.0)):
        await streams.open(StoredStream(id=name))
        await streams.append(name, 1, [b"x"], max_bytes=100)
        await streams.end(name, 1, "ended", kept_s)
    assert await streams.prune() == 1
    assert await streams.get("strm_1") is None
    assert await streams.read("strm_1", 0) == []
    assert await streams.read("strm_2", 0) == [(1, b"x")]


async def test_cancelling_is_seen_by_the_writer(streams: StreamStore) -> None:
    await streams.open(StoredStream(id="strm_1", owner="a"))
    assert await streams.to_cancel("a") == []
    await streams.cancel("strm_1")
    assert await streams.to_cancel("a") == ["strm_1"]
    stream = await streams.get("strm_1")
    assert stream is not None
    assert stream.cancel_requested
    assert await streams.cancel("strm_2") is None


async def test_a_lease_lives_while_it_is_renewed(leases: Leases) -> None:
    holder = await leases.acquire("a", 60)
    for _ in range(4):
        assert await leases.renew(holder, 60, '{"calls":3}')
    assert [(lease.name, lease.info) for lease in await leases.alive()] == [("a", '{"calls":3}')]
    assert await leases.renew(holder, 0.01)
    await asyncio.sleep(0.05)
    assert await leases.alive() == []
    assert await leases.renew(holder, 60) is False


async def test_a_signal_is_seen_by_all(signals: Signals) -> None:
    await signals.send("cancel", "req_1")
    await signals.send("cancel", "req_2")
    assert [(signal.topic, signal.body) for signal in await signals.recent()] == [
        ("cancel", "req_1"),
        ("cancel", "req_2"),
    ]
