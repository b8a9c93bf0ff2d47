"""What providers speak: one file a wire language."""

from typing import Any

from trunkline.core.dialect import ChatDialect, MediaDialect
from trunkline.dialects import (
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    dashscope_chat,
    gemini_chat,
    ollama_chat,
    openai_chat,
    openai_responses,
    poe_bot,
    workers_ai_chat,
)

CHAT_DIALECTS: dict[str, ChatDialect] = {
    dialect.name: dialect
    for dialect in (
        openai_chat.DIALECT,
        anthropic_messages.DIALECT,
        gemini_chat.DIALECT,
        openai_responses.DIALECT,
        bedrock_converse.DIALECT,
        cohere_chat.DIALECT,
        ollama_chat.DIALECT,
        dashscope_chat.DIALECT,
        workers_ai_chat.DIALECT,
        poe_bot.DIALECT,
    )
}
"""All chat dialects by name."""

MEDIA_DIALECTS: dict[str, MediaDialect] = {}
"""All dialects for pictures and films by name."""


def recognise(value: dict[str, Any], configured: str) -> ChatDialect | None:
    """Give the dialect of an answer's first JSON object, where it is not the configured one."""
    if CHAT_DIALECTS[configured].recognises(value):
        return None
    return next((dialect for dialect in CHAT_DIALECTS.values() if dialect.recognises(value)), None)
