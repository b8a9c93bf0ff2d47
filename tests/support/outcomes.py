"""What a library understood of a stream, compared with what the stream means."""

from typing import Any

from msgspec import Struct

_KEEPS_MODEL = ("py_helper", "langchain_py", "node_helper", "langchain_js")
"""The modes that hand out one model of the whole answer."""


class Meant(Struct):
    """What a stream means. `finish` None: it must fail. `tokens` None: nobody said."""

    text: str = ""
    calls: list[tuple[str, str]] = []
    finish: str | None = "stop"
    tokens: int | None = None
    model: str = ""


def outcome(mode: str, told: dict[str, Any], meant: Meant) -> str:
    """`ok`, `degraded` (something is wrong or missing), `error`, or `empty` (silently nothing)."""
    if told.get("error"):
        return "error"
    first = told["choices"].get("0", {"text": "", "calls": {}, "finish": []})
    calls = [(call.get("name") or "", call.get("arguments") or "") for call in first["calls"].values()]
    if not first["text"] and not calls and (meant.text or meant.calls or meant.finish is None):
        return "empty"
    usage = told["usage"][-1] if told["usage"] else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    right = (
        first["text"] == meant.text
        and calls == meant.calls
        and set(first["finish"]) == {meant.finish}
        and meant.tokens in (None, tokens)
        and (mode not in _KEEPS_MODEL or told.get("model") == meant.model)
        and first.get("role", "ai") in ("ai", "assistant", "AIMessageChunk")
    )
    return "ok" if right else "degraded"
