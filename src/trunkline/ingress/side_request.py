"""Side requests of front ends: what they ask of the chat's own model beside the chat, and must not buy media for."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest
from trunkline.wire.read import as_dict, as_text, dicts


class Side(Struct, frozen=True):
    """A front end, as it was seen to ask."""

    front_end: str
    version: str
    asks_for: str
    begins: str
    """How the last user message begins, or the last message of all, if that is the system's."""
    advice: str


SIDES = (
    Side(
        "Open WebUI",
        "0.12.4",
        "titles, tags, follow-up questions, search queries",
        "### Task:",
        "set TASK_MODEL_EXTERNAL there to a text model",
    ),
    Side(
        "LibreChat",
        "agents 3.2.21",
        "titles",
        "Provide a concise, 5-word-or-less title for the conversation",
        "set `titleModel` of the endpoint there to a text model",
    ),
    Side(
        "LibreChat",
        "agents 3.2.21",
        "titles with the language",
        "Analyze this conversation and provide:",
        "set `titleModel` of the endpoint there to a text model",
    ),
    *(
        Side("NextChat", "2.16", "titles and summaries", begins, "set the summary model there to a text model")
        for begins in (
            "Please generate a four to five word title",
            "Summarize the discussion briefly in 200 words",
            "使用四到五个字直接返回这句话的简要主题",
            "简要总结一下对话内容",
        )
    ),
)
JSON_FORMATS = frozenset({"json_object", "json_schema"})
ADVICE = "Ask a text model for this, or let an operator set `task_model` of this model"


def side_request(request: ChatRequest) -> str:
    """Say, for an image or video model, why a request is none for a medium, and what to do; empty: it is one."""
    asked = as_text(as_dict(_value(request, "response_format")).get("type"))
    if asked in JSON_FORMATS:
        return f"This model makes pictures or films, and `response_format` asks for JSON. {ADVICE}."
    said = _last_words(_value(request, "messages"))
    for side in SIDES:
        if said.startswith(side.begins):
            return (
                f"This model makes pictures or films, and this looks like a side request of {side.front_end} "
                f"({side.asks_for}). {ADVICE}; or {side.advice}."
            )
    return ""


def _last_words(messages: Any) -> str:
    """Give the text of the last user message, or of the system's if that is the last one."""
    for number, message in enumerate(reversed(list(dicts(messages)))):
        if message.get("role") == "user" or (message.get("role") == "system" and not number):
            content = message.get("content")
            if isinstance(content, str):
                return content.lstrip()
            return next((as_text(part.get("text")).lstrip() for part in dicts(content) if part.get("text")), "")
    return ""


def _value(request: ChatRequest, name: str) -> Any:
    raw = request.fields.get(name)
    return None if raw is None else msgspec.json.decode(raw)
