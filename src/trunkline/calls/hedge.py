"""Hedging of the first token: a second target is asked when the first has not answered after a while."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from trunkline.calls.attempt import Attempt, answers
from trunkline.core.events import Event, Failed
from trunkline.routing import order

Asking = Callable[[order.Attempt], Awaitable[tuple[Attempt, list[Event]]]]
Won = tuple[order.Attempt, Attempt, list[Event], float]
"""Who answered, with its first events and the seconds that they took."""


class Race:
    """Asks the first of some targets, and after `hedge_s` the second: another provider's or model's if there is one.

    Those that are asked are taken out of `left`. After `run`, `won` is who answered first, `failed` who failed before,
    and `lost` who was broken off, or answered too late.
    """

    def __init__(self, ask: Asking, left: list[order.Attempt], hedge_s: float) -> None:
        self._ask = ask
        self._left = left
        self._hedge_s = hedge_s
        self._running: dict[asyncio.Task[tuple[Attempt, list[Event]]], tuple[order.Attempt, float]] = {}
        self.asked: list[order.Attempt] = []
        self.won: Won | None = None
        self.failed: list[tuple[order.Attempt, Failed]] = []
        self.lost: list[order.Attempt] = []

    async def run(self) -> None:
        """Race to the first answer; nobody is asked any more when this returns, or is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._start(group, self._left.pop(0))
                done, _ = await asyncio.wait(self._running, timeout=self._hedge_s)
                if not done:
                    self._start(group, self._left.pop(self._other()))
                while self._running and self.won is None:
                    done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        await self._take(task)
                for task, (asked, _) in self._running.items():
                    task.cancel()
                    self.lost.append(asked)
        except asyncio.CancelledError:
            if self.won is not None:
                await self.won[1].aclose()
            raise
        finally:
            for task in self._running:  # it may have its answer all the same
                if not task.cancelled() and task.exception() is None:
                    await task.result()[0].aclose()

    def _start(self, group: asyncio.TaskGroup, asked: order.Attempt) -> None:
        self.asked.append(asked)
        self._running[group.create_task(_of(self._ask(asked)))] = (asked, time.monotonic())

    def _other(self) -> int:
        """Choose whom to ask as well: not the same model with another key, where there is a choice."""
        place = self.asked[0].key[:2]
        return next((at for at, attempt in enumerate(self._left) if attempt.key[:2] != place), 0)

    async def _take(self, task: asyncio.Task[tuple[Attempt, list[Event]]]) -> None:
        asked, begun = self._running.pop(task)
        attempt, events = task.result()
        last = events[-1]
        if isinstance(last, Failed) and not answers(events):
            self.failed.append((asked, last))
            await attempt.aclose()
        elif self.won is None:
            self.won = (asked, attempt, events, time.monotonic() - begun)
        else:  # both at once
            self.lost.append(asked)
            await attempt.aclose()


async def _of(asking: Awaitable[tuple[Attempt, list[Event]]]) -> tuple[Attempt, list[Event]]:
    return await asking
