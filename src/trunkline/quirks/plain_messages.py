"""Messages with members that the provider does not know are a 400 there: only the plain ones are sent."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.quirk import Quirk
from trunkline.wire.frame import UNREADABLE

_KEPT = ("role", "content", "tool_calls", "tool_call_id", "prefix")


def change(fields: dict[str, Raw]) -> None:
    """Leave everything else out of each message: names, reasoning of earlier answers, marks for caches."""
    try:
        messages = msgspec.json.decode(fields.get("messages", b""), type=list[dict[str, Raw]])
    except UNREADABLE:
        return
    plain: list[dict[str, Any]] = [{name: message[name] for name in _KEPT if name in message} for message in messages]
    fields["messages"] = Raw(msgspec.json.encode(plain))


QUIRK = Quirk("plain_messages", request=change)
