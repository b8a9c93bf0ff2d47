"""What providers speak: one file a wire language, imported when a provider that speaks it is first used."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

from trunkline.core.dialect import ChatDialect, MediaDialect

D = TypeVar("D")


class Dialects(Mapping[str, D]):
    """Dialects by name, each the `DIALECT` of the module so called."""

    def __init__(self, *names: str) -> None:
        self._found: dict[str, D | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> D:
        """Give a dialect. Raises KeyError."""
        found = self._found[name]
        if found is None:
            found = self._found[name] = import_module(f"{__name__}.{name}").DIALECT
        return found

    def __iter__(self) -> Iterator[str]:
        """Name all of them."""
        return iter(self._found)

    def __len__(self) -> int:
        """Count them."""
        return len(self._found)

    def bring_in(self, names: Iterable[str]) -> None:
        """Import those of the names that are dialects, so that no call waits for that."""
        for name in self._found.keys() & names:
            self[name]


CHAT_DIALECTS = Dialects[ChatDialect](
    "openai_chat",
    "anthropic_messages",
    "gemini_chat",
    "openai_responses",
    "bedrock_converse",
    "cohere_chat",
    "ollama_chat",
    "dashscope_chat",
    "workers_ai_chat",
    "poe_bot",
    "ai_sdk_stream",
    "replicate_stream",
)
"""All chat dialects."""

MEDIA_DIALECTS = Dialects[MediaDialect](
    "openai_images",
    "gemini_images",
    "xai_images",
    "bigmodel_images",
    "dashscope_images",
    "openrouter_images",
    "openai_videos",
    "veo",
    "xai_videos",
    "bigmodel_videos",
    "dashscope_videos",
    "openrouter_videos",
    "fal_queue",
    "replicate_predictions",
)
"""All dialects for pictures and films."""


def recognise(value: dict[str, Any], configured: str) -> ChatDialect | None:
    """Give the dialect of an answer's first JSON object, where it is not the configured one.

    The first such answer of a process imports all dialects, which takes 20 ms.
    """
    if CHAT_DIALECTS[configured].recognises(value):
        return None
    return next((dialect for dialect in CHAT_DIALECTS.values() if dialect.recognises(value)), None)
