"""`GET`, `HEAD /v1/media/{id}`: kept pictures and films under signed links (contract section 7)."""

import time
from contextlib import aclosing, suppress
from urllib.parse import parse_qs

from trunkline.calls.gate import Gate
from trunkline.calls.media_links import MediaLinks
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRecord
from trunkline.core.media_type import EXTENSIONS
from trunkline.core.ports import MediaStore
from trunkline.core.state import MediaIndex
from trunkline.http.call_headers import read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import respond_error
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.http.pieces import write_piece

PREFIX = "/v1/media/"
POLICY = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""Enough for a browser to show the file on a page of its own, and for nothing else."""


class MediaFiles:
    """The endpoint's handler, behind the front door."""

    def __init__(self, live: Live, gate: Gate, links: MediaLinks, index: MediaIndex, store: MediaStore) -> None:
        self._live = live
        self._gate = gate
        self._links = links
        self._index = index
        self._store = store

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        try:
            record = await self._record(exchange, request_id)
            await send_file(exchange, self._store, record, headers)
        except GatewayError as error:
            respond_error(exchange, error, headers)

    async def _record(self, exchange: Exchange, request_id: str) -> MediaRecord:
        """Find the medium, for whoever has its link or is its owner."""
        media_id = exchange.path.removeprefix(PREFIX)
        query = parse_qs(exchange.query.decode("latin-1"))
        signed = "sig" in query
        if signed:
            exp = query.get("exp", [""])[0]
            self._links.check(media_id, exp, query["sig"][0], time.time_ns() // 1_000_000_000)
            caller = None
        else:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
        record = await self._index.get(media_id)
        if caller is not None and (record is None or record.key_id != caller.key.id):
            raise GatewayError("invalid_signature", "A link with its signature is needed, or the key that owns this.")
        if record is None:
            raise GatewayError("link_expired", "What the link showed is no longer kept.")
        return record


async def send_file(exchange: Exchange, store: MediaStore, record: MediaRecord, further: list[tuple[str, str]]) -> None:
    """Answer with a medium's bytes, all or a range of them (RFC 9110 section 14). Raises GatewayError before that."""
    etag = f'"{record.sha256}"'
    headers = [
        *further,
        ("etag", etag),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, max-age=86400"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", POLICY),
        ("cross-origin-resource-policy", "cross-origin"),
    ]
    if matches(exchange.header(b"if-none-match"), etag):
        exchange.start(headers, 304, record.bytes)
        exchange.finish()
        return
    headers.append(("content-type", record.mime_type))
    headers.append(("content-disposition", f'inline; filename="{record.id}.{EXTENSIONS[record.mime_type]}"'))
    ranged = exchange.header(b"range")
    unchanged = exchange.header(b"if-range") in {"", etag}
    found = read_range(ranged, record.bytes) if ranged and unchanged else None
    if found is not None and found[0] >= found[1]:
        exchange.respond(416, [*further, ("content-range", f"bytes */{record.bytes}")], b"")
        return
    start, end = found or (0, record.bytes)
    if found is not None:
        headers.append(("content-range", f"bytes {start}-{end - 1}/{record.bytes}"))
    async with aclosing(store.read(record.sha256, start, end)) as pieces:
        piece = await anext(pieces, b"")  # whether the bytes are there is known now
        exchange.start(headers, 206 if found is not None else 200, end - start)
        if exchange.method == "HEAD":
            exchange.finish()
            return
        left = end - start
        with suppress(GatewayError):  # the answer has begun: whoever reads it sees that it is not whole
            while piece and await write_piece(exchange, piece):
                left -= len(piece)
                piece = await anext(pieces, b"")
        if left:
            exchange.cut()
        else:
            exchange.finish()


def matches(header: str, etag: str) -> bool:
    """Tell whether `If-None-Match` names this version."""
    return header.strip() == "*" or etag in {tag.strip().removeprefix("W/") for tag in header.split(",")}


def read_range(header: str, size: int) -> tuple[int, int] | None:
    """Read `Range`: first byte and the one after the last; an empty one cannot be given. None: the whole is given."""
    unit, _, spec = header.partition("=")
    first, dash, last = spec.strip().partition("-")
    if unit.strip().lower() != "bytes" or not dash or not _digits(first + last) or len(first + last) > 30:
        return None
    if not first:
        return max(0, size - int(last)), size
    end = min(int(last) + 1, size) if last else size
    return (int(first), end) if not last or int(last) >= int(first) else None


def _digits(text: str) -> bool:
    return text.isascii() and text.isdecimal()
