"""Which bytes of a frame a departure is about: a table of what to look for, by rule."""

import re

_STRING = rb'"(?:[^"\\]|\\.)*"'
_VALUE = rb"(?:" + _STRING + rb"|\[[^\]]*\]|\{[^{}]*\}|[^\s,}\]]+)"
_USAGE = rb'"usage"\s*:\s*\{(?:[^{}]|\{[^{}]*\})*\}'


def _member(name: bytes, value: bytes = _VALUE) -> bytes:
    return rb'"' + name + rb'"\s*:\s*' + value


_PATTERNS: dict[str, bytes] = {
    "bom": rb"\xef\xbb\xbf",
    "data_prefix_doubled": rb"data:(?=[ \t]*data:)",
    "field_alone": rb"[^\r\n]+",
    "data_line_empty": rb"data[ \t]*:[ \t]*",
    "values_glued": rb"(?<=\})[ \t]*\{",
    "bracket_surplus": rb"[}\]](?=[^}\]]*\Z)",
    "surrogate_lone": rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]..",
    "done_mangled": rb"(?:\[|[^\s:])[^:]*\Z",
    "body_is_json": _member(b"object"),
    "object_wrong": _member(b"object"),
    "id_missing": _member(b"id", rb'(?:null|"\s*")'),
    "id_changed": _member(b"id"),
    "id_not_string": _member(b"id"),
    "created_missing": _member(b"created"),
    "created_changed": _member(b"created"),
    "model_blank": _member(b"model", rb'(?:null|"\s*")'),
    "model_changed": _member(b"model"),
    "fingerprint_changed": _member(b"system_fingerprint"),
    "choices_missing": _member(b"choices"),
    "choice_odd": _member(b"choices"),
    "choice_index_missing": _member(b"index"),
    "choice_index_wrong": _member(b"index"),
    "choice_order": _member(b"index"),
    "delta_missing": _member(b"delta"),
    "message_for_delta": rb'"(?:message|text)"\s*:',
    "role_repeated": _member(b"role"),
    "role_null": _member(b"role", rb'(?:null|"\s*")'),
    "role_without_content": _member(b"role"),
    "content_not_string": rb'"content"\s*:\s*(?:[\[{][^\]}]*[\]}]|[^\s",}\]]+)',
    "reasoning_spelling": rb'"(?:reasoning|thinking)"\s*:',
    "reasoning_with_content": _member(b"content"),
    "logprobs_odd": _member(b"logprobs"),
    "finish_repeated": rb'"finish_?[rR]eason"\s*:\s*' + _VALUE,
    "finish_blank": _member(b"finish_reason", rb'"\s*"'),
    "finish_spelling": rb'"finish_?[rR]eason"\s*:\s*' + _VALUE,
    "finish_with_delta": _member(b"delta"),
    "finish_for_tools": _member(b"finish_reason"),
    "delta_after_finish": _member(b"delta"),
    "tool_index_missing": rb'"tool_calls"\s*:',
    "tool_id_missing": rb'"tool_calls"\s*:',
    "tool_index_repeated": rb'"tool_calls"\s*:\s*\[\s*\{\s*"index"\s*:\s*\d+',
    "tool_call_restarted": rb'(?<="tool_calls").*?"(?:id|name)"\s*:\s*' + _STRING,
    "tool_arguments_object": rb'"arguments"\s*:\s*[\[{][^\]}]*[\]}]',
    "tool_arguments_empty": rb'"arguments"\s*:\s*(?:""|null)',
    "tool_arguments_trailing": _member(b"arguments"),
    "function_call_legacy": rb'"function_call"\s*:',
    "media_twice": rb"https?://[^\s)\]>\"'\\]+",
    "media_bare": rb"https?://[^\s)\]>\"'\\]+",
    "media_beside_text": rb'"(?:media|images|videos)"\s*:',
    "usage_on_chunk": _USAGE,
    "usage_repeated": _USAGE,
    "usage_zero": _USAGE,
    "usage_odd": _USAGE,
    "error_spelling": rb'"error"\s*:\s*' + _VALUE,
    "error_null": rb'"error"\s*:\s*null',
    "error_empty": rb'"error"\s*:\s*(?:\{\s*\}|""|\[\s*\])',
    "error_with_choices": rb'"error"\s*:',
    "upstream_failed": rb'"error"\s*:\s*' + _VALUE,
}
_COMPILED = {rule: re.compile(pattern, re.DOTALL) for rule, pattern in _PATTERNS.items()}
_NAMED = ("member_null", "tool_member_null", "member_dropped", "usage_members_extra", "usage_details_null")
_AT_THE_START = (
    "data_prefix_missing", "blank_line_missing", "start_missing", "role_missing", "member_missing", "member_order",
    "usage_missing", "finish_missing", "done_missing", "tool_call_unannounced",
    "upstream_incomplete", "array_of_chunks", "dialect_recognised",
)  # fmt: skip
"""Something is missing, or all of it is meant: the place is the frame's beginning."""


def locate(rule: str, detail: str, text: bytes) -> tuple[int, int]:
    """Give where in a frame's bytes the fault begins, and how many bytes it has; 0: something is missing there."""
    if rule in _AT_THE_START:
        return 0, 0
    if rule == "event_unterminated":
        return len(text), 0
    if rule == "utf8_invalid":
        return _not_utf8(text)
    if rule in _NAMED:
        name = re.escape(detail.partition(",")[0].rpartition(".")[2].encode())
        value = rb"(?:null|\"\"|\[\s*\])" if rule.endswith("member_null") else _VALUE
        found = re.search(_member(name, value), text) if name else None
    else:
        pattern = _COMPILED.get(rule)
        found = pattern.search(text) if pattern else None
        if pattern is None:
            return 0, len(text)
    return (found.start(), len(found.group())) if found else (0, 0)


def _not_utf8(text: bytes) -> tuple[int, int]:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start, error.end - error.start
    return 0, 0
