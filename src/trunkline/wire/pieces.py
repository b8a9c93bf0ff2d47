"""Objects of servers whose streams have no choices: one member holds the next piece of the text."""

from typing import Any

from trunkline.core.finish import first_told
from trunkline.wire.frame import END_EVENTS
from trunkline.wire.mend import mend
from trunkline.wire.openai_chunk import Choice, Chunk, Delta, ToolFragment
from trunkline.wire.read import as_dict, as_text, dicts

_TEXTS = ("content", "text", "answer", "result", "completion", "generated_text", "token", "textDelta", "delta",
          "generation", "textResponse", "outputText", "text_output",
          "chunk")  # fmt: skip
_LISTS = ("results", "outputs", "responses", "generations", "completions")
_ENDS = ("stop", "done", "is_end", "is_finished", "finished", "end", "close", "data")
_LIMITS = ("stopped_limit", "truncated")
_REASONING = ("reasoning", "thinking")


def read_piece(value: dict[str, Any], *, begun: bool) -> Chunk | None:
    """Read such an object as a chunk; None where it has no text, nor, in an answer that has begun, an end.

    Known are the native streams of llama.cpp (`content`, `stop`), text-generation-inference (`token.text`,
    `details.finish_reason`), KoboldCpp (`token`), ERNIE (`result`, `is_end`), Dify (`answer`), Cohere's first API
    (`text`, `is_finished`), Anthropic's text completions (`completion`), watsonx (`results`), Llama on Bedrock
    (`generation`), Mistral there (`outputs`) and Titan (`outputText`), Reka (`responses`), RAGFlow (`data.answer`),
    Flowise (`event`, `data`), Langflow (`data.chunk`), AnythingLLM (`textResponse`, `close`), Triton (`text_output`),
    SGLang (`text`, `meta_info`), AG-UI (`delta`), Replicate's predictions (`output`, `status`).
    """
    text: str | None
    kind = as_text(value.get("type")).lower()
    if "tool" in kind:
        return None  # what a tool is given, or gives, is not said
    inner = as_dict(value.get("data")) or next((item for name in _LISTS for item in dicts(value.get(name))), {})
    inner = {**inner, **as_dict(inner.get("message"))}
    if any(type(inner.get(name)) is str for name in _TEXTS):
        value = {**value, **inner}
    token = as_dict(value.get("token"))
    if token:
        text = "" if token.get("special") is True else as_text(token.get("text"))
    else:
        members = ("data",) if value.get("event") == "token" and type(value.get("data")) is str else _TEXTS
        text = next((value[name] for name in members if type(value.get(name)) is str), None)
    names = ("finish_reason", "stop_reason", "completionReason", "stop_type")
    words = (as_dict(value.get("details")).get("finish_reason"), _met(value), *(value.get(name) for name in names))
    reason = first_told(*words) or None
    if text is None and (output := _output(value)):
        text, reason = output, reason or "stop"
    if reason is None and (any(value.get(name) is True for name in _ENDS) or as_text(value.get("event")) in END_EVENTS):
        reason = "length" if any(value.get(name) is True for name in _LIMITS) else "stop"
    calls = [call for item in dicts(value.get("tool_calls")) if (call := mend(item, ToolFragment)) is not None]
    if text is None and not calls and (reason is None or not begun):
        return None
    thought = any(word in kind for word in _REASONING)
    said = Delta(reasoning_content=text) if thought else Delta(content=text)
    said.tool_calls = calls or None
    return Chunk(
        choices=[Choice(index=0, delta=said, finish_reason=reason)],
        id=value.get("id"),
        created=value.get("created"),
        model=value.get("model"),
        usage=as_dict(value.get("metadata")).get("usage"),
    )


def _met(value: dict[str, Any]) -> Any:
    """Give the reason of SGLang's own language."""
    return as_dict(as_dict(value.get("meta_info")).get("finish_reason")).get("type")


def _output(value: dict[str, Any]) -> str:
    """Give the text of a prediction that has succeeded; it may be a list of pieces."""
    output = value.get("output") if value.get("status") == "succeeded" else None
    return "".join(map(as_text, output)) if type(output) is list else as_text(output)
