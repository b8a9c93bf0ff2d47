"""What the fake providers of pictures and films are asked and answer, and how it goes over the socket."""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from media_samples import bomb, heavy, picture

BLOCK = 16 * 1024


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Answer(NamedTuple):
    """What to send; `cut`: break off after so many bytes."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})
    cut: int | None = None


class Shop(Protocol):
    """The server, as its places see it."""

    asked: list[Asked]
    tasks: dict[str, dict[str, Any]]
    url: str

    def file(self, name: str, prompt: str = "") -> str:
        """The link of a file, or of what stands in its place."""

    def begin(self, prompt: str) -> str:
        """Begin a task; gives its name."""

    def going(self, name: str) -> bool:
        """Whether a task still goes on, being asked once more."""


Handler = Callable[[Asked, re.Match[str]], Answer]


def said(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(value, ensure_ascii=False).encode(), headers=headers)


def sse(events: list[dict[str, Any]], *, named: bool = False, done: bool = False) -> Answer:
    lines = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    ]
    return Answer(200, "".join(lines + (["data: [DONE]\n\n"] if done else [])).encode(), "text/event-stream")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def send(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    lines = {"content-type": answer.kind, "content-length": str(len(answer.body)), **answer.headers}
    head = f"HTTP/1.1 {answer.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    body = answer.body if answer.cut is None else answer.body[: answer.cut]
    writer.write(head.encode() + b"\r\n")
    for start in range(0, len(body), BLOCK):
        writer.write(body[start : start + BLOCK])
        await writer.drain()
    return answer.cut is None


def trouble(asked: Asked) -> Answer | None:
    """Statuses and pages that any provider may answer a submit with."""
    if asked.method != "POST":
        return None
    if "#429" in asked.text:
        return said({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429, **{"retry-after": "7"})
    if "#500" in asked.text:
        return Answer(500, b"<html><body>Internal <b>error</b></body></html>", "text/html")
    if "#html" in asked.text:
        return Answer(200, b"<!doctype html><title>log in</title>", "text/html")
    return None


def drawn(asked: Asked, size: tuple[int, int]) -> bytes:
    """The picture that comes inline, or what comes in its place."""
    if "#bomb" in asked.text:
        return bomb()
    if "#page" in asked.text:
        return b"<!doctype html><p>log in</p>" * 20
    return heavy() if "#heavy" in asked.text or "#torn" in asked.text else picture("PNG", size)


def torn(asked: Asked, answer: Answer) -> Answer:
    return answer._replace(cut=3_000_000) if "#torn" in asked.text else answer
