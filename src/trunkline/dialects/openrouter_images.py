"""OpenRouter's `/images`: ratio and resolution apart, references as links, the cost in the answer (wire.md 7)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted
from trunkline.core.media import MediaRequest
from trunkline.wire.image_events import ImageEvents
from trunkline.wire.media_answer import Answer, malformed, medium, opened, ready, usage_of
from trunkline.wire.media_body import json_request, link, pictures, whole_prompt
from trunkline.wire.media_size import size_text
from trunkline.wire.read import as_list


class _Images(Answer):
    data: Any = None
    usage: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for pictures."""
    del key  # none is known
    streamed = request.partial_images > 0 and request.n == 1
    given = [{"type": "image_url", "image_url": {"url": link(one)}} for one in pictures(request)]
    size = (request.width, request.height) if request.width and request.height else None
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "n": request.n if request.n > 1 else None,
        "aspect_ratio": request.ratio if size is None else None,
        "resolution": request.tier if size is None else None,
        "size": size_text(size),
        "quality": request.quality,
        "output_format": request.output_format,
        "background": request.background,
        "seed": request.seed,
        "user": request.user,
        "input_references": given or None,
        "stream": True if streamed else None,
    }
    return json_request(target, "/images", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the pictures; an error may come with status 200."""
    answer = opened(status, body, _Images)
    if isinstance(answer, Refused):
        return answer
    if answer.data is None:
        return malformed(status, body)
    usage = usage_of(answer.usage)
    return ready((medium(item, "image") for item in as_list(answer.data)), "image", usage=usage)


DIALECT = MediaDialect(
    "openrouter_images", submit, submitted, stream=ImageEvents, takes_links=True, lacks=frozenset({"mask"})
)
