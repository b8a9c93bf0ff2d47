"""Gemini's pictures: `generateContent` with inline data, and why there is none (wire.md sections 3.1 and 3.2)."""

from typing import Any

import msgspec

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.events import Usage
from trunkline.core.media import Media, MediaRequest
from trunkline.core.notes import Notes
from trunkline.wire.frame import Frame
from trunkline.wire.loose import read_loose
from trunkline.wire.media_answer import Answer, broken_off, failed, filtered, malformed, nothing, read, refused
from trunkline.wire.media_body import encoded, json_request, mime_type, pictures, whole_prompt
from trunkline.wire.media_shapes import media_of
from trunkline.wire.media_size import TABLE_1K, nearest_ratio, nearest_tier
from trunkline.wire.read import as_count, as_dict, as_text, dicts
from trunkline.wire.reader import EventReader

_FILTERS = frozenset({
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION", "MODEL_ARMOR", "JAILBREAK",
})  # fmt: skip
_PLAIN = ("", "STOP", "FINISH_REASON_UNSPECIFIED")


class _Content(Answer):
    candidates: Any = None
    prompt_feedback: Any = msgspec.field(default=None, name="promptFeedback")
    usage: Any = msgspec.field(default=None, name="usageMetadata")


_parse = msgspec.json.Decoder(_Content).decode


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for a picture; with partial pictures, for a stream."""
    del key  # none is known
    ratio, tier = request.ratio, request.tier
    if request.width and request.height:
        ratio = nearest_ratio(request.width, request.height, TABLE_1K)
        tier = nearest_tier(request.width, request.height, ("512", "1K", "2K", "4K"))
    parts: list[dict[str, Any]] = [{"text": whole_prompt(request)}] if request.prompt else []
    for one in pictures(request):
        inline = {"inlineData": {"mimeType": mime_type(one), "data": encoded(one)}}
        file = {"fileData": {"mimeType": one.mime_type or "image/jpeg", "fileUri": one.url}}
        parts.append(inline if one.data else file)
    config: dict[str, Any] = {"responseModalities": ["TEXT", "IMAGE"]}
    image = {name: value for name, value in (("aspectRatio", ratio), ("imageSize", tier)) if value}
    config |= {"imageConfig": image} if image else {}
    config |= {"seed": request.seed} if request.seed is not None else {}
    method = "streamGenerateContent?alt=sse" if request.partial_images else "generateContent"
    model = target.model.removeprefix("models/")
    body = {"contents": [{"role": "user", "parts": parts}], "generationConfig": config}
    return json_request(target, f"/models/{model}:{method}", body)


class Collected:
    """What an answer holds, gathered over one event or many."""

    def __init__(self) -> None:
        self.media: list[Media] = []
        self.sketches: list[Media] = []
        self.text: list[str] = []
        self.reason = ""
        self.why = ""
        self.blocked = ""
        self.usage: Usage | None = None

    def add(self, content: _Content) -> None:
        """Take one event, or a whole answer. Thought pictures are sketches, no results."""
        feedback = as_dict(content.prompt_feedback)
        self.blocked = as_text(feedback.get("blockReason")) or self.blocked
        self.why = as_text(feedback.get("blockReasonMessage")) or self.why
        for candidate in dicts(content.candidates):
            self.reason = as_text(candidate.get("finishReason")) or self.reason
            self.why = as_text(candidate.get("finishMessage")) or self.why
            for part in dicts(as_dict(candidate.get("content")).get("parts")):
                self._part(part)
        self.usage = _usage(as_dict(content.usage)) or self.usage

    def _part(self, part: dict[str, Any]) -> None:
        inline = as_dict(part.get("inlineData") or part.get("inline_data"))
        file = as_dict(part.get("fileData") or part.get("file_data"))
        kind = as_text(inline.get("mimeType")) or as_text(inline.get("mime_type"))
        media = media_of({"b64_json": inline.get("data"), "mime_type": kind} if inline else {"url": _uri(file)})
        thought = part.get("thought") is True
        if media is not None:
            (self.sketches if thought else self.media).append(media)
        elif not thought:
            self.text.append(as_text(part.get("text")))

    def result(self) -> Ready | Refused:
        """Give the pictures, or the reason why there is none."""
        text = "".join(self.text).strip()
        if self.media:
            return Ready(tuple(self.media), self.usage, text)
        reason = self.blocked or self.reason
        told = f" ({self.why or text})" if self.why or text else ""
        if self.blocked or reason in _FILTERS:
            return filtered(f"The provider's content rules stood in the way: {reason}{told}")
        return nothing("image", text if reason in _PLAIN and text else f"{reason or 'an empty answer'}{told}")


class ContentEvents:
    """Reads one streamed answer."""

    def __init__(self) -> None:
        self._reader = EventReader(_parse, Notes())
        self._found = Collected()
        self._over = False
        self._page = b""

    def feed(self, data: bytes) -> list[Working | Ready | Refused]:
        """Read the next bytes."""
        return self._said(self._reader.feed(data))

    def close(self) -> list[Ready | Refused]:
        """Give the result: an answer ends with its bytes, and says so in its last event."""
        said: list[Ready | Refused] = [one for one in self._said(self._reader.close()) if not isinstance(one, Working)]
        if self._over:
            return said
        found = self._found
        if found.media or found.reason or found.blocked:
            return [found.result()]
        return [broken_off(self._page)]

    def _said(self, frames: list[Frame]) -> list[Working | Ready | Refused]:
        out: list[Working | Ready | Refused] = []
        for frame in frames:
            if self._over:
                break
            if frame.kind == "text":
                self._page = self._page or bytes(frame.data)
            content = frame.value if frame.kind == "json" else None
            if frame.kind == "json" and content is None:
                content = _Content(error=as_dict(read_loose(frame.data, Notes())).get("error"))
            if content is not None and content.error:
                self._over = True
                out.append(failed(content, "the upstream reported an error"))
            elif content is not None:
                before = len(self._found.sketches)
                self._found.add(content)
                out += [Working(text="sketch", partial=one) for one in self._found.sketches[before:]]
        return out


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the answer: an object, an array of events, or an error, perhaps in an array of one."""
    if status >= 400:
        return refused(status, body)
    if body.lstrip()[:1] == b"[":
        events = ContentEvents()
        said = [one for one in (*events.feed(body), *events.close()) if not isinstance(one, Working)]
        return said[0] if said else malformed(status, body)
    content = read(body, _Content)
    if content is None or not (content.candidates or content.prompt_feedback or content.error):
        return malformed(status, body)
    if content.error:
        return failed(content, "the upstream reported an error")
    found = Collected()
    found.add(content)
    return found.result()


def _uri(file: dict[str, Any]) -> str:
    return as_text(file.get("fileUri")) or as_text(file.get("file_uri"))


def _usage(value: dict[str, Any]) -> Usage | None:
    prompt, thoughts = as_count(value.get("promptTokenCount")), as_count(value.get("thoughtsTokenCount"))
    completion = as_count(value.get("candidatesTokenCount")) + thoughts
    if not (prompt or completion):
        return None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=max(as_count(value.get("totalTokenCount")), prompt + completion),
        cached_tokens=min(as_count(value.get("cachedContentTokenCount")), prompt),
        reasoning_tokens=thoughts,
        image_input_tokens=_of_images(value.get("promptTokensDetails")),
        image_output_tokens=_of_images(value.get("candidatesTokensDetails")),
    )


def _of_images(details: Any) -> int:
    return sum(as_count(one.get("tokenCount")) for one in dicts(details) if as_text(one.get("modality")) == "IMAGE")


DIALECT = MediaDialect(
    "gemini_images", submit, submitted, stream=ContentEvents, lacks=frozenset({"mask", "quality", "background"})
)
