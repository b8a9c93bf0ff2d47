"""A gateway with image and video models behind it, and what its clients read."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from gateway import Answer, Client


def to_media(url: str, **more: Any) -> dict[str, Any]:
    """A configuration of the providers of `media_providers`, under names of their own."""
    picture, film = {"kind": "image", "formats": ["png"], "max_n": 4}, {"kind": "video"}
    providers = {
        "paint": {
            "base_url": f"{url}/openai/v1",
            "api_key": "sk-paint",
            "image": {"dialect": "openai_images"},
            "video": {"dialect": "openai_videos"},
            "models": {
                "brush": {**picture, "price": {"per_image": 0.04}},
                "reel": {**film, "price": {"per_second": 0.1}},
            },
        },
        "banana": {
            "base_url": f"{url}/gemini/v1beta",
            "api_key": "g-key",
            "auth": "x-goog-api-key",
            "image": {"dialect": "gemini_images"},
            "models": {"nano": {**picture, "max_n": 1, "ratios": ["1:1", "16:9"]}},
        },
    }
    base: dict[str, Any] = {"providers": providers, "media": {"allow_private": True}}
    return {**base, **more}


def draw(prompt: str = "a cat", model: str = "paint/brush", **members: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": prompt}], **members}


def form(*parts: tuple[str, str | bytes]) -> tuple[bytes, str]:
    """A form and its content type; bytes are files."""
    pieces = []
    for name, value in parts:
        file = '; filename="a.png"\r\ncontent-type: image/png' if isinstance(value, bytes) else ""
        data = value if isinstance(value, bytes) else value.encode()
        head = f'--edge\r\ncontent-disposition: form-data; name="{name}"{file}\r\n\r\n'
        pieces.append(head.encode() + data + b"\r\n")
    return b"".join(pieces) + b"--edge--\r\n", "multipart/form-data; boundary=edge"


async def told(answer: Answer) -> list[tuple[int | None, str, Any]]:
    """The events of an images stream: number, name, value."""
    events = []
    for block in filter(None, (await answer.body()).decode().split("\n\n")):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        events.append((int(lines["id"]) if "id" in lines else None, lines["event"], json.loads(lines["data"])))
    return events


async def numbered(answer: Answer) -> list[tuple[int | None, Any]]:
    """The stream's events with their numbers."""
    return [read_event(block) for block in (await answer.body()).decode().split("\n\n") if block]


async def heard(answer: Answer) -> list[tuple[int | None, Any]]:
    """What comes of a stream until its connection breaks, as `numbered`."""
    text = b""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while data := await answer.chunk():
            text += data
    return [read_event(block) for block in text.decode().split("\n\n")[:-1]]


def behind(begun: list[tuple[int | None, Any]]) -> dict[str, str]:
    """Ask for what comes behind these events; for all, where the stream broke before the first."""
    numbers = [number for number, _ in begun if number is not None]
    return {"last_event_id": str(max(numbers))} if numbers else {}


def read_event(block: str) -> tuple[int | None, Any]:
    """Read an event: its number, if it has one, and its data."""
    lines = dict(line.split(": ", 1) for line in block.split("\n"))
    data = lines["data"]
    return (int(lines["id"]) if "id" in lines else None), data if data == "[DONE]" else json.loads(data)


def deltas(events: list[tuple[int | None, Any]], name: str = "content") -> list[str]:
    """The values of a member in all deltas."""
    choices = [choice for _, event in events if event != "[DONE]" for choice in event.get("choices", ())]
    return [choice["delta"][name] for choice in choices if choice["delta"].get(name)]


def media_of(events: list[tuple[int | None, Any]]) -> dict[str, Any]:
    """The member `media`, which stands on the finish chunk alone."""
    [(chunk, found)] = [(event, event["media"]) for _, event in events if event != "[DONE]" and "media" in event]
    assert chunk["choices"][0]["finish_reason"] == "stop"
    return dict(found)


async def fetched(gate: Client, url: str) -> bytes:
    """What a link shows."""
    assert url.startswith("http://gateway/v1/media/")
    answer = await gate.get(url.removeprefix("http://gateway"))
    assert answer.status == 200
    return await answer.body()
