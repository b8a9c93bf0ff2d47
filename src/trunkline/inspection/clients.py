"""What eight client modes do with a stream, measured on streams with one fault each (again by `tests/oracles`)."""

from typing import TYPE_CHECKING

from msgspec import Struct

from trunkline.inspection.spec_reader import Seen
from trunkline.wire.loose import paired
from trunkline.wire.read import as_count

if TYPE_CHECKING:
    from trunkline.inspection.report import Report

MODES: dict[str, str] = {
    "py_raw": "openai-python",
    "py_helper": "openai-python .stream()",
    "langchain_py": "langchain-openai",
    "litellm": "litellm",
    "node_raw": "openai-node",
    "node_helper": "openai-node .stream()",
    "ai_sdk": "Vercel AI SDK",
    "langchain_js": "@langchain/openai",
}
"""The modes, in the order of every row below."""
OUTCOMES = {".": "ok", "d": "degraded", "0": "empty", "E": "error"}
"""`degraded`: the text is kept, something else is wrong; `empty`: silently nothing."""

_NO_JSON = "JSONDecodeError / SyntaxError"
_NO_FINISH = {
    "*": "the cut is not noticed",
    "litellm": "MidStreamFallbackError",
    "node_helper": "missing finish_reason for choice 0",
    "ai_sdk": "Response stream ended without a finish reason.",
}
_NOTHING = {
    "*": "no text, no error",
    "py_helper": "AssertionError",
    "langchain_py": "No generation chunks were returned",
    "node_helper": "request ended without sending any chunks",
    "ai_sdk": "Response stream ended without a finish reason.",
}
_ROLE = {"py_helper": "role None", "node_helper": "missing role for choice 0", "langchain_js": "a generic message"}

MEASURED: dict[str, tuple[str, dict[str, str]]] = {
    "bom": (".d......", {"py_helper": "the first event is lost"}),
    "null_value": ("EEE.EEEE", {"*": "AttributeError / TypeError"}),
    "utf8_invalid": ("EEEEdddd", {"*": "UnicodeDecodeError", "node_raw": "�", "node_helper": "�", "ai_sdk": "�"}),
    "surrogate_lone": ("dddddddd", {"*": "half a character in the text"}),
    "data_after_done": ("......d.", {"ai_sdk": "the text after the end is read too"}),
    "event_unterminated": ("dddddddd", {"*": "the last event is lost"}),
    "field_alone": ("EEEE....", {"*": "JSONDecodeError"}),
    "id_missing": (".....d..", {"node_helper": "no id"}),
    "id_not_string": ("...E..E.", {"litellm": "APIConnectionError", "ai_sdk": "AI_TypeValidationError"}),
    "model_blank": (".dd..d.d", {"*": "no model"}),
    "model_changed": ("..d..d.d", {"*": "another model"}),
    "object_wrong": (".E......", {"py_helper": "AssertionError"}),
    "choices_missing": (".E...EE.", {"*": "TypeError", "ai_sdk": "AI_TypeValidationError"}),
    "choice_odd": ("EEEE00E0", {"*": "AttributeError / AI_TypeValidationError", "node_raw": "no text",
                   "node_helper": "no text", "langchain_js": "no text"}),
    "choice_index_missing": (".E...E..", {"py_helper": "TypeError", "node_helper": "no message at the end"}),
    "choice_order": (".Ed...dd", {"py_helper": "IndexError", "*": "the choices' texts are mixed"}),
    "delta_missing": (".Ed....d", {"py_helper": "AttributeError", "*": "no finish_reason"}),
    "message_for_delta": ("0E000E00", {"*": "no text", "py_helper": "AttributeError", "node_helper": "missing role"}),
    "role_missing": (".d...E.d", _ROLE),
    "role_null": (".d...E.d", _ROLE),
    "role_repeated": (".d......", {"py_helper": "role `assistantassistant…`"}),
    "content_not_string": ("dddddd.d", {"*": "a list, `[object Object]` or nothing in place of the text"}),
    "content_cumulative": ("dddddddd", {"*": "the text shows many times over"}),
    "logprobs_odd": (".E......", {"py_helper": "AttributeError"}),
    "finish_missing": ("dddEdEEd", _NO_FINISH),
    "finish_repeated": ("..d....d", {"*": "`stopstop`"}),
    "finish_blank": (".......d", {"langchain_js": "the model's name repeats"}),
    "finish_spelling": ("ddd.dddd", {"*": "an unknown finish_reason"}),
    "finish_for_tools": ("ddd.dddd", {"*": "`stop` in place of `tool_calls`"}),
    "tool_index_missing": (
        ".Ed..0.d", {"py_helper": "TypeError", "node_helper": "the call is lost", "*": "a call in parts"},
    ),
    "tool_index_repeated": ("dd.ddd..", {"*": "two calls become one"}),
    "tool_call_unannounced": (
        "dddddEEd",
        {"*": "a call without a name", "node_helper": "tool call snapshot missing `type`",
         "ai_sdk": "AI_InvalidResponseDataError"},
    ),
    "tool_call_restarted": (".dd.....", {"py_helper": "id `call_1call_1`, name `ff`", "langchain_py": "name `ff`"}),
    "tool_arguments_object": (
        "ddEdddEE",
        {"*": "`{'a': 1}`, `[object Object]` or nothing", "langchain_py": "ValidationError",
         "ai_sdk": "AI_TypeValidationError", "langchain_js": "merging raises"},
    ),
    "tool_member_null": (".E......", {"py_helper": "AssertionError"}),
    "tool_arguments_empty": ("dddddd.d", {"*": "arguments that are no JSON"}),
    "tool_arguments_trailing": ("dddddddd", {"*": "arguments that are no JSON"}),
    "function_call_legacy": ("00000000", {"*": "the call is not seen"}),
    "usage_on_chunk": (".d...d..", {"*": "no usage"}),
    "usage_repeated": ("..d.....", {"langchain_py": "tokens are added up"}),
    "usage_odd": ("....ddEd", {"*": "numbers as strings", "ai_sdk": "AI_TypeValidationError"}),
    "error_null": ("......E.", {"ai_sdk": "an error part: null"}),
    "error_empty": ("....EEEE", {"*": "an error without words"}),
    "error_spelling": ("EEEEEEEE", {"*": "an error without the provider's words"}),
    "error_with_choices": ("EEEEEEEE", {"*": "the provider's error"}),
    "upstream_failed": ("EEEEEEEE", {"*": "the provider's error"}),
    "upstream_incomplete": ("dddEdEEd", _NO_FINISH),
    "media_beside_text": ("dddddddd", {"*": "the picture is not seen"}),
}  # fmt: skip
"""By rule: the outcome of each mode, and what it says or does (`*`: those not named). Other rules hurt none."""
_SILENCE = "0EE00EE0"
"""When no event can be read at all."""
_FOREIGN = "0E0E0EE0"
_FOREIGN_SAYS = {
    "*": "no text, no error",
    "py_helper": "AssertionError",
    "litellm": "MidStreamFallbackError",
    "node_helper": "chunk.choices is not iterable",
    "ai_sdk": "AI_TypeValidationError",
}
"""When the events are of another dialect."""
FRAMING = (
    "data_prefix_missing", "data_prefix_doubled", "data_line_empty", "json_over_lines", "blank_line_missing",
    "values_glued", "array_of_chunks", "not_json", "bracket_surplus", "malformed", "done_mangled", "body_is_json",
    "event_unterminated", "dialect_recognised",
    "start_missing", "event_too_large",
)  # fmt: skip
"""What depends on the rest of the stream: looked at with a reader that keeps to the specification."""
_CONDITIONAL = (
    "event_unterminated",
    "upstream_failed",
    "upstream_incomplete",
    "usage_on_chunk",
    "usage_repeated",
    "utf8_invalid",
)
_ELSEWHERE = ("member_dropped", "message_for_delta", "choice_index_missing")
"""What tells that something stands where clients do not look."""
_ORDER = ".d0E"
_Effect = tuple[str, str, dict[str, str]]
"""A rule, the outcome of each mode, what it says."""


class Client(Struct):
    """What one mode does with a stream: the outcome, the departures that cause it, its words."""

    mode: str
    outcome: str
    rules: list[str] = []
    says: str | None = None


def judge(report: "Report", seen: Seen, status: int) -> list[Client]:
    """Say what each of the eight modes does with the upstream's raw bytes, of which `seen` is the readable part."""
    if status >= 400:
        return [Client(mode, "error", [], f"HTTP {status}") for mode in MODES]
    rules = list(dict.fromkeys(found.rule for found in report.departures))
    framing = [rule for rule in rules if rule in FRAMING]
    cause = framing[0] if framing else ""
    effects: list[_Effect] = []
    if not seen.choices and not seen.error:
        outcomes, says = (_FOREIGN, _FOREIGN_SAYS) if seen.chunks else (_SILENCE, _NOTHING)
        if seen.chunks and not (report.text or report.tool_calls or report.error):
            outcomes = _FOREIGN.replace("0", "d")  # there is nothing to lose but the end
        effects += [(rule, outcomes, says) for rule in framing or [cause]]
    if seen.unreadable:
        effects += [(rule, "EEEEEEEE", {"*": _NO_JSON}) for rule in framing or [cause]]
    if "utf8_invalid" in rules or not _is_utf8(report.data):
        effects.append(("utf8_invalid", *MEASURED["utf8_invalid"]))
    if (seen.choices or seen.error) and not seen.unreadable:
        effects += _of_chunks(report, seen, rules, cause)
    return [_worst(mode, place, effects) for place, mode in enumerate(MODES)]


def _of_chunks(report: "Report", seen: Seen, rules: list[str], cause: str) -> list[_Effect]:
    """Say what departures do in a stream that can be read event by event."""
    spared = _spared(report, seen, rules)
    known = [rule for rule in rules if rule in MEASURED and rule not in _CONDITIONAL and rule not in spared]
    effects: list[_Effect] = [(rule, *MEASURED[rule]) for rule in known]
    if seen.lost:
        effects.append(("event_unterminated", *MEASURED["event_unterminated"]))
    if seen.alone_events:
        effects.append(("field_alone", "EEEEEE.E", {"*": _NO_JSON}))
    if seen.error:
        effects.append(("upstream_failed", *MEASURED["upstream_failed"]))
    elif not seen.finished and (report.finish_reason or report.error):
        effects.append((cause or "finish_missing", *MEASURED["finish_missing"]))
    elif report.error:
        effects.append(("upstream_failed", "dddddddd", {"*": "the failure looks like an end"}))
    if report.usage and not seen.usage:
        effects.append((cause or "usage_odd", "dddddddd", {"*": "no usage"}))
    if "usage_on_chunk" in rules and "usage_repeated" not in rules:
        effects.append(("usage_on_chunk", *MEASURED["usage_on_chunk"]))
    if "usage_repeated" in rules and "usage_zero" not in rules:
        effects.append(("usage_repeated", *MEASURED["usage_repeated"]))
    effects += _of_contents(report, seen, rules, cause)
    if report.tool_calls and ("role_missing" in rules or "role_null" in rules):
        effects.append(("role_missing", ".......0", {"*": "the call is lost"}))
    return effects


def _spared(report: "Report", seen: Seen, rules: list[str]) -> set[str]:
    """Give the rules whose faults do not reach what is read."""
    spared = set()
    if report.tool_calls and not seen.calls and ("content_not_string" in rules or "member_dropped" in rules):
        spared |= {"tool_arguments_object", "tool_index_missing"}  # of calls that stand where no client looks
    if seen.finished:
        spared.add("finish_missing")
    if seen.text == report.text and report.text:
        spared |= {"message_for_delta", "content_cumulative"}
    if report.media and all(medium["url"] in seen.text for medium in report.media):
        spared.add("media_beside_text")
    if seen.text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in seen.text):
        spared.add("surrogate_lone")
    return spared


def _of_contents(report: "Report", seen: Seen, rules: list[str], cause: str) -> list[_Effect]:
    """Say what is lost of text, calls and numbers because they stand where no client looks."""
    effects: list[_Effect] = []
    cause = cause or next((rule for rule in rules if rule in _ELSEWHERE), "media_beside_text" if report.media else "")
    if cause and len(seen.text) < len(report.text) and not {"content_not_string", "message_for_delta"} & set(rules):
        outcomes = "dddddddd" if seen.text or report.tool_calls else "00000E00"
        effects.append((cause, outcomes, {"*": "a part of the text is lost"}))
    if "content_not_string" in rules and report.text and not seen.text:
        effects.append(("content_not_string", ".0.0...0", {"*": "no text"}))
    calls = sorted(call["arguments"] for call in report.tool_calls)
    if calls and not seen.calls and "function_call_legacy" not in rules:
        outcomes = "dddddddd" if seen.text or "content_not_string" in rules else "00000E00"
        effects.append((cause or "tool_index_missing", outcomes, {"*": "the call is not seen"}))
    elif calls != sorted(map(paired, seen.calls.values())) and not {
        "tool_arguments_object",
        "tool_index_missing",
    } & set(rules):
        effects.append(("tool_call_restarted", "dd.dd...", {"*": "other arguments"}))
    if report.usage and seen.usage and as_count(seen.tokens) != report.usage["total_tokens"]:
        effects.append(("usage_odd", "EEEdddEd" if seen.usage_list else "dddddddd", {"*": "other numbers"}))
    if seen.arrays:
        effects.append(("array_of_chunks", "EEEE.EE.", {"*": "AttributeError, TypeError or a validation error"}))
    if seen.odd:
        effects.append(("delta_missing", "EEEEdEE0", {"*": "TypeError or a validation error"}))
    return effects


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _worst(mode: str, place: int, effects: list[_Effect]) -> Client:
    """Take the worst of what the departures do to a mode."""
    hurting = [effect for effect in effects if effect[1][place] != "."]
    if not hurting:
        return Client(mode, "ok")
    _, outcomes, says = max(hurting, key=lambda effect: _ORDER.index(effect[1][place]))
    rules = list(dict.fromkeys(rule for rule, _, _ in hurting if rule))
    return Client(mode, OUTCOMES[outcomes[place]], rules, says.get(mode, says.get("*")))
