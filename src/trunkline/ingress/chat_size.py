"""How large a chat may be beside its bytes: messages and pictures."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError

IMAGE = b"image_url"


class _Part(Struct):
    image_url: Any = None


class _Message(Struct):
    content: str | list[_Part | str] | None = None


def check_size(request: ChatRequest, messages_max: int, images_max: int) -> None:
    """Raise GatewayError (400) for a chat of more messages or pictures than are allowed."""
    if request.messages > messages_max:
        told = f"`messages` has {request.messages} messages; at most {messages_max} are allowed here."
        raise GatewayError("invalid_value", told, param="messages")
    words = bytes(request.said or request.fields["messages"])
    if words.count(IMAGE) <= images_max:  # every picture names it at least once
        return
    try:
        read = msgspec.json.decode(words, type=list[_Message])
    except msgspec.ValidationError:  # unusual content: for the provider to judge
        return
    parts = (part for message in read if isinstance(message.content, list) for part in message.content)
    images = sum(isinstance(part, _Part) and part.image_url is not None for part in parts)
    if images > images_max:
        told = f"`messages` hold {images} pictures; at most {images_max} are allowed here."
        raise GatewayError("invalid_value", told, param="messages")
