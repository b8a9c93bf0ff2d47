"""The dialect of `film_provider`."""

import base64
import json
from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.errors import UpstreamError
from trunkline.core.media import Media, MediaRequest


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


class Drawing:
    """Reads a streamed answer, an event a line."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[Working | Ready | Refused]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        answers = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
        return [
            Working(partial=Media("image", data=base64.b64decode(answer["partial"])))
            if answer["state"] == "working"
            else ready(answer)
            for answer in answers
        ]

    def close(self) -> list[Ready | Refused]:
        return []


FILMS = MediaDialect(
    name="films",
    submit=submit,
    submitted=submitted,
    poll=lambda task, _target: UpstreamRequest(f"/films/{task}", method="GET", headers=()),
    progress=progress,
    stream=Drawing,
    cancel=lambda task, _target: UpstreamRequest(f"/films/{task}", method="DELETE", headers=()),
)
KEYED = FILMS._replace(name="films_keyed", submit_is_idempotent=True)
