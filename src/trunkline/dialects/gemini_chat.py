"""Google's native generateContent, as events or as one JSON array (wire.md section 3.1)."""

import re
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Usage
from trunkline.core.finish import first_told
from trunkline.core.media import Media
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged
from trunkline.wire.error_body import read_error_body
from trunkline.wire.read import as_count, as_dict, as_text, dicts
from trunkline.wire.reader import EventReader
from trunkline.wire.thoughts import thoughts
from trunkline.wire.turns import Attached, Part, Turn, Words, call_names, json_or_text, refuse

_FORMAT = "google-gemini-v1"  # how reasoning details of this provider are marked, as OpenRouter does
_NO_PICTURE = {"NO_IMAGE", "IMAGE_OTHER"}
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 32_768}
_LEVELS = {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium"}
_GENERATION = re.compile(r"gemini-(\d+)")
_HUMP = re.compile(r"(?=[A-Z])")
_UNSIGNED = "skip_thought_signature_validator"
"""Google's word for calls that another model made: since Gemini 3 a call without a signature is refused."""
_MODALITIES = {"text": "TEXT", "image": "IMAGE"}
_BELOW = {
    "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "presencePenalty",
    "frequencyPenalty", "seed", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities",
    "thinkingConfig", "imageConfig", "speechConfig", "mediaResolution", "responseLogprobs", "logprobs",
}  # fmt: skip
"""Members of `generationConfig`, which some clients send at the top."""


class _Blob(Struct):
    mimeType: str | None = None  # noqa: N815 - as on the wire
    mime_type: str | None = None
    data: str | None = None
    fileUri: str | None = None  # noqa: N815 - as on the wire
    file_uri: str | None = None


class _Call(Struct):
    name: str | None = None
    args: dict[str, Any] | None = None
    id: str | None = None


class _Part(Struct):
    text: str | None = None
    thought: bool | None = None
    thoughtSignature: str | None = None  # noqa: N815 - as on the wire
    thought_signature: str | None = None
    inlineData: _Blob | None = None  # noqa: N815 - as on the wire
    inline_data: _Blob | None = None
    fileData: _Blob | None = None  # noqa: N815 - as on the wire
    file_data: _Blob | None = None
    functionCall: _Call | None = None  # noqa: N815 - as on the wire
    function_call: _Call | None = None
    executableCode: dict[str, Any] | None = None  # noqa: N815 - as on the wire
    executable_code: dict[str, Any] | None = None
    codeExecutionResult: dict[str, Any] | None = None  # noqa: N815 - as on the wire
    code_execution_result: dict[str, Any] | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct):
    index: int | None = None
    content: _Content | None = None
    finishReason: str | None = None  # noqa: N815 - as on the wire
    finish_reason: str | None = None
    finishMessage: str | None = None  # noqa: N815 - as on the wire
    finish_message: str | None = None
    groundingMetadata: dict[str, Any] | None = None  # noqa: N815 - as on the wire
    grounding_metadata: dict[str, Any] | None = None

    @property
    def reason(self) -> str:
        """Why it ended, if it has."""
        return first_told(self.finishReason, self.finish_reason)


class _Feedback(Struct):
    blockReason: str | None = None  # noqa: N815 - as on the wire
    block_reason: str | None = None


class _Answer(Struct):
    candidates: list[_Candidate] | None = None
    promptFeedback: _Feedback | None = None  # noqa: N815 - as on the wire
    prompt_feedback: _Feedback | None = None
    usageMetadata: dict[str, Any] | None = None  # noqa: N815 - as on the wire
    usage_metadata: dict[str, Any] | None = None
    modelVersion: str | None = None  # noqa: N815 - as on the wire
    model_version: str | None = None
    responseId: str | None = None  # noqa: N815 - as on the wire
    response_id: str | None = None
    error: Any = None
    response: "_Answer | None" = None


class Decoder(AnswerDecoder[_Answer]):
    """Answers, each with the next parts of its candidates → events."""

    kind = _Answer
    _drawn = False

    def read(self, value: _Answer) -> bool:
        """Read one answer, also in the envelope of Google's Code Assist."""
        value = value.response or value
        feedback = value.promptFeedback or value.prompt_feedback
        usage = value.usageMetadata or value.usage_metadata
        if value.error or (value.candidates is None and feedback is None and usage is None):
            return False
        self.start(value.responseId or value.response_id, value.modelVersion or value.model_version)
        self.usage(_usage(usage) if usage else None)
        self.choices(value.candidates or (), self._candidate)
        if feedback and (feedback.blockReason or feedback.block_reason) and not value.candidates:
            self.finish("content_filter")
        return True

    def _candidate(self, candidate: _Candidate, choice: int) -> None:
        if candidate.content is not None:
            for plain, parts in groupby(candidate.content.parts or (), key=_is_plain):
                if plain:  # one piece: it may repeat the text before it
                    self.text("".join(part.text or "" for part in parts), choice)
                    continue
                for part in parts:
                    self._part(part, choice)
        if grounds := candidate.groundingMetadata or candidate.grounding_metadata:
            cited = [
                {"type": "url_citation", "url_citation": {"url": web["uri"], "title": as_text(web.get("title"))}}
                for chunk in dicts(grounds.get("groundingChunks") or grounds.get("grounding_chunks"))
                if as_text((web := as_dict(chunk.get("web"))).get("uri"))
            ]
            if cited:
                self.extras({"annotations": cited}, choice)
        reason, told = candidate.reason, candidate.finishMessage or candidate.finish_message or ""
        if reason in _NO_PICTURE and not self._drawn:
            why = told or "the model made no picture"
            self.fail(UpstreamError("upstream_no_image", f"{why} ({reason})", 502))
        elif reason:
            self.finish(reason, choice, told)

    def _part(self, part: _Part, choice: int) -> None:
        signature = part.thoughtSignature or part.thought_signature
        call = part.functionCall or part.function_call
        if call is not None:
            extra = {"extra_content": {"google": {"thought_signature": signature}}} if signature else None
            self.tool(index=None, id=call.id, name=call.name, arguments=call.args or {}, choice=choice, extra=extra)
            return
        if part.thought:
            self.reasoning(part.text, choice)  # pictures among the thoughts are drafts
        else:
            self.text(part.text, choice)
            self._medium(part.inlineData or part.inline_data or part.fileData or part.file_data, choice)
            if code := part.executableCode or part.executable_code:
                self.text(f"\n```\n{as_text(code.get('code'))}\n```\n", choice)
            if result := part.codeExecutionResult or part.code_execution_result:
                self.text(f"\n```\n{as_text(result.get('output'))}\n```\n", choice)
        if signature:
            self.reasoning("", choice, [{"type": "reasoning.encrypted", "data": signature, "format": _FORMAT}])

    def _medium(self, blob: _Blob | None, choice: int) -> None:
        if blob is None:
            return
        mime_type = blob.mimeType or blob.mime_type or "image/png"
        url = blob.fileUri or blob.file_uri or (f"data:{mime_type};base64,{blob.data}" if blob.data else "")
        if mime_type.startswith(("image/", "video/")) and url:
            self._drawn = True
            self.media(Media("video" if mime_type[0] == "v" else "image", url=url, mime_type=mime_type), choice)
        elif url:
            self.notes.add("member_dropped", self.line, mime_type)


def _is_plain(part: _Part) -> bool:
    """Say whether a part is text and nothing else."""
    return part == _Part(text=part.text)


def _usage(value: dict[str, Any]) -> Usage:
    """Read the counts of the answer so far: thoughts are apart here, and part of the completion for OpenAI."""

    def count(name: str) -> int:
        return as_count(value.get(f"{name}TokenCount")) or as_count(value.get(f"{name}_token_count"))

    thought = count("thoughts")
    completion = count("candidates") + thought
    prompt = count("prompt") + count("toolUsePrompt")
    inputs, outputs = _modalities(value, "promptTokensDetails"), _modalities(value, "candidatesTokensDetails")
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=max(count("total"), prompt + completion),
        cached_tokens=count("cachedContent") or count("cached_content"),
        cached_audio_tokens=_modalities(value, "cacheTokensDetails").get("AUDIO", 0),
        audio_input_tokens=inputs.get("AUDIO", 0),
        image_input_tokens=inputs.get("IMAGE", 0),
        reasoning_tokens=thought,
        audio_output_tokens=outputs.get("AUDIO", 0),
        image_output_tokens=outputs.get("IMAGE", 0),
    )


def _modalities(usage: dict[str, Any], name: str) -> dict[str, int]:
    """Give the tokens of a list of details by their modality."""
    items = dicts(usage.get(name) or usage.get(_HUMP.sub("_", name).lower()))
    return {
        as_text(item.get("modality")): as_count(item.get("tokenCount") or item.get("token_count")) for item in items
    }


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request."""
    asked = Asked(request, target)
    turns = asked.turns()
    system = [{"text": turn.only_text("it")} for turn in turns if turn.role == "system"]
    body = compact(
        contents=_contents(turns, target.model),
        systemInstruction={"parts": system} if system else None,
        generationConfig=_generation(asked, target.model),
        **_tools(asked.tools(), asked),
    )
    rest = asked.rest()
    own = rest.pop("google", None)
    for members in (rest, own if isinstance(own, dict) else {}):
        merged(body, _placed(members))
    path = "/models/{model}:streamGenerateContent?alt=sse" if request.stream else "/models/{model}:generateContent"
    return UpstreamRequest(target.path or path, msgspec.json.encode(body))


def _generation(asked: Asked, model: str) -> dict[str, Any]:
    form = asked.format()
    modalities: list[str] = asked.take("modalities", list[str], "an array of text and image") or []
    for name in modalities:
        if name not in _MODALITIES:
            refuse("modalities", f"it makes text and pictures, no {name}")
    n = asked.count("n")
    logprobs = asked.take("logprobs", bool, "true or false")
    return compact(
        temperature=asked.number("temperature"),
        topP=asked.number("top_p"),
        maxOutputTokens=asked.most_tokens(),
        candidateCount=n if n != 1 else None,
        stopSequences=asked.stop(),
        seed=asked.count("seed"),
        presencePenalty=asked.number("presence_penalty"),
        frequencyPenalty=asked.number("frequency_penalty"),
        responseLogprobs=logprobs or None,
        logprobs=asked.count("top_logprobs"),
        responseMimeType=None if form.kind == "text" else "application/json",
        responseJsonSchema=form.schema,
        responseModalities=[_MODALITIES[name] for name in modalities] if modalities != ["text"] else None,
        thinkingConfig=_thinking(asked.effort(), model),
    )


def _generation_of(model: str) -> int:
    found = _GENERATION.search(model)
    return int(found.group(1)) if found else 0


def _thinking(effort: str, model: str) -> dict[str, Any] | None:
    """Say how much to think: a level since Gemini 3, a number of tokens before."""
    if not effort:
        return None
    shown = {"includeThoughts": effort != "none"}
    if _generation_of(model) >= 3:
        return {"thinkingLevel": _LEVELS.get(effort, "high"), **shown}
    return {"thinkingBudget": _BUDGETS[effort], **shown}


def _tools(tools: Tools, asked: Asked) -> dict[str, Any]:
    if not tools.parallel and tools.tools:
        refuse("parallel_tool_calls", "it cannot be kept from calling several functions at once")
    declared = [
        compact(name=tool.name, description=tool.description, parametersJsonSchema=tool.parameters)
        for tool in tools.tools
    ]
    listed = ([{"functionDeclarations": declared}] if declared else []) + tools.native
    if asked.take("web_search_options", dict[str, Any], "an object") is not None:
        listed.append({"googleSearch": {}})
    mode = {"required": "ANY", "none": "NONE", "auto": "AUTO", "": ""}[tools.mode]
    if not (declared and mode):
        return {"tools": listed}
    config = {"mode": mode} | compact(allowedFunctionNames=[tools.name] if tools.name else None)
    return {"tools": listed, "toolConfig": {"functionCallingConfig": config}}


def _placed(members: dict[str, Any]) -> dict[str, Any]:
    """Put the provider's own members where they belong, in its spelling: SDKs send them in snake case and flat."""
    body: dict[str, Any] = {}
    for name, value in members.items():
        camel = _camel(name)
        spelt = {_camel(key): item for key, item in value.items()} if isinstance(value, dict) else value
        merged(body, {"generationConfig": {camel: spelt}} if camel in _BELOW else {camel: spelt})
    return body


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def _contents(turns: list[Turn], model: str) -> list[dict[str, Any]]:
    """Join turns of one role: the results of all calls stand in one content."""
    names = call_names(turns)
    contents: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "system":
            continue
        role = "model" if turn.role == "assistant" else "user"
        parts = _result(turn, names) if turn.role == "tool" else _spoken(turn, model)
        if not parts:
            continue
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    return contents


def _result(turn: Turn, names: dict[str, str]) -> list[dict[str, Any]]:
    value = json_or_text(turn.text)
    response = compact(
        id=turn.call_id or None,
        name=turn.name or names.get(turn.call_id) or turn.call_id,
        response=value if isinstance(value, dict) and value else {"output": value},
    )
    media = [_part(part) for part in turn.parts if isinstance(part, Attached)]
    return [{"functionResponse": response}, *media]


def _spoken(turn: Turn, model: str) -> list[dict[str, Any]]:
    parts = [_part(part) for part in turn.parts]
    signed = [thought.data for thought in thoughts(turn.details, _FORMAT) if thought.data]
    if signed and parts:
        parts[-1]["thoughtSignature"] = signed[-1]
    for number, call in enumerate(turn.calls):
        signature = as_text(as_dict(call.extra.get("google")).get("thought_signature"))
        if not signature and number == 0 and _generation_of(model) >= 3:
            signature = _UNSIGNED
        made = compact(id=call.id, name=call.name) | {"args": call.arguments}
        parts.append({"functionCall": made} | compact(thoughtSignature=signature or None))
    return parts


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"text": part.text}
    if part.url:
        return {"fileData": compact(fileUri=part.url, mimeType=part.mime_type or None)}
    return {"inlineData": {"mimeType": part.mime_type, "data": part.data}}


def recognises(value: dict[str, Any]) -> bool:
    """Answers have candidates, or say why they have none."""
    value = value if "candidates" in value else as_dict(value.get("response")) or value
    return type(value.get("candidates")) is list or any(
        type(value.get(name)) is dict for name in ("promptFeedback", "prompt_feedback", "usageMetadata")
    )


DIALECT = ChatDialect(
    "gemini_chat",
    msgspec.json.Decoder(_Answer).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
