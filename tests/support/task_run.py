"""Tasks under test: begun in a callback, as a protocol would."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from trunkline.calls.task import Task, Wake


class Run:
    """A task under test, begun in a callback as a protocol would, and what became of it."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = self.loop.create_future()
        self.error: BaseException | None = None
        self.task = Task(self.loop, coroutine, self.ended)

    def ended(self, error: BaseException | None) -> None:
        self.error = error
        self.over.set_result(None)

    async def begun(self) -> "Run":
        await called(self.task.step)
        return self

    async def end(self) -> BaseException | None:
        await asyncio.wait_for(self.over, 60)
        assert self.task.done()
        return self.error


async def begin(coroutine: Coroutine[Any, Any, None]) -> Run:
    return await Run(coroutine).begun()


async def called(*callbacks: Any) -> None:
    """Have the loop call them in one turn, outside of any task."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def all_of_them() -> None:
        for callback in callbacks:
            callback()
        done.set_result(None)

    loop.call_soon(all_of_them)
    await done


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def waiting(wake: Wake, seen: list[Any]) -> None:
    seen.append("waits")
    try:
        await wake
    except BaseException as error:
        seen.append(type(error))
        raise
    seen.append("woken")
