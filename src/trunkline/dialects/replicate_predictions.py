"""Replicate's predictions, for pictures and films (wire.md section 8)."""

import re
from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.media import MediaRequest
from trunkline.wire.media_answer import Answer, failed, malformed, nothing, opened
from trunkline.wire.media_body import get, json_request, link, number, pictures
from trunkline.wire.media_shapes import media_of
from trunkline.wire.read import as_list, as_name, as_text

_PERCENT = re.compile(r"(\d{1,3})%\|")
_VERSION = re.compile(r"[0-9a-f]{40,}")
_LOG_CHARS = 2_000


class _Prediction(Answer):
    id: Any = None
    status: Any = None
    output: Any = None
    logs: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a prediction of `owner/name`, of `owner/name:version`, or of a version alone."""
    del key  # none is known
    given = [link(one) for one in pictures(request)]
    form = "jpg" if request.output_format == "jpeg" else request.output_format
    asked = {
        **request.extra,
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt,
        "aspect_ratio": request.ratio,
        "resolution": request.tier,
        "width": request.width,
        "height": request.height,
        "num_outputs": request.n if request.n > 1 else None,
        "output_format": form if request.kind == "image" else None,
        "duration": number(request.seconds),
        "fps": request.fps,
        "generate_audio": request.audio,
        "seed": request.seed,
        "quality": request.quality,
        "background": request.background,
        "image": given[0] if len(given) == 1 else None,
        "image_input": given if len(given) > 1 else None,
        "mask": next((link(one) for one in request.inputs if one.role == "mask"), None),
    }
    said = {name: value for name, value in asked.items() if value is not None}
    for old, new in target.rename.items():
        if old in said:
            said[new] = said.pop(old)
    model, _, version = target.model.partition(":")
    if version or _VERSION.fullmatch(model):
        return json_request(target, "/predictions", {"version": version or model, "input": said})
    return json_request(target, f"/models/{model}/predictions", {"input": said})


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the prediction, which may be finished already."""
    found = opened(status, body, _Prediction)
    if isinstance(found, Refused):
        return found
    said = _said(found, status, body)
    if not isinstance(said, Working):
        return said
    name = as_name(found.id)
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is: the percentage is in the logs."""
    del task
    found = opened(status, body, _Prediction)
    return found if isinstance(found, Refused) else _said(found, status, body)


def _said(found: _Prediction, status: int, body: bytes) -> Working | Ready | Refused:
    state = as_text(found.status).lower()
    if state in ("failed", "canceled", "aborted"):
        return failed(found, f"the prediction {as_name(found.id)} ended as {state}")
    if state == "succeeded":
        media = [one for item in _items(found.output) if (one := media_of(item))]
        return Ready(tuple(media)) if media else nothing("image", as_text(found.output))
    if not state:
        return malformed(status, body)
    marks = _PERCENT.findall(as_text(found.logs)[-_LOG_CHARS:])
    return Working(float(marks[-1]) if marks else None)


def _items(output: Any) -> list[Any]:
    """Find what may be media: a link, a list of them, or an object's members."""
    if type(output) is dict:
        return [one for value in output.values() for one in (as_list(value) or [value])]
    return as_list(output) or [output]


DIALECT = MediaDialect(
    "replicate_predictions",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/predictions/{task}"),
    progress=progress,
    cancel=lambda task, _target: UpstreamRequest(f"/predictions/{task}/cancel", headers=()),
    takes_links=True,
)
