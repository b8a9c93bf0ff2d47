"""xAI's pictures: ratio and resolution in place of a size, edits as JSON (wire.md section 5.2)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted
from trunkline.core.media import MediaRequest
from trunkline.wire.media_answer import Answer, filtered, malformed, medium, opened, ready, usage_of
from trunkline.wire.media_body import json_request, link, pictures, whole_prompt
from trunkline.wire.media_size import TABLE_1K, nearest_ratio, nearest_tier
from trunkline.wire.read import as_list, dicts


class _Images(Answer):
    data: Any = None
    usage: Any = None


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for pictures, or for an edit of those given."""
    del key  # none is known
    ratio, tier = request.ratio, request.tier
    if request.width and request.height:
        ratio = nearest_ratio(request.width, request.height, TABLE_1K)
        tier = nearest_tier(request.width, request.height, ("1K", "2K"))
    given = [{"url": link(one), "type": "image_url"} for one in pictures(request)]
    members = {
        "model": target.model,
        "prompt": whole_prompt(request),
        "n": request.n if request.n > 1 else None,
        "aspect_ratio": ratio,
        "resolution": tier.lower() if tier else None,
        "quality": request.quality,
        "user": request.user,
        "image": given[0] if len(given) == 1 else None,
        "images": given if len(given) > 1 else None,
    }
    return json_request(target, "/images/edits" if given else "/images/generations", members, extra=request.extra)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the pictures; those that moderation held back are none."""
    answer = opened(status, body, _Images)
    if isinstance(answer, Refused):
        return answer
    if answer.data is None:
        return malformed(status, body)
    passed = [item for item in as_list(answer.data) if not _blocked(item)]
    if not passed and any(dicts(answer.data)):
        return filtered("The provider's moderation held back every picture.")
    return ready((medium(item, "image") for item in passed), "image", usage=usage_of(answer.usage))


def _blocked(item: Any) -> bool:
    return type(item) is dict and item.get("respect_moderation") is False


DIALECT = MediaDialect(
    "xai_images", submit, submitted, takes_links=True, lacks=frozenset({"mask", "seed", "background"})
)
