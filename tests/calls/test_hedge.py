"""A race of targets: whoever leaves at whatever moment leaves no answer open."""

import asyncio
from types import SimpleNamespace
from typing import Any

from trunkline.calls.hedge import Race
from trunkline.core.events import Started


class Answer:
    """A target's answer, open until it is closed."""

    def __init__(self) -> None:
        self.open = True

    async def aclose(self) -> None:
        self.open = False


async def test_an_answer_that_comes_as_the_client_leaves_is_let_go() -> None:
    for turns in range(12):
        ready = asyncio.Event()
        answers: list[Answer] = []

        async def ask(_: object, ready: asyncio.Event = ready, answers: list[Answer] = answers) -> tuple[Any, Any]:
            await ready.wait()
            answers.append(Answer())
            return answers[-1], [Started()]

        targets: list[Any] = [SimpleNamespace(key=("a", "m", "")), SimpleNamespace(key=("b", "m", ""))]
        race = Race(ask, targets, 0.001)
        running = asyncio.ensure_future(race.run())
        while len(race.asked) < 2:  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0.001)
        ready.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        left = running.cancel()
        await asyncio.wait([running])
        assert sum(answer.open for answer in answers) == (0 if left else 1)
