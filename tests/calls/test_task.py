"""Our own task, on both loops: when its steps run, how it is cancelled, and that asyncio's code can live in it."""

import asyncio
import weakref
from contextvars import ContextVar
from typing import Any

import pytest
from task_run import Run, begin, called, turns, waiting

from trunkline.calls.task import Wake

HERE: ContextVar[str] = ContextVar("HERE", default="nowhere")


async def test_the_first_step_is_taken_at_once() -> None:
    seen: list[Any] = []
    run = Run(waiting(Wake(), seen))
    await called(run.task.step, lambda: seen.append("after"))
    assert seen == ["waits", "after"]
    assert not run.task.done()
    run.task.cancel()
    await run.end()


async def test_a_wake_runs_who_waits_on_in_the_same_callback() -> None:
    seen: list[Any] = []
    wake = Wake()
    run = await begin(waiting(wake, seen))
    await called(wake.wake, lambda: seen.append("after"), wake.wake)
    assert seen == ["waits", "woken", "after"]
    assert await run.end() is None


@pytest.mark.parametrize("ours", [False, True])
async def test_a_wake_done_by_a_running_task_goes_to_the_next_turn(*, ours: bool) -> None:
    seen: list[Any] = []
    wake = Wake()
    run = await begin(waiting(wake, seen))

    async def waker() -> None:
        wake.wake()
        seen.append("after")

    await ((await begin(waker())).end() if ours else waker())
    assert await run.end() is None
    assert seen == ["waits", "after", "woken"]


async def test_a_task_may_begin_while_another_runs() -> None:
    seen: list[Any] = []
    run = Run(waiting(Wake(), seen))
    run.task.step()  # this test runs in a task
    assert seen == []
    await turns()
    assert seen == ["waits"]
    run.task.cancel()
    await run.end()


async def test_an_error_is_raised_in_the_next_turn_for_who_fails_is_in_the_middle_of_it() -> None:
    seen: list[Any] = []
    wake = Wake()
    run = await begin(waiting(wake, seen))
    await called(lambda: wake.wake(ValueError("broken")), lambda: seen.append("after"))
    error = await run.end()
    assert seen == ["waits", "after", ValueError]
    assert isinstance(error, ValueError)
    assert str(error) == "broken"


async def test_what_was_woken_before_is_not_waited_for() -> None:
    seen: list[Any] = []
    wake, broken = Wake(), Wake()
    wake.wake()
    broken.wake(ValueError())
    assert wake.done()

    async def both() -> None:
        await wake
        seen.append("first")
        await broken

    run = Run(both())
    await called(run.task.step)
    assert seen == ["first"]
    assert isinstance(await run.end(), ValueError)


@pytest.mark.parametrize("woken", [False, True])
async def test_a_wake_that_is_cancelled(*, woken: bool) -> None:
    seen: list[Any] = []
    wake = Wake()
    run = await begin(waiting(wake, seen))
    if woken:
        await called(wake.wake)
    assert wake.cancel() is not woken
    assert wake.cancel() is False
    assert isinstance(await run.end(), asyncio.CancelledError) is not woken
    assert seen == ["waits", "woken" if woken else asyncio.CancelledError]


@pytest.mark.parametrize("ending", ["wake", "error", "cancel wake", "cancel task", "cancel at once"])
async def test_a_task_of_asyncio_may_wait_for_a_wake(ending: str) -> None:
    seen: list[Any] = []
    wake = Wake()
    task = asyncio.ensure_future(waiting(wake, seen))
    if ending != "cancel at once":
        await turns(1)
        assert seen == ["waits"]
    match ending:
        case "wake":
            wake.wake()
        case "error":
            wake.wake(ValueError())
        case "cancel wake":
            wake.cancel()
        case _:
            task.cancel("why")
    (error,) = await asyncio.gather(task, return_exceptions=True)
    expected = {"wake": type(None), "error": ValueError}.get(ending, asyncio.CancelledError)
    assert type(error) is expected
    assert seen == {"wake": ["waits", "woken"], "cancel at once": []}.get(ending, ["waits", expected])


async def test_asyncio_futures_are_waited_for() -> None:
    loop = asyncio.get_running_loop()
    good, bad, away = loop.create_future(), loop.create_future(), loop.create_future()
    seen: list[Any] = []

    async def waits() -> None:
        seen.append(await good)
        for future in (bad, away):
            try:
                await future
            except (ValueError, asyncio.CancelledError) as error:
                seen.append(type(error))
        await asyncio.sleep(0)
        seen.append(await asyncio.sleep(0.001, "slept"))
        seen.append(await asyncio.to_thread(lambda: "threaded"))

    run = await begin(waits())
    good.set_result("good")
    await turns()
    bad.set_exception(ValueError())
    await turns()
    away.cancel()
    assert await run.end() is None
    assert seen == ["good", ValueError, asyncio.CancelledError, "slept", "threaded"]


async def test_sleeping_for_nothing_gives_the_turn_to_others() -> None:
    seen: list[str] = []

    async def steps() -> None:
        for number in range(3):
            seen.append(f"step {number}")
            await asyncio.sleep(0)

    run = Run(steps())
    loop = asyncio.get_running_loop()
    await called(run.task.step, lambda: loop.call_soon(seen.append, "between"))
    await run.end()
    assert seen == ["step 0", "step 1", "between", "step 2"]


@pytest.mark.parametrize("expires", [False, True])
async def test_timeouts(*, expires: bool) -> None:
    seen: list[Any] = []
    wake = Wake()

    async def limited() -> None:
        try:
            async with asyncio.timeout(0.01 if expires else 5):
                await wake
        except TimeoutError:
            seen.append("expired")
        assert asyncio.current_task() is run.task  # type: ignore[comparison-overlap]
        assert run.task.cancelling() == 0
        await asyncio.sleep(0)
        seen.append("went on")

    run = await begin(limited())
    if not expires:
        await called(wake.wake)
    assert await run.end() is None
    assert seen == (["expired", "went on"] if expires else ["went on"])


async def test_a_timeout_does_not_hide_who_else_cancels() -> None:
    async def limited() -> None:
        async with asyncio.timeout(5):
            await Wake()

    run = await begin(limited())
    run.task.cancel()
    assert isinstance(await run.end(), asyncio.CancelledError)


@pytest.mark.parametrize("fails", [False, True])
async def test_task_groups(*, fails: bool) -> None:
    seen: list[Any] = []
    wake = Wake()

    async def child(number: int) -> None:
        await asyncio.sleep(0)
        if fails and number == 1:
            raise ValueError
        seen.append(number)

    async def grouped() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(3):
                    group.create_task(child(number))
                if fails:
                    await wake  # broken off by the group
        except* ValueError:
            seen.append("failed")
        await asyncio.sleep(0)
        assert run.task.cancelling() == 0

    run = await begin(grouped())
    assert await run.end() is None
    assert seen[-1] == ("failed" if fails else 2)


async def test_a_group_is_cancelled_with_its_task() -> None:
    ends: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ends.append("child")

    async def grouped() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    run = await begin(grouped())
    await turns()
    run.task.cancel()
    assert isinstance(await run.end(), asyncio.CancelledError)
    assert ends == ["child"]


async def test_locks_go_from_task_to_task() -> None:
    lock = asyncio.Lock()
    wake = Wake()
    seen: list[int] = []

    async def locked(number: int) -> None:
        async with lock:
            if not number:
                await wake
            seen.append(number)

    runs = [await begin(locked(number)) for number in range(4)]
    await turns()
    assert seen == []
    runs[2].task.cancel()
    await called(wake.wake)
    ends = [await run.end() for run in runs]
    assert seen == [0, 1, 3]
    assert [type(end) for end in ends] == [type(None), type(None), asyncio.CancelledError, type(None)]


async def test_context_variables_are_each_task_s_own() -> None:
    wakes = [Wake(), Wake()]
    seen: list[str] = []

    async def says(number: int) -> None:
        seen.append(HERE.get())
        HERE.set(f"task {number}")
        await wakes[number]
        seen.append(HERE.get())
        await asyncio.sleep(0)
        seen.append(HERE.get())

    HERE.set("test")
    runs = [await begin(says(number)) for number in range(2)]
    HERE.set("later")
    await called(wakes[1].wake, wakes[0].wake)
    for run in runs:
        assert await run.end() is None
    assert seen == ["test", "test", "task 1", "task 0", "task 1", "task 0"]
    assert HERE.get() == "later"


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("waits", [False, True])
async def test_what_it_raises_reaches_who_is_told_of_the_end(kind: type[BaseException], *, waits: bool) -> None:
    async def raises() -> None:
        if waits:
            await asyncio.sleep(0)
        raise kind

    run = await begin(raises())
    assert type(await run.end()) is kind
    assert asyncio.current_task() is not None  # no other was left behind as the running one


class Held:
    """Something that a coroutine holds."""


@pytest.mark.parametrize("ending", ["returns", "raises", "is cancelled", "is told of an error"])
async def test_nothing_is_kept_after_the_end(uncollected: None, ending: str) -> None:
    wake = Wake()

    async def holds(held: Held) -> None:
        await wake
        if ending == "raises":
            raise ValueError(held)

    held = Held()
    watched = weakref.ref(held)
    run = await begin(holds(held))
    del held
    match ending:
        case "is cancelled":
            run.task.cancel()
        case "is told of an error":
            await called(lambda: wake.wake(ValueError()))
        case _:
            await called(wake.wake)
    await run.end()
    run.error = None
    await turns()
    assert run.task.done()
    assert watched() is None
