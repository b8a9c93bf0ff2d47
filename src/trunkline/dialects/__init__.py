"""What providers speak: one file a wire language."""

from typing import Any

from trunkline.core.dialect import ChatDialect, MediaDialect
from trunkline.dialects import (
    ai_sdk_stream,
    anthropic_messages,
    bedrock_converse,
    bigmodel_images,
    bigmodel_videos,
    cohere_chat,
    dashscope_chat,
    dashscope_images,
    dashscope_videos,
    fal_queue,
    gemini_chat,
    gemini_images,
    ollama_chat,
    openai_chat,
    openai_images,
    openai_responses,
    openai_videos,
    openrouter_images,
    openrouter_videos,
    poe_bot,
    replicate_predictions,
    replicate_stream,
    veo,
    workers_ai_chat,
    xai_images,
    xai_videos,
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
        ai_sdk_stream.DIALECT,
        replicate_stream.DIALECT,
    )
}
"""All chat dialects by name."""

MEDIA_DIALECTS: dict[str, MediaDialect] = {
    dialect.name: dialect
    for dialect in (
        openai_images.DIALECT,
        gemini_images.DIALECT,
        xai_images.DIALECT,
        bigmodel_images.DIALECT,
        dashscope_images.DIALECT,
        openrouter_images.DIALECT,
        openai_videos.DIALECT,
        veo.DIALECT,
        xai_videos.DIALECT,
        bigmodel_videos.DIALECT,
        dashscope_videos.DIALECT,
        openrouter_videos.DIALECT,
        fal_queue.DIALECT,
        replicate_predictions.DIALECT,
    )
}
"""All dialects for pictures and films by name."""


def recognise(value: dict[str, Any], configured: str) -> ChatDialect | None:
    """Give the dialect of an answer's first JSON object, where it is not the configured one."""
    if CHAT_DIALECTS[configured].recognises(value):
        return None
    return next((dialect for dialect in CHAT_DIALECTS.values() if dialect.recognises(value)), None)
