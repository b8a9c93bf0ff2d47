"""OpenAI Images: `/images/generations` as JSON, `/images/edits` as a form (wire.md section 2.1)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.wire.image_events import ImageEvents
from trunkline.wire.media_answer import Answer, malformed, medium, opened, ready, usage_of
from trunkline.wire.media_body import form_request, json_request, whole_prompt
from trunkline.wire.media_size import asked_pixels, size_text
from trunkline.wire.read import as_list


class _Images(Answer):
    data: Any = None
    usage: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for pictures; with pictures to go by, for an edit of them."""
    headers = (("idempotency-key", key),)
    size = asked_pixels(request.ratio, request.tier, request.width, request.height, "1K")
    streamed = request.partial_images > 0 and request.n == 1
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "n": request.n if request.n > 1 else None,
        "size": size_text(size),
        "quality": request.quality,
        "background": request.background,
        "output_format": request.output_format,
        "seed": request.seed,
        "user": request.user,
        "stream": True if streamed else None,
        "partial_images": request.partial_images if streamed else None,
    }
    if not request.inputs:
        return json_request(target, "/images/generations", members, headers, request.extra)
    given = [one for one in request.inputs if one.role != "mask"]
    if not given or not all(one.data for one in request.inputs):
        raise GatewayError("invalid_value", "A mask needs a picture, and both must be files or data.", param="image")
    name = "image" if len(given) == 1 else "image[]"
    files = [("mask" if one.role == "mask" else name, one) for one in request.inputs]
    path = target.path.replace("generations", "edits") or "/images/edits"
    return form_request(target, path, {**request.extra, **members}, files, key, headers)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the pictures."""
    answer = opened(status, body, _Images)
    if isinstance(answer, Refused):
        return answer
    if answer.data is None:
        return malformed(status, body)
    return ready((medium(item, "image") for item in as_list(answer.data)), "image", usage=usage_of(answer.usage))


DIALECT = MediaDialect("openai_images", submit, submitted, stream=ImageEvents)
