"""What a canonical stream means, read by the letter: for comparisons with what client libraries understood."""

import json
from typing import Any

from msgspec import Struct


class Meaning(Struct):
    """One choice of a canonical stream, its usage, or the error it ends with."""

    text: str = ""
    reasoning: str = ""
    calls: list[dict[str, Any]] = []
    finish: str | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    model: str = ""


def read_meaning(stream: bytes) -> dict[int, Meaning]:
    """By choice; usage and error are every choice's."""
    choices: dict[int, Meaning] = {0: Meaning()}
    for line in stream.decode().split("\n"):
        if not line.startswith("data: {"):
            continue
        value = json.loads(line[6:])
        for choice in value.get("choices", []):
            take(choices.setdefault(choice["index"], Meaning()), choice)
        for meaning in choices.values():
            meaning.usage = value.get("usage") or meaning.usage
            meaning.error = value.get("error") or meaning.error
            meaning.model = value.get("model") or meaning.model
    return choices


def take(meaning: Meaning, choice: dict[str, Any]) -> None:
    delta = choice["delta"]
    meaning.text += delta.get("content") or ""
    meaning.reasoning += delta.get("reasoning_content") or ""
    meaning.finish = choice["finish_reason"] or meaning.finish
    for call in delta.get("tool_calls", []):
        body = call.get("function") or call.get("custom") or {}
        if call["index"] == len(meaning.calls):
            meaning.calls.append({"id": call["id"], "name": body["name"], "arguments": "", "type": call["type"]})
        of = meaning.calls[call["index"]]
        of["arguments"] += body.get("arguments") or body.get("input") or ""
