"""The media store (docs/admin-api.md section 9)."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request

from trunkline.calls.media_links import MediaLinks
from trunkline.calls.media_retention import MediaRetention
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRecord
from trunkline.core.reports import KeyRef, Reports
from trunkline.core.state import MediaIndex
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.reading import MOST, after_of, limit_of, link_base_of, listed, one_of, read_body
from trunkline.http.live import Live

KINDS = ("image", "video")


class Ids(Struct, forbid_unknown_fields=True):
    """Which media to delete."""

    ids: Annotated[tuple[str, ...], Meta(max_length=MOST)]


class MediaPages:
    """The endpoints of the media store; `shown` gives media wherever they are mentioned."""

    def __init__(
        self, live: Live, index: MediaIndex, links: MediaLinks, retention: MediaRetention, reports: Reports
    ) -> None:
        self._live = live
        self._index = index
        self._links = links
        self._retention = retention
        self._reports = reports
        self.endpoints = [
            Endpoint("GET", "/media", self._list),
            Endpoint("POST", "/media/delete", self._delete_many),
            Endpoint("GET", "/media/{id}", self._get),
            Endpoint("DELETE", "/media/{id}", self._delete),
        ]

    async def shown(self, request: Request, records: Sequence[MediaRecord]) -> list[dict[str, Any]]:
        """Give media as the API shows them, with links that work where the request came from."""
        keys = await self._reports.key_refs(record.key_id for record in records if record.key_id)
        base = link_base_of(request, self._live.settings)
        return [await self._one(base, record, keys.get(record.key_id)) for record in records]

    async def _one(self, base: str, record: MediaRecord, key: KeyRef | None) -> dict[str, Any]:
        cover = await self._index.get(record.cover_id) if record.cover_id else None
        return {
            "id": record.id,
            "kind": record.kind,
            "mime_type": record.mime_type,
            "width": record.width,
            "height": record.height,
            "duration_s": record.duration_s,
            "bytes": record.bytes,
            "sha256": record.sha256,
            "url": self._links.url(base, record),
            "cover_url": self._links.url(base, cover) if cover else None,
            "created_at": record.created_ms / 1000,
            "expires_at": None if record.expires_ms is None else record.expires_ms / 1000,
            "key": shown_key(key),
            "model": record.model,
            "job_id": record.job_id or None,
        }

    async def _list(self, request: Request) -> Any:
        kind, limit = one_of(request, "kind", KINDS), limit_of(request)
        kinds = (kind,) if kind else KINDS
        key_id = request.query_params.get("key") or None
        records = await self._index.page(key_id=key_id, kinds=kinds, after=after_of(request), limit=limit)
        return listed(await self.shown(request, records), limit)

    async def _get(self, request: Request) -> Any:
        return (await self.shown(request, [await self._known(request.path_params["id"])]))[0]

    async def _delete(self, request: Request) -> None:
        await self._retention.delete([(await self._known(request.path_params["id"])).id])

    async def _delete_many(self, request: Request) -> Any:
        ids = dict.fromkeys((await read_body(request, Ids)).ids)
        known = [media_id for media_id in ids if await self._index.get(media_id) is not None]
        await self._retention.delete(known)
        return {"deleted": len(known)}

    async def _known(self, media_id: str) -> MediaRecord:
        record = await self._index.get(media_id)
        if record is None or record.kind not in KINDS:
            raise GatewayError("not_found", f"There is no picture or film {media_id!r}.")
        return record


def shown_key(key: KeyRef | None) -> dict[str, str] | None:
    """Give a key where it is mentioned."""
    return {"id": key.id, "name": key.name} if key else None
