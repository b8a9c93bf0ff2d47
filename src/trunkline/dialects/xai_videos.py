"""xAI's films: a request id, then polls that may be empty (wire.md section 5.3)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import MediaRequest
from trunkline.wire.media_answer import Answer, failed, filtered, malformed, medium, opened, ready, usage_of
from trunkline.wire.media_body import get, json_request, link, number, pictures, whole_prompt
from trunkline.wire.media_size import TABLE_1K, nearest_ratio, nearest_tier
from trunkline.wire.read import as_dict, as_name, as_number, as_text


class _Task(Answer):
    request_id: Any = None
    id: Any = None
    status: Any = None
    progress: Any = None
    video: Any = None
    usage: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a film; one picture is its first frame, several are references."""
    del key  # none is known
    ratio, tier = request.ratio, request.tier
    if request.width and request.height:
        ratio = nearest_ratio(request.width, request.height, TABLE_1K)
        tier = nearest_tier(request.width, request.height, ("480p", "720p", "1080p"))
    given = [{"url": link(one)} for one in pictures(request)]
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "duration": number(request.seconds),
        "aspect_ratio": ratio,
        "resolution": tier,
        "image": given[0] if len(given) == 1 else None,
        "reference_images": given if len(given) > 1 else None,
        "user": request.user,
    }
    return json_request(target, "/videos/generations", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the task's id."""
    task = opened(status, body, _Task)
    if isinstance(task, Refused):
        return task
    name = as_name(task.request_id) or as_name(task.id)
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is: 202, also without a body, is on its way; a link without a status is done."""
    if status == 202 and not body.strip():
        return Working()
    found = opened(status, body, _Task)
    if isinstance(found, Refused):
        return found
    state, video = as_text(found.status).lower(), as_dict(found.video)
    if video.get("respect_moderation") is False:
        return filtered("The provider's moderation held back the film.")
    if state in ("failed", "expired"):
        return failed(found, f"the task {task} ended as {state}")
    if state == "done" or (not state and as_text(video.get("url"))):
        return ready([medium(video, "video")], "video", usage=usage_of(found.usage))
    return Working(as_number(found.progress))


DIALECT = MediaDialect(
    "xai_videos",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/videos/{task}"),
    progress=progress,
    takes_links=True,
    lacks=frozenset({"mask", "quality", "fps", "seed", "audio"}),
)
