"""One attempt at an answer: what it does to others meanwhile."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from turns import Turns

from trunkline.calls.attempt import Attempt
from trunkline.core.chat import ChatRequest, Target
from trunkline.core.errors import GatewayError
from trunkline.core.events import Failed
from trunkline.core.route import Timeouts
from trunkline.ingress.openai_chat import parse

AT_ONCE = 4


def with_picture(size: int) -> ChatRequest:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * size}}
    return parse(json.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]}).encode())


async def built(request: ChatRequest) -> list[int]:
    """In which turns of the loop requests that begin at once are built."""
    turns, seen, large = Turns(), [], asyncio.Lock()

    async def opened(*_: Any, **__: Any) -> None:
        seen.append(turns.now)
        raise GatewayError("connect_failed", "gone", status=502)

    async def one() -> None:
        asked: Any = SimpleNamespace(item=SimpleNamespace(target=Target("p", "m", "http://p", "openai_chat")))
        upstreams: Any = SimpleNamespace(open=opened)
        attempt = Attempt(upstreams, asked, request, timeouts, "", plain_options=False, large=large)
        [failed] = await attempt.first()
        assert isinstance(failed, Failed)
        await attempt.aclose()

    timeouts = Timeouts()
    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    return seen


async def test_requests_with_pictures_are_built_one_in_a_turn() -> None:
    assert len(set(await built(with_picture(100_000)))) == AT_ONCE


async def test_small_requests_wait_for_no_other() -> None:
    assert len(set(await built(with_picture(100)))) == 1
