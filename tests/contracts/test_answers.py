"""Kept answers: one suite for this process's memory and for Valkey."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from trunkline.core.ports import AnswerCache
from trunkline.storage.shared.answers import LARGEST_PART, LocalAnswers
from trunkline.storage.shared.valkey_answers import ValkeyAnswers

MAX_BYTES = 8000


@asynccontextmanager
async def over_valkey(url: str, ttl_s: float) -> AsyncIterator[ValkeyAnswers]:
    answers = ValkeyAnswers(url, max_bytes=MAX_BYTES, ttl_s=ttl_s)
    yield answers
    await answers.close()


@pytest.fixture
def ttl_s() -> float:
    return 600.0


@pytest_asyncio.fixture(params=["local", pytest.param("valkey", marks=pytest.mark.scale)])
async def answers(request: pytest.FixtureRequest, ttl_s: float) -> AsyncIterator[AnswerCache]:
    if request.param == "local":
        yield LocalAnswers(max_bytes=MAX_BYTES, ttl_s=ttl_s)
    else:
        async with over_valkey(request.getfixturevalue("valkey_url"), ttl_s) as shared:
            yield shared


async def test_what_was_put_is_there(answers: AnswerCache) -> None:
    name, data = secrets.token_bytes(32), bytes(range(256))
    assert await answers.get(name) is None
    await answers.put(name, b"former")
    await answers.put(name, data)
    assert await answers.get(name) == data
    assert await answers.get(secrets.token_bytes(32)) is None


@pytest.mark.parametrize("ttl_s", [0.1])
async def test_and_is_so_for_a_while(answers: AnswerCache) -> None:
    name = secrets.token_bytes(32)
    await answers.put(name, b"data")
    await asyncio.sleep(0.2)
    assert await answers.get(name) is None


async def test_what_is_too_large_is_not_kept(answers: AnswerCache) -> None:
    name = secrets.token_bytes(32)
    await answers.put(name, b"x" * (MAX_BYTES // LARGEST_PART + 1))
    assert await answers.get(name) is None


async def test_without_valkey_nothing_is_kept_and_nothing_fails() -> None:
    async with over_valkey("valkey://127.0.0.1:9/0", 60) as away:
        await away.put(b"name", b"data")
        assert await away.get(b"name") is None
