"""A task of ours that is cancelled, at any moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from task_run import Run, begin, called, turns, waiting

from trunkline.calls.task import Wake


async def test_cancelling_before_the_first_step() -> None:
    seen: list[Any] = []
    run = Run(waiting(Wake(), seen))
    assert run.task.cancel()
    await run.begun()
    assert isinstance(await run.end(), asyncio.CancelledError)
    assert seen == []


async def test_cancelling_itself_before_the_first_wait() -> None:
    seen: list[Any] = []

    async def itself() -> None:
        run.task.cancel()
        seen.append("still here")
        await waiting(Wake(), seen)

    run = Run(itself())
    await run.begun()
    assert isinstance(await run.end(), asyncio.CancelledError)
    assert seen == ["still here", "waits", asyncio.CancelledError]


@pytest.mark.parametrize("what", [Wake, asyncio.Future, lambda: asyncio.sleep(0)], ids=["wake", "future", "nothing"])
async def test_cancelling_while_it_waits(what: Callable[[], Awaitable[None]]) -> None:
    seen: list[Any] = []

    async def waits() -> None:
        try:
            await what()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    run = Run(waits())
    await called(run.task.step, run.task.cancel, run.task.cancel, lambda: seen.append("after"))
    assert isinstance(await run.end(), asyncio.CancelledError)
    assert seen == ["after", "cancelled"]
    assert run.task.cancelling() == 2
    assert run.task.cancel() is False
    assert run.task.cancelling() == 2
    await turns()


async def test_cancelling_once_more_while_it_cleans_up() -> None:
    seen: list[Any] = []

    async def stubborn() -> None:
        for _ in range(2):
            try:
                await Wake()
            except asyncio.CancelledError:
                seen.append(run.task.uncancel())
        await asyncio.sleep(0)

    run = await begin(stubborn())
    run.task.cancel()
    await turns()
    run.task.cancel()
    assert await run.end() is None
    assert seen == [0, 0]
    assert run.task.uncancel() == 0


@pytest.mark.parametrize("first", ["wake", "error", "cancel"])
async def test_cancelling_in_the_turn_in_which_it_is_woken(first: str) -> None:
    """From a running task, so that waking is for the next turn: cancelling wins, once, whichever was first."""
    seen: list[Any] = []
    wake = Wake()
    run = await begin(waiting(wake, seen))
    if first == "cancel":
        run.task.cancel()
        wake.wake()
    else:
        wake.wake(ValueError() if first == "error" else None)
        run.task.cancel()
    assert isinstance(await run.end(), asyncio.CancelledError)
    assert seen == ["waits", asyncio.CancelledError]
    await turns()


async def test_cancelling_in_the_turn_in_which_a_future_is_done() -> None:
    future = asyncio.get_running_loop().create_future()

    async def waits() -> None:
        await future

    run = await begin(waits())
    future.set_result(None)
    run.task.cancel()
    assert isinstance(await run.end(), asyncio.CancelledError)
