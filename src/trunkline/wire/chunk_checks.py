"""How a chunk departs from the output contract in shape (wire.md section 0): only looked at for `inspect`."""

import re
from typing import Any

from trunkline.core.finish import is_known
from trunkline.core.notes import Notes
from trunkline.wire.frame import Frame
from trunkline.wire.loose import read_loose
from trunkline.wire.read import as_dict, as_text, dicts

_TOP = ("id", "object", "created", "model", "service_tier", "system_fingerprint", "choices", "usage", "obfuscation")
_CHOICE = ("index", "delta", "logprobs", "finish_reason")
_DELTA = ("role", "content", "reasoning_content", "refusal", "tool_calls", "function_call", "audio", "annotations",
          "reasoning_details")  # fmt: skip
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details")
_DETAILS = ("cached_tokens", "audio_tokens", "reasoning_tokens", "accepted_prediction_tokens",
            "rejected_prediction_tokens")  # fmt: skip
_SHOWN_CHARS = 120
_LONE = re.compile(
    rb"(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_LINK = re.compile(r"https?://[^\s)\]>\"'“”]+|data:[\w/+.-]+;base64,[\w+/=]+")


class ChunkChecks:
    """Watches the chunks of one stream; what it sees goes to the notes. Changes nothing."""

    def __init__(self, notes: Notes) -> None:
        self.frames: list[Frame] = []
        """All frames so far."""
        self.noted: dict[int, int] = {}
        """Which of the notes' departures are from here, and of which frame."""
        self._notes = notes
        self._constant: dict[str, Any] = {}
        self._roles: set[int] = set()
        self._finished: set[int] = set()
        self._failed = False
        self._usages = 0
        self._usage_promised = False
        self._zero_frame = -1  # of usage that says nothing: no fault, if it is the only one
        self._chunks = 0
        self._text: dict[int, list[tuple[str, int]]] = {}
        self._frame = -1

    def feed(self, frames: list[Frame]) -> None:
        """Look at the next frames."""
        for frame in frames:
            self._frame = len(self.frames)
            self.frames.append(frame)
            if frame.kind == "json":
                self._value(frame)

    def close(self) -> None:
        """Look at the stream as a whole."""
        if self._chunks and not self._usages and self._usage_promised:
            self._frame = -1
            self._note("usage_missing")
        for choice, pieces in self._text.items():
            if choice not in self._finished and not self._failed:
                self._frame = -1
                self._note("finish_missing", f"choice {choice}" if choice else "")
            self._links(pieces)

    def _value(self, frame: Frame) -> None:
        value = read_loose(frame.data, Notes())
        if type(value) is not dict:
            return
        if "error" in value:
            self._error(value["error"])
        if "choices" in value or value.get("object") == "chat.completion.chunk":
            self._chunk(value)
        if b"\\u" in frame.data and _LONE.search(bytes(frame.data)):
            self._note("surrogate_lone")

    def _error(self, error: Any) -> None:
        if error is None:
            self._note("error_null")
        elif not error:
            self._note("error_empty")
        else:
            self._failed = True
            if type(error) is not dict or type(error.get("message")) is not str:
                self._note("error_spelling")

    def _links(self, pieces: list[tuple[str, int]]) -> None:
        """Note links that come twice in a text, at the frame where the second one ends, and a link that is all."""
        text = "".join(piece for piece, _ in pieces)
        seen: set[str] = set()
        for found in _LINK.finditer(text):
            self._frame = _frame_of(pieces, found.end())
            link = found.group()
            for part in re.split(r"(?<=.)(?=https?://)", link):
                if part in seen:
                    self._note("media_twice", part[:_SHOWN_CHARS])
                seen.add(part)
            if link == text.strip():
                self._note("media_bare")

    def _note(self, rule: str, message: str = "", *, frame: int | None = None) -> None:
        frame = self._frame if frame is None else frame
        self.noted[len(self._notes.departures)] = frame
        self._notes.add(rule, self.frames[frame].line if frame >= 0 else 0, message)

    def _chunk(self, value: dict[str, Any]) -> None:
        if all(value.get(name) == "" for name in ("id", "model", "object")):
            self._note("filter_chunk")
            return
        self._chunks += 1
        self._metadata(value)
        order = [name for name in value if name in _TOP]
        if order != sorted(order, key=_TOP.index):
            self._note("member_order")
        self._unknown(value, (*_TOP, "error", "x_groq", "citations", "media"), "")
        if value.get("media"):
            self._note("media_beside_text", "media.outputs")
        choices = value.get("choices")
        if type(choices) is not list:
            self._note("choices_missing")
        elif any(type(choice) is not dict for choice in choices):
            self._note("choice_odd")
        for choice in dicts(choices):
            self._choice(choice)
        usage = value.get("usage")
        whole = any(
            "content" in as_dict(choice.get("delta")) and choice.get("finish_reason") for choice in dicts(choices)
        )
        self._usage_promised |= "usage" in value or value.get("object") == "chat.completion" or whole
        if usage:
            self._usage(as_dict(usage), on_chunk=bool(choices))

    def _metadata(self, value: dict[str, Any]) -> None:
        if value.get("object") != "chat.completion.chunk":
            rule = "body_is_json" if value.get("object") == "chat.completion" else "object_wrong"
            self._note(rule, repr(value.get("object")))
        name = value.get("id")
        if not name:
            self._note("id_missing")
        elif type(name) is not str:
            self._note("id_not_string")
        created = value.get("created")
        if type(created) is not int or created <= 0:
            self._note("created_missing")
        if not as_text(value.get("model")).strip():
            self._note("model_blank")
        for member, rule in (("id", "id_changed"), ("created", "created_changed"), ("model", "model_changed")):
            self._same(member, rule, value.get(member))
        if "system_fingerprint" not in value:
            self._note("member_missing", "system_fingerprint")
        elif value["system_fingerprint"] == "":
            self._note("fingerprint_changed", "blank")
        else:
            self._same("system_fingerprint", "fingerprint_changed", value["system_fingerprint"])

    def _same(self, member: str, rule: str, found: Any) -> None:
        if member in self._constant and found and self._constant[member] != found:
            self._note(rule, f"{self._constant[member]!r} → {found!r}")
        if found:
            self._constant[member] = found

    def _unknown(self, value: dict[str, Any], known: tuple[str, ...], where: str) -> None:
        for name, member in value.items():
            if name not in known and member is not None:
                self._note("member_dropped", f"{where}{name}")

    def _choice(self, choice: dict[str, Any]) -> None:
        if type(choice.get("index")) is not int:
            self._note("choice_index_missing")
        index = choice.get("index")
        number: int = index if type(index) is int else 0
        if number not in self._text and number > len(self._text):
            self._note("choice_order")
        order = [name for name in choice if name in _CHOICE]
        if order != sorted(order, key=_CHOICE.index):
            self._note("member_order", "in the choice")
        if "logprobs" not in choice:
            self._note("member_missing", "logprobs")
        self._unknown(choice, (*_CHOICE, "message", "text", "usage", "finishReason"), "choices[].")
        delta = choice.get("delta")
        if type(delta) is not dict:
            self._note("message_for_delta" if choice.get("message") else "delta_missing")
            delta = as_dict(choice.get("message"))
        self._delta(delta, number)
        self._finish(choice.get("finish_reason"), delta, number)

    def _delta(self, delta: dict[str, Any], index: int) -> None:
        if delta.get("role"):
            if index in self._roles:
                self._note("role_repeated")
            self._roles.add(index)
            if "content" not in delta:
                self._note("role_without_content")
        elif "role" in delta:
            self._note("role_null")
        if index not in self._roles and index not in self._text and delta:
            self._note("role_missing")
        nulls = [name for name, member in delta.items() if name != "role" and self._is_null(name, member, index)]
        if nulls:
            self._note("member_null", ", ".join(nulls))
        self._calls(delta)
        for name in ("reasoning", "thinking"):
            if delta.get(name):
                self._note("reasoning_spelling", name)
        if (delta.get("reasoning_content") or delta.get("reasoning")) and delta.get("content"):
            self._note("reasoning_with_content")
        if delta.get("images"):
            self._note("media_beside_text", "delta.images")
        self._unknown(delta, (*_DELTA, "reasoning", "thinking", "images", "videos"), "delta.")
        self._text.setdefault(index, []).append((as_text(delta.get("content")), self._frame))

    def _calls(self, delta: dict[str, Any]) -> None:
        for call in dicts(delta.get("tool_calls")):
            empty = [name for name, member in {**call, **as_dict(call.get("function"))}.items() if member is None]
            if empty:
                self._note("tool_member_null", ", ".join(empty))

    def _is_null(self, name: str, member: Any, index: int) -> bool:
        if name == "refusal" and index not in self._text:
            return False  # OpenAI's own first delta has it
        return member is None or member == [] or (member == "" and name != "content")

    def _finish(self, reason: Any, delta: dict[str, Any], index: int) -> None:
        if reason is None:
            return
        if reason == "":
            self._note("finish_blank")
            return
        if type(reason) is not str or not is_known(reason):
            self._note("finish_spelling", repr(reason))
        if index in self._finished:
            self._note("finish_repeated")
        self._finished.add(index)
        if delta:
            self._note("finish_with_delta", ", ".join(delta))

    def _usage(self, usage: dict[str, Any], *, on_chunk: bool) -> None:
        self._usages += 1
        if on_chunk:
            self._note("usage_on_chunk")
        if self._usages > 1:
            self._note("usage_repeated")
        numbers = [value for value in usage.values() if type(value) in (int, float)]
        if self._zero_frame >= 0:
            self._note("usage_zero", frame=self._zero_frame)
            self._zero_frame = -1
        if numbers and not any(numbers):
            if on_chunk:
                self._note("usage_zero")
            else:
                self._zero_frame = self._frame
        extra = [name for name in usage if name not in _USAGE]
        for details in _USAGE[3:]:
            extra += [f"{details}.{name}" for name in as_dict(usage.get(details)) if name not in _DETAILS]
        if extra:
            self._note("usage_members_extra", ", ".join(extra))
        nulls = [name for name in _USAGE[3:] if usage.get(name, 0) is None]
        if nulls:
            self._note("usage_details_null", ", ".join(nulls))
        if any(type(usage.get(name, 0)) is not int for name in _USAGE[:3]):
            self._note("usage_odd")


def _frame_of(pieces: list[tuple[str, int]], end: int) -> int:
    """Say which frame holds the piece of text that ends at or behind a place."""
    for piece, frame in pieces:
        end -= len(piece)
        if end <= 0:
            return frame
    return -1
