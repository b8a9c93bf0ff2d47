"""Rates: one suite for counting in process and in a file; the file also over several processes."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trunkline.core.keys import Key, Rates
from trunkline.core.rates import RateLimiter
from trunkline.storage.shared.rates import LocalRates
from trunkline.storage.shared.sqlite_rates import SqliteRates


@pytest.fixture(params=["local", "sqlite"])
def limiter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RateLimiter]:
    if request.param == "local":
        yield LocalRates()
        return
    rates = SqliteRates(tmp_path / "rates.db")
    yield rates
    rates.close()


def a_key(name: str = "key_1", **rates: int) -> Key:
    return Key(id=name, name=name, rates=Rates(**rates))


async def test_exactly_as_many_as_the_limit(limiter: RateLimiter) -> None:
    takes = await asyncio.gather(*(limiter.take(a_key(requests=50), tokens=0, images=0, streams=0) for _ in range(300)))
    assert sum(verdict.short is None for verdict, _ in takes) == 50
    verdict, _ = await limiter.take(a_key(requests=50), tokens=0, images=0, streams=0)
    assert (verdict.short, verdict.limit) == ("requests", 50)
    assert 50 < verdict.retry_after_s < 61
    assert (await limiter.take(a_key("key_2", requests=1), tokens=0, images=0, streams=0))[0].short is None


async def test_tokens_are_corrected_at_the_end(limiter: RateLimiter) -> None:
    key = a_key(tokens=100)
    _, passed = await limiter.take(key, tokens=90, images=0, streams=0)
    assert (await limiter.take(key, tokens=20, images=0, streams=0))[0].short == "tokens"
    limiter.end(passed, 30)
    verdict, _ = await limiter.take(key, tokens=20, images=0, streams=0)
    assert verdict.tokens is not None
    assert (verdict.short, verdict.tokens.remaining) == (None, 50)


async def test_streams_are_given_back(limiter: RateLimiter) -> None:
    key = a_key(streams=2)
    passes = [await limiter.take(key, tokens=0, images=0, streams=1) for _ in range(3)]
    assert [verdict.short for verdict, _ in passes] == [None, None, "streams"]
    limiter.end(passes[0][1], 0)
    assert (await limiter.take(key, tokens=0, images=0, streams=1))[0].short is None


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
    limiter = SqliteRates(Path(sys.argv[1]))
    key = Key(id="key_1", name="a", rates=Rates(requests=100, tokens=10**6, streams=150))
    takes = [await limiter.take(key, tokens=7, images=0, streams=1) for _ in range(80)]
    print(sum(verdict.short is None for verdict, _ in takes))

asyncio.run(main())
"""


async def test_processes_share_a_limit_and_dead_ones_hold_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    arguments = [sys.executable, "-c", WORKER, str(path)]
    workers = [await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE) for _ in range(3)]
    assert sum([int((await worker.communicate())[0]) for worker in workers]) == 100
    limiter = SqliteRates(path)
    key = a_key(streams=2)
    shorts = [(await limiter.take(key, tokens=0, images=0, streams=1))[0].short for _ in range(3)]
    assert shorts == [None, None, "streams"]
    limiter.close()
