"""Log probabilities: what OpenAI's object has, and nothing else."""

from typing import Any

from msgspec import Raw

from trunkline.core.notes import Notes
from trunkline.wire.loose import as_raw
from trunkline.wire.read import as_dict, as_number, dicts


def read_logprobs(value: Any, notes: Notes, line: int) -> Raw | None:
    """Give a choice's `logprobs` in OpenAI's shape; entries without a number are left out, None if nothing is left."""
    if not value:
        return None
    content = _entries(as_dict(value).get("content"))
    refusal = _entries(as_dict(value).get("refusal"))
    if {"content": content, "refusal": refusal} != {"refusal": None, **as_dict(value)}:
        notes.add("logprobs_odd", line)
    if not content and not refusal:
        return None
    return as_raw({"content": content, "refusal": refusal})


def _entries(value: Any) -> list[dict[str, Any]] | None:
    entries = [_entry(item, top=True) for item in dicts(value) if as_number(item.get("logprob")) is not None]
    return entries or None


def _entry(item: dict[str, Any], *, top: bool) -> dict[str, Any]:
    token = item.get("token")
    raw = item.get("bytes")
    entry: dict[str, Any] = {
        "token": token if type(token) is str else "",
        "logprob": as_number(item.get("logprob")),
        "bytes": raw if type(raw) is list else None,
    }
    if top:
        others = dicts(item.get("top_logprobs"))
        entry["top_logprobs"] = [
            _entry(other, top=False) for other in others if as_number(other.get("logprob")) is not None
        ]
    return entry
