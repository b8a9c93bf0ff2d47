"""DashScope's films, by tasks; models up to wan2.6 name sizes and one picture, newer ones ratios and roles."""

import re
from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.wire.dashscope_task import ASYNC, TaskAnswer, asked, begun, cancel
from trunkline.wire.media_answer import medium, ready, usage_of
from trunkline.wire.media_body import get, json_request, link, number, pictures, pictures_upto
from trunkline.wire.media_size import asked_pixels, nearest_tier, size_text

_OLD = re.compile(r"wanx|wan2\.[0-6]")
_PATH = "/services/aigc/video-generation/video-synthesis"


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a film."""
    del key  # none is known
    old = bool(_OLD.match(target.model))
    given = pictures_upto(request, 1) if old else pictures(request)
    own: dict[str, Any] = {"prompt": request.prompt, "negative_prompt": request.negative_prompt}
    if given and old:
        own["img_url"] = link(given[0])
    elif given:
        own["media"] = [{"type": _role(one, alone=len(given) < 3), "url": link(one)} for one in given]
    parameters = {
        **_size(request, by_pixels=old and not given),
        "duration": number(request.seconds),
        "seed": request.seed,
        "audio": request.audio,
        **{name: value for name, value in request.extra.items() if name in ("prompt_extend", "watermark", "shot_type")},
    }
    body = {
        "model": target.model,
        "input": {name: value for name, value in own.items() if value},
        "parameters": {name: value for name, value in parameters.items() if value is not None},
    }
    return json_request(target, _PATH, body, ASYNC)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the task's id."""
    return begun(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is."""
    answer = asked(task, status, body)
    if not isinstance(answer, TaskAnswer):
        return answer
    return ready([medium(answer.fields.get("video_url"), "video")], "video", usage=usage_of(answer.usage))


def _size(request: MediaRequest, *, by_pixels: bool) -> dict[str, Any]:
    width, height = request.width, request.height
    if by_pixels:
        return {"size": size_text(asked_pixels(request.ratio, request.tier, width, height, "720p"), "*")}
    tier = request.tier
    if width and height:
        tier = nearest_tier(width, height, ("480p", "720p", "1080p"))
    return {"resolution": tier.upper() if tier else None, "ratio": request.ratio}


def _role(picture: MediaInput, *, alone: bool) -> str:
    if picture.role == "last_frame":
        return "last_frame"
    return "first_frame" if alone or picture.role == "first_frame" else "reference_image"


DIALECT = MediaDialect(
    "dashscope_videos",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/tasks/{task}"),
    progress=progress,
    cancel=cancel,
    takes_links=True,
    lacks=frozenset({"mask", "quality", "fps"}),
)
