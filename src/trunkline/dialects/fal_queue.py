"""fal's queue, for pictures and films: its status and its result have links of their own (wire.md section 8)."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import Media, MediaRequest
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.media_answer import Answer, filtered, malformed, medium, opened, ready, refused
from trunkline.wire.media_body import get, json_request, link, number, pictures
from trunkline.wire.read import as_count, as_list, as_text, dicts

_FILTER = "content_policy_violation"


class _Queued(Answer):
    request_id: Any = None
    status: Any = None
    queue_position: Any = None
    logs: Any = None
    status_url: Any = None
    response_url: Any = None
    cancel_url: Any = None
    images: Any = None
    image: Any = None
    video: Any = None
    videos: Any = None
    has_nsfw_concepts: Any = None
    detail: Any = None


class _Task(msgspec.Struct, array_like=True):
    """Where a task is asked for; `done`: its result is."""

    done: bool
    status: str
    response: str
    cancel: str


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for pictures or a film: the models' members differ, these are the usual ones."""
    del key  # none is known
    given = [link(one) for one in pictures(request)]
    many = len(given) > 1 or target.model.endswith("/edit")
    mask = next((link(one) for one in request.inputs if one.role == "mask"), None)
    size = {"width": request.width, "height": request.height} if request.width and request.height else None
    film = request.kind == "video"
    members = {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt,
        "image_size": size,
        "aspect_ratio": request.ratio if size is None else None,
        "resolution": request.tier if size is None else None,
        "num_images": request.n if request.n > 1 else None,
        "output_format": request.output_format if not film else None,
        "duration": number(request.seconds),
        "fps": request.fps,
        "generate_audio": request.audio,
        "seed": request.seed,
        "quality": request.quality,
        "background": request.background,
        "image_url": given[0] if given and not many else None,
        "image_urls": given if many and given else None,
        "mask_url": mask,
    }
    return json_request(target, f"/{target.model}", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read where the task is to be asked for."""
    queued = _opened(status, body)
    if isinstance(queued, Refused):
        return queued
    places = [as_text(url) for url in (queued.status_url, queued.response_url, queued.cancel_url)]
    if not places[0] or not places[1]:
        return malformed(status, body)
    return Submitted(_named(_Task(False, *places)))


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read the status, and, once it is completed, the result."""
    known = _known(task)
    found = _opened(status, body)
    if isinstance(found, Refused):
        return found
    if known.done:
        return _result(found)
    state = as_text(found.status).upper()
    if state == "COMPLETED":
        return Working(100.0, poll_after_s=0.0, task=_named(msgspec.structs.replace(known, done=True)))
    if state == "IN_QUEUE":
        place = as_count(found.queue_position)
        return Working(text=f"queued, {place} before you" if place else "queued")
    logged = [as_text(line.get("message")) for line in dicts(found.logs)]
    return (
        Working(text=next((line for line in reversed(logged) if line), "")[:200]) if state else malformed(status, body)
    )


def _poll(task: str, target: Target) -> UpstreamRequest:
    known = _known(task)
    return get(_path(known.response if known.done else f"{known.status}?logs=1", target))


def _cancel(task: str, target: Target) -> UpstreamRequest:
    known = _known(task)
    place = known.cancel or f"{known.status.removesuffix('/status')}/cancel"
    return UpstreamRequest(_path(place, target), method="PUT", headers=())


def _opened(status: int, body: bytes) -> _Queued | Refused:
    """Read an answer; errors are `{"detail": "…" or [{"loc", "msg", "type"}]}`."""
    found = opened(status if status < 400 else 200, body, _Queued)
    if isinstance(found, _Queued) and found.detail:
        for one in dicts(found.detail):
            if as_text(one.get("type")) == _FILTER:
                return filtered(as_text(one.get("msg")) or "The provider's content rules stood in the way.")
    return refused(status, body) if status >= 400 else found


def _result(found: _Queued) -> Ready | Refused:
    films = [medium(item, "video") for item in (found.video, *as_list(found.videos))]
    images: list[Media | None] = [medium(item, "image") for item in (*as_list(found.images), found.image)]
    unsafe = as_list(found.has_nsfw_concepts)
    if unsafe and all(unsafe):
        return filtered("The provider's safety checker held back every picture.")
    return ready(films, "video") if any(films) else ready(images, "image")


def _path(url: str, target: Target) -> str:
    """Give the part of a link below the target's own address: no other host is ever asked with its credential."""
    own = target.base_url.rstrip("/")
    if own and url.startswith(own + "/"):
        return url[len(own) :]
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _named(task: _Task) -> str:
    return msgspec.json.encode(task).decode()


def _known(task: str) -> _Task:
    try:
        return msgspec.json.decode(task, type=_Task)
    except UNREADABLE:
        return _Task(done=False, status=task, response=task, cancel="")


DIALECT = MediaDialect("fal_queue", submit, submitted, poll=_poll, progress=progress, cancel=_cancel, takes_links=True)
