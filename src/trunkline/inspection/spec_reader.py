"""What a reader that keeps to the SSE specification sees of a stream, as client libraries do (wire.md 1.5)."""

import json
from typing import Any

from msgspec import Struct

from trunkline.inspection.paste.text import lines_of
from trunkline.wire.read import as_dict, as_index, as_text, dicts

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry")


class Seen(Struct):
    """What came out of the events that a blank line ended, up to `[DONE]`."""

    chunks: int = 0
    choices: int = 0
    """How many of the chunks have a list of choices."""
    text: str = ""
    finished: bool = False
    usage: bool = False
    tokens: Any = None
    """The last `total_tokens`, as it stands there."""
    calls: dict[int, str] = {}
    """The arguments of the tool calls, merged by their index."""
    odd: bool = False
    """A delta is no object, or its calls are no list."""
    usage_list: bool = False
    error: bool = False
    arrays: bool = False
    """An event is a list."""
    unreadable: int = 0
    """The line of the first event that is no JSON; 0: none."""
    lost: bool = False
    """The last event has no blank line after it, and is more than `[DONE]`."""
    alone: list[int] = []
    """Lines of `id:` and `retry:` fields without data; after an `id:`, of any event without data."""
    alone_events: list[int] = []
    """Lines of `event:` fields without data."""


def see(data: bytes) -> Seen:
    """Read a stream by the specification."""
    seen = Seen()
    data = data.removeprefix(_BOM)
    block: list[tuple[int, bytes, bytes]] = []
    named = False
    for number, (start, end, _) in enumerate(lines_of(data), 1):
        line = data[start:end]
        if line:
            name, _, value = line.partition(b":")
            if name in _FIELDS:
                block.append((number, name, value.removeprefix(b" ")))
            continue
        if named and not block:
            seen.alone.append(number)
        named = named or any(name == b"id" for _, name, _ in block)
        if _dispatch(block, seen):
            return seen
        block = []
    texts = [value for _, name, value in block if name == b"data"]
    seen.lost = bool(texts) and not texts[0].startswith(b"[DONE]")
    return seen


def _dispatch(block: list[tuple[int, bytes, bytes]], seen: Seen) -> bool:
    """Take an event; True: the end mark."""
    texts = [value for _, name, value in block if name == b"data"]
    if not texts:
        names = {name for _, name, _ in block}
        if names:
            (seen.alone_events if b"event" in names else seen.alone).append(block[0][0])
        return False
    text = b"\n".join(texts)
    if text.startswith(b"[DONE]"):
        return True
    try:
        value = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        seen.unreadable = seen.unreadable or block[0][0]
        return False
    seen.arrays |= type(value) is list
    _chunk(as_dict(value), seen)
    return False


def _chunk(value: dict[str, Any], seen: Seen) -> None:
    seen.chunks += 1
    seen.choices += type(value.get("choices")) is list
    usage = value.get("usage")
    seen.usage |= bool(usage)
    seen.usage_list |= type(usage) is list
    seen.tokens = as_dict(usage).get("total_tokens") or seen.tokens
    seen.error |= bool(value.get("error"))
    for choice in dicts(value.get("choices")):
        if choice.get("index") in (0, None):
            seen.finished |= bool(choice.get("finish_reason"))
            _delta(choice.get("delta"), seen)


def _delta(delta: Any, seen: Seen) -> None:
    told = as_dict(delta)
    seen.text += as_text(told.get("content"))
    calls = told.get("tool_calls")
    seen.odd |= type(delta) in (str, list) or bool(calls and type(calls) is not list)
    for call in dicts(calls):
        place = as_index(call.get("index"))
        place = len(seen.calls) if place is None else place
        seen.calls[place] = seen.calls.get(place, "") + as_text(as_dict(call.get("function")).get("arguments"))
