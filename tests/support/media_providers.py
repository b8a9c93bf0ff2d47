"""Providers of pictures and films, each with its exact wire, on one real socket; words in a prompt say what goes wrong.

Addresses: `/openai/v1`, `/gemini/v1beta`, `/xai/v1`, `/bigmodel`, `/dashscope/api/v1`, `/openrouter/api/v1`, `/fal`,
`/replicate/v1`, and `/relay/v1` for pictures and films over chat; files are at `/files/NAME`.
Words: `#refused`, `#none`, `#429`, `#500`, `#cut`, `#html`, `#page`, `#bomb`, `#away`, `#dead`, `#failed`, `#silent`;
`#heavy`: a picture of 10 MB; `#torn`: one that breaks off after 3 MB; `#mended`: the same, until it is fetched again.
`python media_providers.py` serves on a free port and prints it; `GET /_seen` tells what was asked.
"""

import asyncio
import contextlib
import re
import sys
from typing import Any, Self

from media_places import bigmodel, files, gemini, openai, relay, xai
from media_queues import dashscope, fal, openrouter, replicate
from media_wire import Answer, Asked, Handler, said, send, trouble

CREDENTIALS = ("authorization", "x-goog-api-key", "api-key")


class MediaProviders:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.tasks: dict[str, dict[str, Any]] = {}
        self.polls = 2
        """How often a task is asked for before it is done."""
        self.url = ""
        self.routes: list[tuple[str, re.Pattern[str], Handler]] = []
        for place in (openai, gemini, xai, bigmodel, dashscope, openrouter, fal, replicate, relay, files):
            for line, handler in place(self).items():
                method, path = line.split(" ", 1)
                self.routes.append((method, re.compile(path), handler))

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26, backlog=4096)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    def file(self, name: str, prompt: str = "") -> str:
        """The link of a file, or of what stands in its place."""
        words = {"#page": "page.html", "#bomb": "bomb.png", "#away": "away", "#dead": "dead", "#mended": "mended.png"}
        wrong = next((other for word, other in words.items() if word in prompt), "")
        return f"{self.url}/files/{wrong or name}"

    def begin(self, prompt: str) -> str:
        name = f"task-{len(self.tasks) + 1}"
        self.tasks[name] = {"prompt": prompt, "left": self.polls, "cancelled": False}
        return name

    def going(self, name: str) -> bool:
        """Whether a task still goes on, being asked once more."""
        task = self.tasks[name]
        task["left"] -= 1
        return bool(task["left"] >= 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = head[0].split(" ")
                answer = self.answer(Asked(method, path, headers, body))
                if not await send(writer, answer):
                    break
        writer.close()

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/_seen":
            return said([{"method": one.method, "path": one.path, "body": one.text} for one in self.asked])
        self.asked.append(asked)
        if not asked.path.startswith("/files/") and not any(name in asked.headers for name in CREDENTIALS):
            return said({"error": {"message": "no key", "code": "invalid_api_key"}}, 401)
        for method, pattern, handler in self.routes:
            if method == asked.method and (match := pattern.fullmatch(asked.path)):
                return trouble(asked) or handler(asked, match)
        return said({"error": {"message": f"no such place: {asked.path}", "code": "not_found"}}, 404)


async def main() -> None:
    async with MediaProviders() as provider:
        sys.stdout.write(provider.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
