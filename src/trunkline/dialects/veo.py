"""Google's films: a long-running operation, then links that need the key (wire.md section 3.4)."""

from typing import Any

import msgspec

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.errors import GatewayError
from trunkline.core.media import Media, MediaInput, MediaRequest
from trunkline.wire.media_answer import Answer, failed, filtered, malformed, opened, ready
from trunkline.wire.media_body import encoded, get, json_request, mime_type, number, pictures
from trunkline.wire.media_shapes import media_of
from trunkline.wire.media_size import nearest_ratio, nearest_tier
from trunkline.wire.read import as_dict, as_list, as_text, dicts


class _Operation(Answer):
    name: Any = None
    done: Any = None
    response: Any = None


class _Films(msgspec.Struct):
    """What a finished operation holds: the Gemini API's samples, or Vertex AI's videos."""

    samples: Any = msgspec.field(default=None, name="generatedSamples")
    videos: Any = None
    reasons: Any = msgspec.field(default=None, name="raiMediaFilteredReasons")
    count: Any = msgspec.field(default=None, name="raiMediaFilteredCount")


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for films; one picture is the first frame, a second one by its role the last, more are references."""
    del key  # none is known
    ratio, tier = request.ratio, request.tier
    if request.width and request.height:
        ratio = nearest_ratio(request.width, request.height, ("16:9", "9:16"))
        tier = nearest_tier(request.width, request.height, ("720p", "1080p", "4k"))
    instance: dict[str, Any] = {"prompt": request.prompt}
    last = [one for one in request.inputs if one.role == "last_frame"]
    given = [one for one in pictures(request) if one.role != "last_frame"]
    if len(given) == 1:
        instance["image"] = _picture(given[0])
    elif given:
        instance["referenceImages"] = [{"image": _picture(one), "referenceType": "asset"} for one in given]
    if last:
        instance["lastFrame"] = _picture(last[0])
    parameters = {
        "aspectRatio": ratio,
        "resolution": tier,
        "durationSeconds": number(request.seconds),
        "negativePrompt": request.negative_prompt,
        "seed": request.seed,
        "generateAudio": request.audio,
        "sampleCount": request.n if request.n > 1 else None,
    }
    said = {name: value for name, value in parameters.items() if value is not None}
    body = {"instances": [instance], "parameters": said}
    return json_request(target, f"/models/{target.model.removeprefix('models/')}:predictLongRunning", body)


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the operation's name."""
    operation = opened(status, body, _Operation)
    if isinstance(operation, Refused):
        return operation
    name = as_text(operation.name).strip("/")
    return Submitted(name) if name else malformed(status, body)


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read the operation: without `done` it runs, and tells no percentage."""
    operation = opened(status, body, _Operation)
    if isinstance(operation, Refused):
        return operation
    if operation.done is not True:
        return Working()
    response = as_dict(operation.response)
    inner = msgspec.convert(as_dict(response.get("generateVideoResponse")) or response, _Films)
    found = [_film(as_dict(item.get("video"))) for item in dicts(inner.samples)]
    found += [_film(item) for item in dicts(inner.videos)]
    if not any(found) and (inner.reasons or inner.count):
        reasons = "; ".join(filter(None, map(as_text, as_list(inner.reasons))))
        return filtered(reasons or "The provider's content rules held back the film.")
    if not response:
        return failed(operation, f"the operation {task} ended without a result")
    return ready(found, "video")


def _picture(picture: MediaInput) -> dict[str, str]:
    if not picture.data:
        raise GatewayError("invalid_value", "This model takes pictures as files or data, not as links.", param="image")
    return {"bytesBase64Encoded": encoded(picture), "mimeType": mime_type(picture)}


def _film(video: dict[str, Any]) -> Media | None:
    """Read one film; its link is asked for with the key where the host is the provider's own."""
    data = as_text(video.get("encodedVideo")) or as_text(video.get("bytesBase64Encoded"))
    if data:
        kind = as_text(video.get("encoding")) or as_text(video.get("mimeType")) or "video/mp4"
        return media_of({"b64_json": data, "mime_type": kind}, "video")
    url = as_text(video.get("uri"))
    return Media("video", url=url, authorized=True) if url.startswith(("https://", "http://")) else None


DIALECT = MediaDialect(
    "veo",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/{task}"),
    progress=progress,
    lacks=frozenset({"mask", "quality", "fps"}),
)
