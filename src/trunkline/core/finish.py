"""Why an answer ended, in every provider's spelling."""

import re
from typing import Any

from trunkline.core.events import FinishReason

_WORDS: dict[str, FinishReason] = {
    **dict.fromkeys(
        ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "end", "ended", "complete",
         "completed", "finished", "done", "pause_turn", "success", "stop_token", "other", "unspecified",
         "finish_reason_unspecified", "language"),
        "stop",
    ),
    **dict.fromkeys(
        ("length", "max_tokens", "model_length", "max_output_tokens", "max_length", "model_context_window_exceeded",
         "context_length", "token_limit", "truncated", "incomplete", "max_completion_tokens"),
        "length",
    ),
    **dict.fromkeys(
        ("tool_calls", "tool_call", "tool_use", "tools", "function_calls", "function_call_request"),
        "tool_calls",
    ),
    "function_call": "function_call",
    **dict.fromkeys(
        ("content_filter", "content_filtered", "sensitive", "safety", "recitation", "blocklist", "spii", "refusal",
         "prohibited_content", "guardrail_intervened", "image_safety", "image_prohibited_content",
         "image_recitation", "error_toxic", "moderation", "model_armor", "jailbreak", "flagged",
         "pup_limited_disabled"),
        "content_filter",
    ),
}  # fmt: skip
_FAILURES = {
    "error", "network_error", "insufficient_system_resource", "malformed_function_call", "unexpected_tool_call",
    "too_many_tool_calls", "malformed_response", "missing_thought_signature", "failed", "failure", "cancelled",
    "canceled", "abort", "aborted", "timeout", "error_limit", "user_cancel", "malformed_tool_use",
    "malformed_model_output", "rate_limit",
}  # fmt: skip
_OPENAI = {"stop", "length", "tool_calls", "content_filter", "function_call"}
_NOTHING = {"", "null", "none", "nil", "undefined", "in_progress", "not_finished", "unfinished", "generating"}
_PARTS: tuple[tuple[str, FinishReason], ...] = (
    ("filter", "content_filter"), ("safety", "content_filter"), ("moderat", "content_filter"),
    ("violat", "content_filter"), ("guardrail", "content_filter"), ("blocked", "content_filter"),
    ("length", "length"), ("max_", "length"), ("maximum", "length"), ("limit", "length"), ("context_", "length"),
    ("tool", "tool_calls"),
)  # fmt: skip
"""What a word that nobody has met before is taken for, by what it contains."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _key(word: str) -> str:
    spaced = _HUMP.sub("_", word.strip())
    return spaced.lower().replace("-", "_").replace(" ", "_").removeprefix("finish_reason_")


def first_told(*words: Any) -> str:
    """Give the first of several finish reasons that says something: some write the word `null` beside the reason."""
    told = (word for word in words if type(word) is str and word)
    return next((word for word in told if _key(word) not in _NOTHING), "")


def read_finish(word: str) -> FinishReason | None:
    """Read a finish reason: None where the word says that nothing has ended, or that it failed (see `is_failure`)."""
    if word == "stop":
        return "stop"
    key = _key(word)
    if key in _NOTHING or is_failure(word):
        return None
    return _WORDS.get(key) or next((reason for part, reason in _PARTS if part in key), "stop")


def is_failure(word: str) -> bool:
    """Say whether a finish reason means that the answer broke."""
    if word in _OPENAI:
        return False
    key = _key(word)
    return key in _FAILURES or (key not in _WORDS and ("error" in key or "fail" in key))


def is_word(word: str) -> bool:
    """Say whether somebody uses this word as a finish reason (a stop sequence that was met is none)."""
    key = _key(word)
    return key in _WORDS or key in _FAILURES


def is_known(word: str) -> bool:
    """Say whether OpenAI itself uses this word."""
    return word in _OPENAI
