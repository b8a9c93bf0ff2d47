"""A model's own account of its reasoning, kept with an answer so that the next request can give it back."""

from typing import Any

from msgspec import Struct

from trunkline.wire.read import as_text


class Thought(Struct):
    """One block of reasoning: text and the provider's signature of it, or `data` that only the provider can read."""

    text: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    summary: str = ""


def thoughts(details: list[dict[str, Any]], form: str) -> list[Thought]:
    """Put `reasoning_details` of one format together again: pieces of one block have one index."""
    found: dict[Any, Thought] = {}
    for detail in details:
        if as_text(detail.get("format")) != form:
            continue
        thought = found.setdefault(detail.get("index"), Thought())
        thought.text += as_text(detail.get("text"))
        thought.summary += as_text(detail.get("summary"))
        thought.signature = as_text(detail.get("signature")) or thought.signature
        thought.data = as_text(detail.get("data")) or thought.data
        thought.id = as_text(detail.get("id")) or thought.id
    return list(found.values())
