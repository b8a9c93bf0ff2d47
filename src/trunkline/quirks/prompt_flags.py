"""What a picture or film shall be like stands as flags at the end of the prompt (wire.md section 6.2)."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.quirk import Quirk

_FLAGS = {"aspect_ratio": "aspect", "image_size": "size", "negative_prompt": "no"}
_LEFT_OUT = frozenset({"n", "output_format"})
"""What bots know no flags for: `n` is the request's own, file types are made here."""


def tell(fields: dict[str, Raw], words: dict[str, Any]) -> None:
    """Write the flags behind the last user message's text."""
    flags = [f"--{_FLAGS.get(name, name)} {_plain(value)}" for name, value in words.items() if name not in _LEFT_OUT]
    if "n" in words:
        fields["n"] = Raw(msgspec.json.encode(words["n"]))
    if not flags:
        return
    messages = msgspec.json.decode(fields["messages"])
    last = next(message for message in reversed(messages) if message.get("role") == "user")
    content, tail = last["content"], " ".join(flags)
    if isinstance(content, str):
        last["content"] = f"{content} {tail}".strip()
    elif content and content[0].get("type") == "text":
        content[0]["text"] += f" {tail}"
    else:
        content.insert(0, {"type": "text", "text": tail})
    fields["messages"] = Raw(msgspec.json.encode(messages))


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


QUIRK = Quirk("prompt_flags", pictures=tell)
