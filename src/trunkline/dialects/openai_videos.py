"""OpenAI Videos, as OpenAI and many relays speak it (wire.md section 2.2)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import Media, MediaRequest
from trunkline.wire.media_answer import Answer, failed, malformed, medium, opened, ready, usage_of
from trunkline.wire.media_body import form_request, get, json_request, pictures_upto, whole_prompt
from trunkline.wire.media_size import asked_pixels, size_text
from trunkline.wire.read import as_dict, as_name, as_number, as_text

PATH = "/videos"
_DONE = frozenset({"completed", "succeeded", "success", "done", "finished"})
_FAILED = frozenset({"failed", "failure", "cancelled", "canceled", "expired", "rejected", "error"})


class _Video(Answer):
    id: Any = None
    task_id: Any = None
    status: Any = None
    progress: Any = None
    url: Any = None
    video_url: Any = None
    thumbnail_url: Any = None
    output: Any = None
    metadata: Any = None
    data: Any = None
    usage: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a film; a picture is what it begins with."""
    headers = (("idempotency-key", key),)
    size = asked_pixels(request.ratio, request.tier, request.width, request.height, "720p")
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "seconds": f"{request.seconds:g}" if request.seconds is not None else None,
        "size": size_text(size),
        "fps": request.fps,
        "seed": request.seed,
        "user": request.user,
    }
    given = pictures_upto(request, 1)
    if given and given[0].data:
        form = {**request.extra, **members}
        return form_request(target, target.path or PATH, form, [("input_reference", given[0])], key, headers)
    reference = {"image_url": given[0].url} if given else None
    return json_request(target, PATH, {**members, "input_reference": reference}, headers, request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the film's id."""
    video = opened(status, body, _Video)
    if isinstance(video, Refused):
        return video
    if as_text(video.status).lower() in _FAILED:
        return failed(video, "the upstream refused the film and did not say why")
    name = as_name(video.id) or as_name(video.task_id)
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is. A finished film is at a link in the answer, else at `/content`."""
    video = opened(status, body, _Video)
    if isinstance(video, Refused):
        return video
    state = as_text(video.status).lower()
    if state in _FAILED:
        return failed(video, f"the film {task} ended as {state}")
    if state in _DONE:
        return ready([_film(task, video)], "video", usage=usage_of(video.usage))
    if not state:
        return malformed(status, body)
    percent = as_text(video.progress).strip().removesuffix("%") or video.progress
    return Working(as_number(percent), "queued" if state == "queued" else "")


def _film(task: str, video: _Video) -> Media:
    inner = {**as_dict(video.metadata), **as_dict(video.output)}
    for place in (video.video_url, video.url, video.output, inner.get("url"), inner.get("video_url")):
        found = medium(place, "video") if as_text(place) else None
        if found is not None:
            cover = as_text(video.thumbnail_url)
            return Media("video", found.url, mime_type=found.mime_type, cover_url=cover, authorized=True)
    content = f"{PATH}/{task}/content"
    return Media("video", content, cover_url=f"{content}?variant=thumbnail", authorized=True)


DIALECT = MediaDialect(
    "openai_videos",
    submit,
    submitted,
    poll=lambda task, target: get(f"{target.path or PATH}/{task}"),
    progress=progress,
    cancel=lambda task, target: UpstreamRequest(f"{target.path or PATH}/{task}", method="DELETE", headers=()),
    takes_links=True,
    lacks=frozenset({"mask", "quality", "audio"}),
)
