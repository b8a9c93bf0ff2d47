"""Zhipu's pictures, at once or, under `path = "/async/images/generations"`, as a task (wire.md sections 4.2, 4.4)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import MediaRequest
from trunkline.wire.media_answer import Answer, failed, filtered, malformed, medium, opened, ready
from trunkline.wire.media_body import get, json_request, whole_prompt
from trunkline.wire.media_size import asked_pixels, size_text
from trunkline.wire.read import as_list, as_name, as_text


class _Images(Answer):
    data: Any = None
    id: Any = None
    task_status: Any = None
    image_result: Any = None
    content_filter: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a picture."""
    size = asked_pixels(request.ratio, request.tier, request.width, request.height, "1K")
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "size": size_text(size),
        "quality": request.quality,
        "user_id": request.user,
        "request_id": key,
    }
    return json_request(target, "/images/generations", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the picture, or the task's id."""
    answer = opened(status, body, _Images)
    if isinstance(answer, Refused):
        return answer
    if answer.data is not None:
        return _pictures(answer, answer.data)
    name = as_name(answer.id) if answer.task_status else ""
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far a task is; it tells no percentage."""
    answer = opened(status, body, _Images)
    if isinstance(answer, Refused):
        return answer
    state = as_text(answer.task_status).upper()
    if state == "FAIL":
        return failed(answer, f"the task {task} failed and did not say why")
    if state == "SUCCESS" or answer.image_result:
        return _pictures(answer, answer.image_result or answer.data)
    return Working()


def _pictures(answer: _Images, items: Any) -> Ready | Refused:
    found = ready((medium(item, "image") for item in as_list(items)), "image")
    if isinstance(found, Refused) and answer.content_filter:
        return filtered("The provider's content rules held back the picture.")
    return found


DIALECT = MediaDialect(
    "bigmodel_images",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/async-result/{task}"),
    progress=progress,
    lacks=frozenset({"mask", "inputs", "seed", "background"}),
)
