"""A text model on a raw socket: every answer has so many words, costs the same, and may take its time."""

import asyncio
import json
from typing import Any

from gateway import chunk
from raw_upstream import Peer, Script

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
TOKENS = 100
PRICE_MICROUSD = 10_000
"""Of one answer, set aside before and settled after: `max_tokens` is what is counted."""
USAGE = {"prompt_tokens": 10, "completion_tokens": TOKENS, "total_tokens": 10 + TOKENS}


class Held:
    """An upstream whose answers begin at once, and end when told."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"content": "begun "}))
        await self.go_on.wait()
        await peer.send(chunk({"content": "ended"}, "stop") + b"data: [DONE]\n\n")


def talking(words: int, pause_s: float = 0.0) -> Script:
    """Stream `0 1 2 …`, or give it whole."""

    async def script(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            if not json.loads(body).get("stream"):
                await asyncio.sleep(words * pause_s)
                await peer.answer(json.dumps(completion(words)).encode(), "content-type: application/json")
                continue
            await peer.send(HEAD)
            for n in range(words):
                await peer.send(chunk({"content": f"{n} "}))
                await asyncio.sleep(pause_s)
            await peer.send(chunk({}, "stop") + chunk(choices=[], usage=USAGE) + b"data: [DONE]\n\n")
            return

    return script


def completion(words: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": said(words)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "up-1",
        "object": "chat.completion",
        "created": 1,
        "model": "real",
        "choices": [choice],
        "usage": USAGE,
    }


def said(words: int) -> str:
    return "".join(f"{n} " for n in range(words))


def to_text(url: str, **more: Any) -> dict[str, Any]:
    """A configuration of this model as `up/m`, with its price."""
    price = {"input_per_mtok": 0, "output_per_mtok": PRICE_MICROUSD / TOKENS}
    talk = {"base_url": url, "api_key": "sk-up", "chat": {"dialect": "openai_chat"}, "models": {"m": {"price": price}}}
    return {"providers": {"up": talk}, **more}
