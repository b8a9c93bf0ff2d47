"""Kept media as a chat's client is shown them: the piece of content in its style, and the member `media`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from trunkline.calls.media_links import MediaLinks
from trunkline.core.events import Extras, TextDelta
from trunkline.core.media import MediaRecord
from trunkline.core.ports import MediaStore
from trunkline.core.route import MediaStyle
from trunkline.ingress.media_style import Shown, content, objects

Covers = Mapping[str, MediaRecord]
"""Covers by the ids of their films."""


class MediaShown:
    """Writes media with their links, which begin with `base`."""

    def __init__(self, links: MediaLinks, store: MediaStore) -> None:
        self._links = links
        self._store = store

    def members(self, base: str, media: Sequence[MediaRecord], covers: Covers) -> dict[str, Any]:
        """Give the member `media` of the finish chunk, of completions and of callbacks (contract section 7)."""
        items = []
        for medium in media:
            cover = covers.get(medium.id)
            items += [self._item(base, one) for one in (medium, cover) if one is not None]
        return {"outputs": [self._links.url(base, medium) for medium in media], "items": items}

    async def piece(  # noqa: PLR0913, PLR0917 - what is shown, how and where
        self,
        style: MediaStyle,
        base: str,
        media: Sequence[MediaRecord],
        covers: Covers,
        before: str = "",
        choice: int = 0,
    ) -> TextDelta | Extras:
        """Give the media, each once, in a style; `before` stands before them in the text."""
        shown = [await self._shown(style, base, medium, covers.get(medium.id)) for medium in media]
        if style == "images":
            return Extras({name: Raw(msgspec.json.encode(value)) for name, value in objects(shown).items()}, choice)
        return TextDelta(before + content(style, shown), choice)

    def _item(self, base: str, medium: MediaRecord) -> dict[str, Any]:
        film = {"duration_s": medium.duration_s} if medium.kind == "video" else {}
        return {
            "type": medium.kind,
            "url": self._links.url(base, medium),
            "mime_type": medium.mime_type,
            "width": medium.width,
            "height": medium.height,
            **film,
            "bytes": medium.bytes,
            "sha256": medium.sha256,
            "expires_at": self._links.expires_at(medium),
        }

    async def _shown(self, style: MediaStyle, base: str, medium: MediaRecord, cover: MediaRecord | None) -> Shown:
        film = medium.kind == "video"
        return Shown(
            film,
            self._links.url(base, medium),
            self._links.url(base, cover) if cover is not None else "",
            await data_url_of(self._store, medium) if style == "data_url" and not film else "",
        )


def missing(kind: str, got: int, wanted: int, why: str) -> str:
    """Say that there are fewer media than were to be; empty: there are not."""
    if got >= wanted:
        return ""
    what = "films" if kind == "video" else "pictures"
    return f"{wanted - got} of {wanted} {what} {'is' if wanted - got == 1 else 'are'} missing: {why}"


async def data_url_of(store: MediaStore, medium: MediaRecord) -> str:
    """Give a picture whole, in base64."""
    return f"data:{medium.mime_type};base64,{await base64_of(store, medium)}"


async def base64_of(store: MediaStore, medium: MediaRecord) -> str:
    """Give a medium's bytes in base64."""
    data = b"".join([piece async for piece in store.read(medium.sha256)])
    return base64.b64encode(data).decode()
