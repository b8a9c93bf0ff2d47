"""OpenRouter's films: a task, then signed links and links that need the key (wire.md section 7)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import Media, MediaInput, MediaRequest
from trunkline.wire.media_answer import Answer, failed, malformed, opened, ready, usage_of
from trunkline.wire.media_body import get, json_request, link, number, pictures, whole_prompt
from trunkline.wire.media_size import size_text
from trunkline.wire.read import as_list, as_name, as_number, as_text


class _Task(Answer):
    id: Any = None
    status: Any = None
    progress: Any = None
    urls: Any = None
    unsigned_urls: Any = None
    usage: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a film: one picture is its first frame, a second one by its role the last, several are references."""
    del key  # none is known
    given = pictures(request)
    plain = [one for one in given if one.role == "image"]
    frames = [one for one in given if one not in plain or len(plain) == 1]
    size = (request.width, request.height) if request.width and request.height else None
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "duration": number(request.seconds),
        "resolution": request.tier if size is None else None,
        "aspect_ratio": request.ratio if size is None else None,
        "size": size_text(size),
        "frame_images": [_frame(one) for one in frames] or None,
        "input_references": [_reference(one) for one in plain] if len(plain) > 1 else None,
        "generate_audio": request.audio,
        "seed": request.seed,
    }
    return json_request(target, "/videos", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the task's id."""
    task = opened(status, body, _Task)
    if isinstance(task, Refused):
        return task
    name = as_name(task.id)
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is; signed links are taken before those that need the key."""
    found = opened(status, body, _Task)
    if isinstance(found, Refused):
        return found
    state = as_text(found.status).lower()
    if state in ("failed", "cancelled", "expired"):
        return failed(found, f"the task {task} ended as {state}")
    if state != "completed":
        return Working(as_number(found.progress)) if state else malformed(status, body)
    signed = [Media("video", url) for url in as_list(found.urls) if as_text(url)[:4] == "http"]
    own = [Media("video", url, authorized=True) for url in as_list(found.unsigned_urls) if as_text(url)[:4] == "http"]
    content = [Media("video", f"/videos/{task}/content", authorized=True)]
    return ready(signed or own or content, "video", usage=usage_of(found.usage))


def _reference(picture: MediaInput) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": link(picture)}}


def _frame(picture: MediaInput) -> dict[str, Any]:
    return {**_reference(picture), "frame_type": "last_frame" if picture.role == "last_frame" else "first_frame"}


DIALECT = MediaDialect(
    "openrouter_videos",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/videos/{task}"),
    progress=progress,
    takes_links=True,
    lacks=frozenset({"mask", "quality", "fps"}),
)
