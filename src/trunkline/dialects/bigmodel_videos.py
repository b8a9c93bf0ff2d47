"""Zhipu's and Z.ai's films: `videos/generations`, then `async-result` (wire.md sections 4.3 and 4.4)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import MediaRequest
from trunkline.wire.media_answer import Answer, failed, filtered, malformed, medium, opened, ready
from trunkline.wire.media_body import get, json_request, link, number, pictures_upto, whole_prompt
from trunkline.wire.media_size import pixels, size_text
from trunkline.wire.read import as_list, as_name, as_text


class _Task(Answer):
    id: Any = None
    request_id: Any = None
    task_status: Any = None
    video_result: Any = None
    content_filter: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a film; one picture is its first frame, two are first and last."""
    given = [link(one) for one in pictures_upto(request, 2)]
    size = (request.width, request.height) if request.width and request.height else None
    if size is None and request.tier:
        size = pixels(request.ratio or "16:9", request.tier)
    members = {
        "model": target.model,
        "prompt": whole_prompt(request) or None,
        "image_url": given[0] if len(given) == 1 else given or None,
        "size": size_text(size),
        "aspect_ratio": request.ratio if size is None else None,
        "quality": request.quality,
        "with_audio": request.audio,
        "duration": number(request.seconds),
        "fps": request.fps,
        "user_id": request.user,
        "request_id": key,
    }
    return json_request(target, "/videos/generations", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the task's id."""
    task = opened(status, body, _Task)
    if isinstance(task, Refused):
        return task
    if as_text(task.task_status).upper() == "FAIL":
        return failed(task, "the upstream refused the task and did not say why")
    name = as_name(task.id)
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is; no percentage is told, and no result before the end."""
    found = opened(status, body, _Task)
    if isinstance(found, Refused):
        return found
    state = as_text(found.task_status).upper()
    films = [medium(item, "video") for item in as_list(found.video_result)]
    if state == "FAIL":
        return failed(found, f"the task {task} failed and did not say why")
    if any(films):
        return ready(films, "video")
    if state != "SUCCESS":
        return Working()
    if found.content_filter:
        return filtered("The provider's content rules held back the film.")
    return ready((), "video")


DIALECT = MediaDialect(
    "bigmodel_videos",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/async-result/{task}"),
    progress=progress,
    takes_links=True,
    lacks=frozenset({"mask", "seed", "background"}),
)
