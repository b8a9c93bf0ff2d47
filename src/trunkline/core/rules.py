"""Every departure from the output contract that Trunkline knows, by name: what it is, and what breaks on it."""

from typing import Literal

from msgspec import Struct

Severity = Literal["harmless", "kept", "repaired", "broken"]
"""`harmless`: not as OpenAI does, but its schema allows it and no client minds. `kept`: the answer's own words, passed
on as they are. Neither is a fault of the stream."""


class Rule(Struct, frozen=True):
    """A named departure: what it is, and what comes of it where nobody repairs it."""

    text: str
    breaks: str
    severity: Severity = "repaired"


_FRAMING = {
    "bom": Rule("a byte order mark, or another mark that begins nothing", "openai-python loses the first event"),
    "data_prefix_missing": Rule("a line of JSON has no `data:` before it", "every SSE reader ignores the line"),
    "data_prefix_doubled": Rule("`data:` stands twice before one value", "JSON error in every client"),
    "data_line_empty": Rule("`data:` stands on a line of its own", "JSON error in both OpenAI libraries"),
    "json_over_lines": Rule("one JSON value goes over several lines", "JSON error unless every line has `data:`"),
    "blank_line_missing": Rule("no empty line ends the event before", "several values in one event: JSON error"),
    "values_glued": Rule("several JSON values stand on one line", "JSON error: extra data"),
    "array_of_chunks": Rule("the events are elements of one JSON array", "nothing is read at all"),
    "not_json": Rule("a line that is neither JSON nor an SSE field", "JSON error, or the line is lost"),
    "null_value": Rule("the value of an event is `null`", "errors where chunks are objects"),
    "bracket_surplus": Rule("a closing bracket too many", "JSON error"),
    "malformed": Rule("a JSON value that is cut or broken was dropped", "JSON error; its text is lost", "broken"),
    "event_too_large": Rule("one event is larger than is held in memory", "clients give up", "broken"),
    "utf8_invalid": Rule("bytes that are no UTF-8", "openai-python raises"),
    "surrogate_lone": Rule("half of a surrogate pair in a string", "Python clients cannot encode the text"),
    "done_missing": Rule("`[DONE]` is missing", "nothing, if a finish_reason came"),
    "done_mangled": Rule("`[DONE]` is cut by a newline, padded or misspelt", "JSON error in most clients"),
    "data_after_done": Rule("events come after `[DONE]`", "the AI SDK still reads them"),
    "field_alone": Rule("an `id:`, `retry:` or `event:` field without data", "openai-python raises on it"),
    "event_unterminated": Rule("the last event has no empty line after it", "both OpenAI libraries drop it"),
    "body_is_json": Rule("a JSON body in place of an event stream", "openai libraries see an empty answer"),
    "dialect_recognised": Rule("the answer is in another dialect than configured", "nothing is read at all"),
}
_SHAPE = {
    "start_missing": Rule("the stream has no first chunk to take id and model from", "clients miss the metadata"),
    "id_missing": Rule("a chunk has no id", "metadata wrong"),
    "id_changed": Rule("the id changes within one stream", "metadata wrong"),
    "id_not_string": Rule("the id is no string", "AI SDK validation error"),
    "created_missing": Rule("`created` is missing or no number", "openai-node reports 0"),
    "created_changed": Rule("`created` changes within one stream", "openai-node keeps the last value"),
    "model_blank": Rule("`model` is blank", "LangChain reports no model"),
    "model_changed": Rule("`model` changes within one stream", "openai-node keeps the last value"),
    "object_wrong": Rule("`object` is not `chat.completion.chunk`", "type checks fail"),
    "filter_chunk": Rule("a chunk of a content filter, without id, model and object", "all eight clients read over it"),
    "choices_missing": Rule("`choices` is missing or no list", "openai helpers raise"),
    "choice_odd": Rule("a choice is no object", "errors, or its text is lost"),
    "choice_index_missing": Rule("a choice has no index", "openai-python .stream() raises TypeError"),
    "choice_index_wrong": Rule("a choice index that was not asked for", "clients see a second answer"),
    "choice_order": Rule("a choice comes before one with a lower index", "openai-python .stream() raises IndexError"),
    "delta_missing": Rule("a choice has no delta", "openai-python .stream() raises AttributeError"),
    "message_for_delta": Rule("`message` or `text` in place of `delta`", "the text is not seen"),
    "role_missing": Rule("no delta says the role", "openai-node .stream() fails"),
    "role_repeated": Rule("the role comes in more than the first delta", "noise"),
    "role_null": Rule("`role` is null or blank", "LangChain JS builds a generic message"),
    "role_without_content": Rule("the first delta has a role but no content", "noise"),
    "member_null": Rule("members that are null or empty", "noise"),
    "member_missing": Rule("members that OpenAI always sends are missing", "strict types miss them", "harmless"),
    "member_order": Rule("members stand in another order than OpenAI's", "nothing but byte comparisons", "harmless"),
    "member_dropped": Rule("a member that OpenAI's chunk does not have", "dropped unread"),
    "content_not_string": Rule("`content` is no string", "text lost or `[object Object]`"),
    "content_cumulative": Rule("each delta repeats the text so far", "the text shows many times over"),
    "reasoning_spelling": Rule("reasoning under another name than `reasoning_content`", "some clients miss it"),
    "reasoning_with_content": Rule("reasoning and content in one delta", "Continue drops the reasoning"),
    "reasoning_repeated": Rule("a piece of reasoning comes twice in a row", "the reasoning stutters"),
    "logprobs_odd": Rule("log probabilities that are not of OpenAI's shape", "AI SDK validation error"),
    "finish_missing": Rule("no finish_reason came", "AI SDK, litellm and openai-node .stream() raise"),
    "finish_repeated": Rule("a choice finishes more than once", "LangChain gives `stopstop`"),
    "finish_blank": Rule("`finish_reason` is an empty string", "LangChain JS repeats the model name"),
    "finish_spelling": Rule("a finish_reason that OpenAI does not have", "type checks fail"),
    "finish_with_delta": Rule("the finish comes with a delta", "noise"),
    "finish_for_tools": Rule("`stop` although tools were called", "agents end in place of calling"),
    "delta_after_finish": Rule("a delta after the finish", "text lost in some clients"),
    "tool_index_missing": Rule("a tool call has no index", "openai-python .stream() raises; calls get lost"),
    "tool_index_repeated": Rule("a new tool call under the index of another", "two calls become one"),
    "tool_call_unannounced": Rule("arguments of a tool call that did not begin", "the call has no name"),
    "tool_call_restarted": Rule("id or name of a tool call are repeated", "`call_1call_1`, doubled names"),
    "tool_arguments_object": Rule("tool arguments are no string", "validation errors; arguments lost"),
    "tool_arguments_empty": Rule("a tool call without arguments", "`{}` is what clients can parse"),
    "tool_arguments_trailing": Rule("more after complete tool arguments", "JSON error in agents"),
    "tool_member_null": Rule("members of a tool call are null", "openai-python .stream() raises AssertionError"),
    "tool_id_missing": Rule("a tool call has no id", "the result cannot be given back"),
    "function_call_legacy": Rule("`function_call` in place of `tool_calls`", "clients that sent tools miss the call"),
    "media_twice": Rule("the same picture or film stands in the answer twice", "it shows twice", "kept"),
    "media_bare": Rule("the answer is a bare link", "it shows as an address, not as a picture", "kept"),
    "fingerprint_changed": Rule("`system_fingerprint` changes or is blank", "noise for who compares it"),
    "media_beside_text": Rule("media stand beside the text", "most clients show no picture"),
}
_USAGE = {
    "usage_on_chunk": Rule("usage comes on a chunk with choices", "LangChain and Open WebUI add it up"),
    "usage_repeated": Rule("usage comes more than once", "LangChain and Open WebUI add it up"),
    "usage_zero": Rule("usage whose numbers are all zero", "costs of zero"),
    "usage_odd": Rule("usage with odd names, places or types", "AI SDK validation error; costs wrong"),
    "usage_members_extra": Rule("usage has members that OpenAI's has not", "Open WebUI adds them up"),
    "usage_details_null": Rule("the details of usage are null", "who reads cached tokens there may raise"),
    "usage_missing": Rule("no usage came", "costs unknown"),
}
_ERRORS = {
    "error_spelling": Rule("an error that is not of OpenAI's shape", "clients miss it"),
    "error_null": Rule("an `error` member that is null", "the AI SDK takes it for an error"),
    "error_empty": Rule("an `error` member without content", "the libraries of Node.js take it for an error"),
    "error_with_choices": Rule("an error in a chunk that has choices", "Open WebUI ignores the error"),
    "upstream_failed": Rule("the upstream reported an error", "the answer is incomplete", "broken"),
    "upstream_incomplete": Rule("the stream ends before its end", "a cut answer that looks finished", "broken"),
}

GROUPS: dict[str, dict[str, Rule]] = {"Framing": _FRAMING, "Shape": _SHAPE, "Usage": _USAGE, "Errors": _ERRORS}
RULES: dict[str, Rule] = {name: rule for group in GROUPS.values() for name, rule in group.items()}
"""All rules by name."""
