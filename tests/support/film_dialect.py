"""The dialect of `film_provider`, and how the engine's requests reach it over the real client."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.errors import GatewayError, UpstreamError
from trunkline.core.media import Media, MediaRequest
from trunkline.core.ports import HttpError, HttpRequest, HttpResponse
from trunkline.upstream.client import Client


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    inputs = [len(one.data) for one in request.inputs]
    body = json.dumps({"prompt": request.prompt, "n": request.n, "inputs": inputs, "model": target.model}).encode()
    return UpstreamRequest("/films", body, headers=(("content-type", "application/json"), ("idempotency-key", key)))


def read(status: int, body: bytes) -> dict[str, Any] | Refused:
    if status != 200:
        return Refused(UpstreamError("upstream_error", body.decode(), status))
    try:
        answer: dict[str, Any] = json.loads(body)
    except ValueError:
        return Refused(UpstreamError("upstream_malformed", "not JSON", 502))
    if answer.get("state") == "failed":
        return Refused(UpstreamError(answer["code"], answer["message"], 400))
    return answer


def ready(answer: dict[str, Any]) -> Ready:
    if "data" in answer:
        return Ready(tuple(Media("image", data=base64.b64decode(one)) for one in answer["data"]))
    return Ready((Media("video", url=answer["url"]),))


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    answer = read(status, body)
    if isinstance(answer, Refused):
        return answer
    return ready(answer) if "state" in answer else Submitted(answer["task"])


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    answer = read(status, body)
    if isinstance(answer, Refused):
        return answer
    return Working(answer["percent"]) if answer["state"] == "working" else ready(answer)


FILMS = MediaDialect(
    name="films",
    submit=submit,
    submitted=submitted,
    poll=lambda task, _target: UpstreamRequest(f"/films/{task}", method="GET", headers=()),
    progress=progress,
    cancel=lambda task, _target: UpstreamRequest(f"/films/{task}", method="DELETE", headers=()),
)
KEYED = FILMS._replace(name="films_keyed", submit_is_idempotent=True)


class FilmUpstream:
    """The port `core.ports.Upstream`, as plain as can be."""

    def __init__(self) -> None:
        self.client = Client()

    async def open(
        self, request: UpstreamRequest, target: Target, credential_id: str, *, fresh: bool = False
    ) -> HttpResponse:
        headers = (*request.headers, ("authorization", f"Bearer {credential_id}"))
        return await self.client.open(
            HttpRequest(request.method, target.base_url + request.path, headers, request.body, fresh=fresh)
        )

    async def download(
        self, url: str, *, target: Target | None = None, credential_id: str = "", max_bytes: int
    ) -> AsyncIterator[bytes]:
        del credential_id, max_bytes  # the media store bounds what it takes
        if url.startswith("/") and target is not None:
            url = target.base_url + url
        try:
            response = await self.client.open(HttpRequest("GET", url))
            try:
                if response.status != 200:
                    raise GatewayError("media_unavailable", f"The link answers with status {response.status}.")
                while piece := await response.read():
                    yield piece
            finally:
                await response.aclose()
        except HttpError as error:
            raise GatewayError("media_unavailable", f"The link broke: {error}.") from error
