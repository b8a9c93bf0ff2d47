"""The prompt of a chat with an image or video model: its words, the flags in them, and pictures that go with it."""

from typing import Any

from msgspec import Struct

from trunkline.core.media import MediaInput
from trunkline.core.provider import ModelKind
from trunkline.ingress.media_pictures import former_pictures, in_parts, in_text
from trunkline.ingress.media_words import Found
from trunkline.ingress.prompt_flags import take_flags
from trunkline.wire.read import dicts


class Prompt(Struct, frozen=True):
    """What a chat asks an image or video model for."""

    text: str
    flags: tuple[Found, ...] = ()
    pictures: tuple[MediaInput, ...] = ()
    """That the last user message brings along."""
    former: tuple[MediaInput, ...] = ()
    """That the conversation showed last."""


def read_messages(messages: Any, kind: ModelKind) -> Prompt:
    """Read the last user message, and the pictures of the latest message before it that has any. Raises ValueError."""
    said = list(dicts(messages))
    at = next((at for at in range(len(said) - 1, -1, -1) if said[at].get("role") == "user"), None)
    if at is None:
        return Prompt("")
    text, pictures = in_parts(said[at].get("content"))
    text, flags = take_flags(text, kind)
    # what a film begins with may be any link in its prompt
    text, linked = in_text(text, any_link=kind == "video" and not pictures)
    return Prompt(text, flags, (*pictures, *linked), former_pictures(said[:at]))
