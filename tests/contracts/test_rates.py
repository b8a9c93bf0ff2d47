"""Rates: one suite for counting in process, in a file and in Valkey; the latter two over several processes."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key, Rates
from trunkline.core.money import Budget
from trunkline.core.rates import Left, RateLimiter, Verdict
from trunkline.storage.shared.rates import LocalRates
from trunkline.storage.shared.sqlite_rates import SqliteRates
from trunkline.storage.shared.valkey_rates import ValkeyRates


@asynccontextmanager
async def over_valkey(url: str) -> AsyncIterator[ValkeyRates]:
    """Count as one replica does."""
    rates = ValkeyRates(url)
    running = asyncio.ensure_future(rates.run())
    yield rates
    running.cancel()
    await asyncio.wait([running])
    await rates.close()


@pytest_asyncio.fixture(params=["local", "sqlite", pytest.param("valkey", marks=pytest.mark.scale)])
async def limiter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RateLimiter]:
    if request.param == "local":
        yield LocalRates()
    elif request.param == "sqlite":
        rates = SqliteRates(tmp_path / "rates.db")
        yield rates
        rates.close()
    else:
        async with over_valkey(request.getfixturevalue("valkey_url")) as shared:
            yield shared


async def let_in(limiter: RateLimiter, key: Key, *, tokens: int = 0, streams: int = 0) -> Verdict:
    """Take, once the ends of calls have arrived where they are counted."""
    async with asyncio.timeout(60):
        while (verdict := (await limiter.take(key, tokens=tokens, images=0, streams=streams))[0]).short:  # noqa: ASYNC110 - counted elsewhere
            await asyncio.sleep(0.02)
    return verdict


def a_key(name: str = "", **rates: int) -> Key:
    return Key(id=name or f"key_{secrets.token_hex(4)}", name=name, rates=Rates(**rates))


async def test_exactly_as_many_as_the_limit(limiter: RateLimiter) -> None:
    key = a_key(requests=50)
    takes = await asyncio.gather(*(limiter.take(key, tokens=0, images=0, streams=0) for _ in range(300)))
    assert sum(verdict.short is None for verdict, _ in takes) == 50
    verdict, _ = await limiter.take(key, tokens=0, images=0, streams=0)
    assert (verdict.short, verdict.limit) == ("requests", 50)
    assert 30 < verdict.retry_after_s < 61
    assert (await limiter.take(a_key(requests=1), tokens=0, images=0, streams=0))[0].short is None


async def test_tokens_are_corrected_at_the_end(limiter: RateLimiter) -> None:
    key = a_key(tokens=100)
    _, passed = await limiter.take(key, tokens=90, images=0, streams=0)
    assert (await limiter.take(key, tokens=20, images=0, streams=0))[0].short == "tokens"
    limiter.end(passed, 30)
    verdict = await let_in(limiter, key, tokens=20)
    assert verdict.tokens is not None
    assert verdict.tokens.remaining == 50


async def test_whoever_leaves_while_a_stream_is_counted_holds_none(limiter: RateLimiter) -> None:
    key = a_key(streams=2)
    for turns in range(40):
        taking = asyncio.ensure_future(limiter.take(key, tokens=0, images=0, streams=1))
        for _ in range(turns % 10):
            await asyncio.sleep(0)
        if not taking.cancel():
            limiter.end((await taking)[1], 0)
        await asyncio.wait([taking])
    for _ in range(2):
        await let_in(limiter, key, streams=1)
    assert (await limiter.take(key, tokens=0, images=0, streams=1))[0].short == "streams"


async def test_streams_are_given_back(limiter: RateLimiter) -> None:
    key = a_key(streams=2)
    passes = [await limiter.take(key, tokens=0, images=0, streams=1) for _ in range(3)]
    assert [verdict.short for verdict, _ in passes] == [None, None, "streams"]
    limiter.end(passes[0][1], 0)
    await let_in(limiter, key, streams=1)


async def test_images(limiter: RateLimiter) -> None:
    key = a_key(images=4)
    shorts = [(await limiter.take(key, tokens=0, images=3, streams=0))[0].short for _ in range(2)]
    assert shorts == [None, "images"]


WORKER = """
import asyncio, sys
from pathlib import Path
from trunkline.core.keys import Key, Rates
from trunkline.storage.shared.sqlite_rates import SqliteRates

async def main():
    limiter = SqliteRates(Path(sys.argv[1]), int(sys.argv[2]), 3)
    key = Key(id="key_1", name="a", rates=Rates(requests=100, tokens=10**6, streams=150))
    takes = [await limiter.take(key, tokens=7, images=0, streams=1) for _ in range(80)]
    print(sum(verdict.short is None for verdict, _ in takes))

asyncio.run(main())
"""


async def test_processes_share_a_limit_and_dead_ones_hold_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    arguments = [sys.executable, "-c", WORKER, str(path)]
    workers = [
        await asyncio.create_subprocess_exec(*arguments, str(number), stdout=asyncio.subprocess.PIPE)
        for number in range(3)
    ]
    assert sum([int((await worker.communicate())[0]) for worker in workers]) == 100
    key = a_key("key_1", streams=2)
    first = SqliteRates(path, 0, 3)
    assert (await first.take(key, tokens=0, images=0, streams=1))[0].short == "streams"  # of two that are not back yet
    others = [SqliteRates(path, 1, 2)]  # and there is no third any more
    shorts = [(await first.take(key, tokens=0, images=0, streams=1))[0].short for _ in range(3)]
    assert shorts == [None, None, "streams"]
    for limiter in (first, *others):
        limiter.close()


@pytest.mark.parametrize("at", [0, 4096])
async def test_a_damaged_file_is_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture, at: int) -> None:
    path, key = tmp_path / "rates.db", a_key(requests=1)
    before = SqliteRates(path)
    assert (await before.take(key, tokens=0, images=0, streams=0))[0].short is None
    before.close()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 4096)
    limiter = SqliteRates(path)
    shorts = [(await limiter.take(key, tokens=0, images=0, streams=0))[0].short for _ in range(2)]
    assert shorts == [None, "requests"]
    assert "rates.db was damaged" in caplog.text
    limiter.close()
    again = SqliteRates(path)
    assert (await again.take(key, tokens=0, images=0, streams=0))[0].short == "requests"
    again.close()


@pytest.mark.scale
async def test_replicas_share_a_limit_over_valkey(valkey_url: str) -> None:
    key = a_key(requests=100, tokens=1000, streams=60)
    async with over_valkey(valkey_url) as one, over_valkey(valkey_url) as two:
        takes = await asyncio.gather(
            *((one, two)[n % 2].take(key, tokens=1, images=0, streams=n // 200) for n in range(400))
        )
        assert sum(verdict.short is None for verdict, _ in takes) == 100
        last = max((verdict for verdict, _ in takes if verdict.requests), key=lambda v: -v.requests.remaining)  # type: ignore[union-attr]
        assert (last.requests.limit, last.requests.remaining) == (100, 0)  # type: ignore[union-attr]
        refused = next(verdict for verdict, _ in takes if verdict.short)
        assert (refused.short, refused.limit) == ("requests", 100)
        assert 30 < refused.retry_after_s < 61


@pytest.mark.scale
async def test_streams_of_a_dead_replica_are_free_again(valkey_url: str) -> None:
    key = a_key(streams=1)
    dead = ValkeyRates(valkey_url)
    await dead.take(key, tokens=0, images=0, streams=1)
    async with over_valkey(valkey_url) as alive:
        assert (await alive.take(key, tokens=0, images=0, streams=1))[0].short == "streams"
        await dead._redis.delete(f"trunkline:alive:{dead._process}")
        assert (await alive.take(key, tokens=0, images=0, streams=1))[0].short is None
    await dead.close()


THREE_HOURS_LATER = """
for _, slot in ipairs(redis.call('ZRANGE', KEYS[1] .. ':z', 0, -1)) do
  local later = slot + 108000
  redis.call('ZADD', KEYS[1] .. ':z', later, later)
  redis.call('HSET', KEYS[1], later, redis.call('HGET', KEYS[1], slot))
  redis.call('ZREM', KEYS[1] .. ':z', slot)
  redis.call('HDEL', KEYS[1], slot)
end
"""


@pytest.mark.scale
async def test_what_was_counted_before_valkeys_clock_was_set_back_is_forgotten(valkey_url: str) -> None:
    key = a_key(requests=2)
    async with over_valkey(valkey_url) as rates:
        assert [(await rates.take(key, tokens=0, images=0, streams=0))[0].short for _ in range(3)][1:] == [
            None,
            "requests",
        ]
        window = f"trunkline:rate:{{{key.id}}}:requests"
        await rates._redis.register_script(THREE_HOURS_LATER)(keys=[window])
        assert (await rates.take(key, tokens=0, images=0, streams=0))[0].requests == Left(2, 1, 60.1)
        assert await rates._redis.hget(window, "t") == b"1"


async def test_without_valkey_budgets_are_closed_and_others_go_on() -> None:
    rates = ValkeyRates("valkey://127.0.0.1:1/0")
    verdict, passed = await rates.take(a_key(requests=1), tokens=0, images=0, streams=1)
    assert verdict.short is None
    rates.end(passed, 5)
    with pytest.raises(GatewayError) as error:
        await rates.take(
            Key(id="k", name="k", rates=Rates(requests=1), budget=Budget(day=1)), tokens=0, images=0, streams=0
        )
    assert error.value.code == "storage_unavailable"
    await rates.close()
