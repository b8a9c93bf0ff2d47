"""Reads streams with litellm as a client; run by its own interpreter, one JSON line in, one out."""

import json
import os
import sys
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no list of prices from the network

import litellm

litellm.suppress_debug_info = True
litellm.num_retries = 0


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """Stream, and put the chunks together."""
    request = dict(asked["request"])
    model = "openai/" + request.pop("model")
    told: dict[str, Any] = {"choices": {}, "usage": [], "chunks": 0}
    stream = litellm.completion(
        model=model, api_base=asked["url"], api_key=asked["key"], stream=True, timeout=60, max_retries=0, **request
    )
    for chunk in stream:
        told["chunks"] += 1
        told["id"], told["model"], told["created"] = chunk.id, chunk.model, chunk.created
        usage = getattr(chunk, "usage", None)
        if usage:
            told["usage"].append(usage.model_dump())
        for choice in chunk.choices:
            take(
                told["choices"].setdefault(choice.index or 0, {"text": "", "reasoning": "", "calls": {}, "finish": []}),
                choice,
            )
    return told


def take(kept: dict[str, Any], choice: Any) -> None:
    """Add one choice of a chunk."""
    delta = choice.delta
    kept["text"] += delta.content if isinstance(delta.content, str) else json.dumps(delta.content or "")[1:-1]
    kept["reasoning"] += getattr(delta, "reasoning_content", None) or ""
    for call in delta.tool_calls or []:
        of = kept["calls"].setdefault(call.index, {"id": None, "name": "", "arguments": ""})
        of["id"] = of["id"] or call.id
        of["name"] = of["name"] or call.function.name or ""
        of["arguments"] += call.function.arguments or ""
    if choice.finish_reason:
        kept["finish"].append(choice.finish_reason)


def main() -> None:
    """Answer each line; the library prints on stdout at times, so answers go to the real one."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            told = read(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever the library says is the answer
            told = {
                "error": {"type": type(error).__name__, "message": str(error), "code": getattr(error, "code", None)}
            }
        answers.write(json.dumps(told) + "\n")
        answers.flush()


main()
