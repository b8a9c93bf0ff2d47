"""Reads streams with the official OpenAI library; run by its own interpreter, one JSON line in, one out."""

import json
import sys
from typing import Any

import openai


def raw(client: openai.OpenAI, request: dict[str, Any]) -> dict[str, Any]:
    """Iterate the chunks, and put them together as the documentation shows."""
    told: dict[str, Any] = {"choices": {}, "usage": [], "chunks": 0}
    for chunk in client.chat.completions.create(**request, stream=True):
        told["chunks"] += 1
        told["id"], told["model"], told["created"] = chunk.id, chunk.model, chunk.created
        if chunk.usage:
            told["usage"].append(chunk.usage.model_dump())
        for choice in chunk.choices or []:
            take(
                told["choices"].setdefault(choice.index or 0, {"text": "", "reasoning": "", "calls": {}, "finish": []}),
                choice,
            )
    return told


def take(kept: dict[str, Any], choice: Any) -> None:
    """Add one choice of a chunk."""
    delta = choice.delta
    if delta is not None:
        kept["text"] += delta.content if isinstance(delta.content, str) else json.dumps(delta.content or "")[1:-1]
        kept["reasoning"] += getattr(delta, "reasoning_content", None) or ""
        for call in delta.tool_calls or []:
            of = kept["calls"].setdefault(call.index, {"id": None, "name": "", "arguments": ""})
            of["id"] = of["id"] or call.id
            of["name"] = of["name"] or (call.function and call.function.name) or ""
            of["arguments"] += str((call.function and call.function.arguments) or "")
    if choice.finish_reason:
        kept["finish"].append(choice.finish_reason)


def helper(client: openai.OpenAI, request: dict[str, Any]) -> dict[str, Any]:
    """Let the library put the answer together."""
    with client.chat.completions.stream(**request) as stream:
        told = {"chunks": sum(1 for _ in stream)}
        whole: Any
        try:
            whole = stream.get_final_completion()
        except openai.LengthFinishReasonError as cut:  # the helper's way to say `length`
            whole = cut.completion
    choices = {}
    for choice in whole.choices:
        message = choice.message
        calls = {
            index: {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for index, call in enumerate(message.tool_calls or [])
        }
        choices[choice.index] = {
            "text": message.content or "",
            "role": message.role,
            "reasoning": getattr(message, "reasoning_content", None) or "",
            "calls": calls,
            "finish": [choice.finish_reason] if choice.finish_reason else [],
        }
    usage = [whole.usage.model_dump()] if whole.usage else []
    return told | {
        "id": whole.id, "model": whole.model, "created": whole.created, "choices": choices, "usage": usage,
    }  # fmt: skip


def main() -> None:
    """Answer each line."""
    for line in sys.stdin:
        asked = json.loads(line)
        client = openai.OpenAI(base_url=asked["url"], api_key=asked["key"], max_retries=0, timeout=60)
        try:
            told = (raw if asked["mode"] == "py_raw" else helper)(client, asked["request"])
        except Exception as error:  # noqa: BLE001 - whatever the library says is the answer
            told = {
                "error": {"type": type(error).__name__, "message": str(error), "code": getattr(error, "code", None)}
            }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


main()
