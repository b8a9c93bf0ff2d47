"""Rates over Valkey when it is unsure what became of a script: a call counts once, or not at all, and ends once."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product

import pytest
import pytest_asyncio
from unsure_valkey import Fate, UnsureValkey

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key, Rates
from trunkline.core.money import Budget
from trunkline.core.rates import Passed, Verdict
from trunkline.storage.shared.valkey import connect
from trunkline.storage.shared.valkey_rates import END, TAKE, ValkeyRates

pytestmark = pytest.mark.scale
FATES: tuple[Fate, ...] = ("lost", "late")
TAKES: list[tuple[Fate, ...]] = [*product(FATES), *product(FATES, repeat=2)]
ENDS: list[tuple[Fate, ...]] = [(), ("lost",), ("late",), ("lost", "lost"), ("late", "late", "lost", "lost")]


@pytest.fixture(autouse=True)
def fast_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find out soon that Valkey is back; and on a machine that stalls for seconds no process is dead."""
    monkeypatch.setattr("trunkline.storage.shared.valkey_rates.BEAT_S", 0.02)
    monkeypatch.setattr("trunkline.storage.shared.valkey_rates.ALIVE_S", 600)


@pytest_asyncio.fixture
async def way(valkey_url: str) -> AsyncIterator[UnsureValkey]:
    async with UnsureValkey(valkey_url).open() as way:
        yield way


@asynccontextmanager
async def counting(url: str) -> AsyncIterator[ValkeyRates]:
    """Count as one replica does; afterwards all ends are handed in."""
    rates = ValkeyRates(url)
    for script in (TAKE, END):
        await rates._redis.script_load(script)
    running = asyncio.ensure_future(rates.run())
    try:
        yield rates
    finally:
        running.cancel()
        await asyncio.wait([running])
        await rates.close()


def a_key(budget: Budget | None = None, **rates: int) -> Key:
    return Key(id=f"key_{secrets.token_hex(4)}", name="", rates=Rates(**rates), budget=budget or Budget())


async def stream(rates: ValkeyRates, key: Key, tokens: int = 0) -> tuple[Verdict, Passed]:
    return await rates.take(key, tokens=tokens, images=0, streams=1)


async def free(rates: ValkeyRates, key: Key) -> int:
    """Give how many streams fit, and give them back."""
    passes = []
    while not (take := await stream(rates, key))[0].short:
        passes.append(take[1])
    for passed in passes:
        rates.end(passed, 0)
    return len(passes)


async def spent(way: UnsureValkey) -> None:
    """Wait until all fates were met."""
    async with asyncio.timeout(60):
        while way.fates:  # noqa: ASYNC110 - counted elsewhere
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("take", TAKES, ids="-".join)
@pytest.mark.parametrize("end", ENDS, ids="-".join)
@pytest.mark.parametrize("soon", [True, False], ids=["soon", "late"])
async def test_a_call_counts_once_and_ends_once(
    valkey_url: str, way: UnsureValkey, take: tuple[Fate, ...], end: tuple[Fate, ...], *, soon: bool
) -> None:
    key = a_key(requests=100, tokens=1000, streams=2)
    counted = soon or take != ("late", "late")
    async with counting(way.url) as rates:
        way.awaits(rates._take.sha, *take)
        verdict, passed = await stream(rates, key, 90)
        assert (verdict.short, list(way.fates)) == (None, [])
        async with counting(valkey_url) as witness:
            if soon:
                await way.let_go()
            assert await free(witness, key) == 2 - counted
        way.awaits(rates._end.sha, *end)
        rates.end(passed, 30)
        await spent(way)
    async with counting(valkey_url) as witness:
        await way.let_go()
        verdict, passed = await stream(witness, key)
        assert verdict.requests is not None
        assert verdict.requests.remaining == 100 - 2 - 1  # what was let in before were two, of whomever
        assert verdict.tokens is not None
        assert verdict.tokens.remaining == 1000 - 30 * counted
        witness.end(passed, 0)
    async with counting(valkey_url) as witness:
        assert await free(witness, key) == 2


@pytest.mark.parametrize("fate", FATES)
async def test_a_refused_call_holds_nothing_later(valkey_url: str, way: UnsureValkey, fate: Fate) -> None:
    key = a_key(streams=1)
    async with counting(way.url) as rates:
        async with counting(valkey_url) as witness:
            _, passed = await stream(witness, key)
            way.awaits(rates._take.sha, fate)
            assert (await stream(rates, key))[0].short == "streams"
            witness.end(passed, 0)
        async with counting(valkey_url) as witness:
            await way.let_go()
            assert await free(witness, key) == 1


async def test_a_key_that_is_refused_without_an_answer_holds_nothing(valkey_url: str, way: UnsureValkey) -> None:
    key = a_key(Budget(day=1), streams=1, tokens=100)
    for fates in product(FATES, repeat=2):
        async with counting(way.url) as rates:
            way.awaits(rates._take.sha, *fates)
            with pytest.raises(GatewayError, match="Valkey is away"):
                await stream(rates, key, 90)
        await way.let_go()
        async with counting(valkey_url) as witness:
            verdict, passed = await stream(witness, key)
            assert verdict.tokens is not None
            assert verdict.tokens.remaining == 100
            witness.end(passed, 0)


@pytest.mark.parametrize("fates", TAKES, ids="-".join)
async def test_whoever_leaves_before_the_answer_holds_nothing(
    valkey_url: str, way: UnsureValkey, fates: tuple[Fate, ...]
) -> None:
    key = a_key(streams=1)
    async with counting(way.url) as rates, counting(valkey_url) as witness:
        way.awaits(rates._take.sha, *fates)
        asking = asyncio.ensure_future(stream(rates, key))
        while len(way.fates) == len(fates):  # noqa: ASYNC110 - counted elsewhere
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        if not asking.cancelled():
            rates.end(asking.result()[1], 0)
        await spent(way)
        await way.let_go()
        async with asyncio.timeout(60):
            while not await free(witness, key):  # noqa: ASYNC110 - counted elsewhere
                await asyncio.sleep(0.02)


@asynccontextmanager
async def limited(url: str, *rights: str) -> AsyncIterator[tuple[str, Callable[..., Awaitable[None]]]]:
    """Give a way in for a user with some rights, and what changes them."""
    admin, _ = connect(url)

    async def let(*rights: str) -> None:
        await admin.acl_setuser("limited", enabled=True, passwords="+word", keys="*", commands=rights)

    await let(*rights)
    try:
        yield url.replace("://", "://limited:word@"), let
    finally:
        await admin.acl_deluser("limited")
        await admin.aclose()


async def until(happens: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not happens():  # noqa: ASYNC110 - counted elsewhere
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("refused", ["-@scripting", "-zadd"])
async def test_a_valkey_that_refuses_to_count_is_away_until_it_counts_again(
    valkey_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    caplog.set_level("WARNING")
    key, tries = a_key(tokens=1000, streams=2), 0
    async with counting(valkey_url) as witness, limited(valkey_url, "+@all") as (url, let), counting(url) as rates:
        asked = rates._counts_again

        async def counted() -> bool:
            nonlocal tries
            tries += 1
            return await asked()

        monkeypatch.setattr(rates, "_counts_again", counted)
        _, early = await stream(rates, key, 90)
        await let("+@all", refused)
        rates.end(early, 30)
        await until(lambda: rates.away)
        while tries < 20:
            assert rates.away
            _, passed = await stream(rates, key, 90)
            rates.end(passed, 30)
            await asyncio.sleep(0.01)
        assert sum(map(len, rates._ended.values())) == 1
        await let("+@all")
        await until(lambda: not rates.away)
        assert [message.partition(";")[0] for message in caplog.messages] == ["Valkey is away", "Valkey is back"]
        verdict, passed = await stream(rates, key)
        assert verdict.tokens is not None
        assert verdict.tokens.remaining == 1000 - 30
        rates.end(passed, 0)
        async with asyncio.timeout(60):
            while await free(witness, key) < 2:  # noqa: ASYNC110 - counted elsewhere
                await asyncio.sleep(0.02)


async def test_a_key_that_valkey_cannot_count_keeps_no_other_from_being_counted(
    valkey_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    odd, key = a_key(streams=5), a_key(tokens=100)
    async with counting(valkey_url) as rates:
        _, passed = await stream(rates, key, 90)
        await rates._redis.set(f"trunkline:rate:{{{odd.id}}}:open:{rates._process}", "of another type")
        _, strange = await stream(rates, odd, 90)
        assert rates.away
        rates.end(passed, 30)
        rates.end(strange, 30)
        await until(lambda: not rates.away)
        verdict, _ = await stream(rates, key)
        assert verdict.tokens is not None
        assert verdict.tokens.remaining == 70
    assert [message for message in caplog.messages if f"refuses the ends of 1 calls of key {odd.id}" in message]


async def test_what_valkey_forgot_is_not_taken_off(valkey_url: str) -> None:
    key = a_key(tokens=100, streams=2)
    async with counting(valkey_url) as rates:
        _, passed = await stream(rates, key, 90)
        await rates._redis.delete(*await rates._redis.keys(f"*{key.id}*"))
        rates.end(passed, 30)
    async with counting(valkey_url) as witness:
        verdict, _ = await stream(witness, key)
        assert verdict.tokens is not None
        assert verdict.tokens.remaining == 100


async def test_all_that_valkey_holds_expires(valkey_url: str) -> None:
    key = a_key(requests=10, tokens=100, images=5, streams=2)
    async with counting(valkey_url) as rates:
        passes = [await rates.take(key, tokens=9, images=1, streams=1) for _ in range(3)]
        assert [verdict.short for verdict, _ in passes] == [None, None, "streams"]
        rates.end(passes[0][1], 5)
    async with counting(valkey_url) as witness:
        kept = {name: await witness._redis.ttl(name) for name in await witness._redis.keys(f"*{key.id}*")}
        assert sum(b":call:" in name for name in kept) == 3
        assert [name for name, ttl in kept.items() if ttl < 0] == []
