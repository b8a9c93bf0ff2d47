"""The client side of `trunkline chat`: our own stream, read by our own line."""

import asyncio
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from rich.console import Console

from trunkline.cli.media import Bar, save
from trunkline.core.errors import GatewayError
from trunkline.core.events import (
    Event,
    Failed,
    MediaReady,
    Progress,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
)
from trunkline.core.notes import Notes
from trunkline.core.ports import HttpError, HttpRequest, HttpResponse
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine
from trunkline.upstream.client import Client
from trunkline.wire.error_body import read_error_body

ERROR_BYTES = 1024 * 1024


class Trouble(Exception):  # noqa: N818 - what a person has, not a program
    """Something that a person is told in one line."""


class _Said(Struct):
    message: str


class _Refused(Struct):
    error: _Said


def _refusal(status: int, body: bytes) -> str:
    """Give the gateway's own words: as a provider's, those about keys and budgets would be held back."""
    try:
        told = msgspec.json.decode(body, type=_Refused).error.message
    except msgspec.DecodeError:
        told = read_error_body(status, body).message
    hint = "; --key or TRUNKLINE_KEY gives one" if status == 401 else ""
    return f"{told.rstrip('.')} (HTTP {status}){hint}"


class Conversation:
    """Asks one gateway."""

    def __init__(self, *, url: str, key: str, output: Path, json: bool) -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        self._key = key
        self._output = output
        self._json = json
        self._rest = b""
        self._status = Console(stderr=True)
        self._made: list[str] = []

    async def ask(self, model: str, prompt: str) -> None:
        """Send a prompt and write the answer as it comes. Raises Trouble."""
        if urlsplit(self._url).scheme not in ("http", "https"):
            raise Trouble(f"--url must begin with http:// or https://, not {self._url!r}")
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": prompt}]}
        # media come as plain links: those are for programs to read, and the files are saved
        headers = [("content-type", "application/json"), ("x-trunkline-media-style", "bare")]
        if self._key:
            headers.append(("authorization", f"Bearer {self._key}"))
        client, stream_id = Client(os.environ), ""
        request = HttpRequest("POST", f"{self._url}/v1/chat/completions", tuple(headers), msgspec.json.encode(body))
        try:
            with self._status.status(f"{model} …"):
                response = await client.open(request)
                if response.status >= 400:
                    raise Trouble(_refusal(response.status, await response.body(ERROR_BYTES)))
                stream_id = response.headers.get("x-trunkline-stream-id", "")
            with Bar(self._status, model) as bar:
                await self._read(response, bar)
            await self._save(client)
        except HttpError as error:
            raise Trouble(
                f"{self._url} cannot be reached: {error}. Is `trunkline serve` running? --url names another place."
            ) from None
        except GatewayError as error:
            raise Trouble(error.message) from None
        except asyncio.CancelledError:  # Ctrl-C
            if stream_id:
                await self._stop(client, HttpRequest("DELETE", f"{self._url}/v1/streams/{stream_id}", tuple(headers)))
            raise
        finally:
            await client.aclose()

    async def _stop(self, client: Client, request: HttpRequest) -> None:
        """Stop a picture or film, which would be made, and paid, without its client. Raises Trouble."""
        try:
            await (await client.open(request)).body(ERROR_BYTES)
        except HttpError as error:
            raise Trouble(f"the gateway could not be told to stop: {error}") from None

    async def _read(self, response: HttpResponse, bar: Bar) -> None:
        line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes())
        while not line.over:
            data = await response.read()
            if self._json:
                self._write_chunks(data)
            for event in line.feed(data) if data else line.close():
                self._show(event, bar)
        if not self._json:
            sys.stdout.write("\n")

    def _write_chunks(self, data: bytes) -> None:
        """Write the chunks that are whole by now: our own stream has each in one line, after `data: `."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        sys.stdout.buffer.writelines(line[6:] + b"\n" for line in lines if line.startswith(b"data: {"))
        sys.stdout.buffer.flush()

    async def _save(self, client: Client) -> None:
        """Save what was made. Raises Trouble."""
        for url in self._made:
            try:
                path = await save(client, url, self._output)
            except (HttpError, OSError) as error:
                raise Trouble(f"{url} could not be saved: {error}") from None
            self._status.print(f"saved {path}", style="dim", markup=False, highlight=False, soft_wrap=True)

    def _show(self, event: Event, bar: Bar) -> None:
        if isinstance(event, Failed):
            raise Trouble(f"the answer broke off: {event.message}")
        if isinstance(event, MediaReady) and event.media.url.startswith(("http://", "https://")):
            self._made.append(event.media.url)
        if self._json:
            return
        if isinstance(event, TextDelta):
            sys.stdout.write(event.text)
            sys.stdout.flush()
        elif isinstance(event, ReasoningDelta | Progress) and not bar.take(event.text):
            self._status.print(event.text, style="dim", end="", markup=False, highlight=False)
        elif isinstance(event, ToolCallStarted):
            sys.stdout.write(f"\n{event.name}")
        elif isinstance(event, ToolCallDelta):
            sys.stdout.write(event.arguments)
