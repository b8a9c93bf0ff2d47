"""Reads streams with langchain-openai; run by its own interpreter, one JSON line in, one out."""

import json
import sys
from typing import Any

from langchain_openai import ChatOpenAI


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """Stream, and add the chunks up as LangChain does."""
    request = dict(asked["request"])
    model, messages = request.pop("model"), request.pop("messages")
    options = request.pop("stream_options", None)
    chat = ChatOpenAI(
        model=model, base_url=asked["url"], api_key=asked["key"], max_retries=0, timeout=60,
        stream_usage=bool(options and options.get("include_usage")), n=request.pop("n", None),
    )  # fmt: skip
    whole, chunks = None, 0
    for chunk in chat.bind(**request).stream([(each["role"], each["content"]) for each in messages]):
        chunks += 1
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    text = whole.content if isinstance(whole.content, str) else json.dumps(whole.content)
    calls = {
        index: {"id": call["id"], "name": call["name"], "arguments": call["args"]}
        for index, call in enumerate(whole.tool_call_chunks)
    }
    finish = whole.response_metadata.get("finish_reason")
    usage = whole.usage_metadata
    counted = usage and {
        "prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }  # fmt: skip
    choice = {"text": text, "calls": calls, "finish": [finish] if finish else [], "role": whole.type}
    return {
        "choices": {0: choice}, "usage": [counted] if counted else [], "chunks": chunks,
        "model": whole.response_metadata.get("model_name"), "id": whole.id,
    }  # fmt: skip


def main() -> None:
    """Answer each line."""
    for line in sys.stdin:
        try:
            told = read(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever the library says is the answer
            told = {
                "error": {"type": type(error).__name__, "message": str(error), "code": getattr(error, "code", None)}
            }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


main()
