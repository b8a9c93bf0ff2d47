"""Pictures and films as they stand in JSON answers: links, data URLs, base64 members, under many names."""

import base64
import binascii
import re
from typing import Any

from trunkline.core.media import Media, MediaKind
from trunkline.wire.read import as_dict, as_text, dicts

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.=+-]+)*),", re.IGNORECASE)
_FILM = re.compile(r"\.(mp4|webm|mov|m4v|mkv|avi)([?#]|$)|/video/", re.IGNORECASE)
_MEDIA = (
    "images", "image", "image_url", "image_urls", "image_result", "generated_images", "videos", "video", "video_url",
    "video_urls", "video_result", "outputs", "output", "result", "results", "data", "media", "task_result", "response",
    "content", "file", "url", "generateVideoResponse", "generatedSamples", "generatedVideos", "download_url",
    "artifacts", "predictions", "assets", "sample", "unsigned_urls",
)  # fmt: skip
"""Members of a generation object that hold media, or an object that does."""
_PENDING = {
    "queued",
    "pending",
    "processing",
    "in_progress",
    "submitted",
    "running",
    "starting",
    "in_queue",
    "not_start",
}


def media_of(item: Any, kind: MediaKind = "image") -> Media | None:
    """Read one medium: a URL, a data URL, or an object that holds one; None where there is none."""
    if type(item) is str:
        return _of_url(item.strip(), kind)
    value = as_dict(item)
    for name in ("image_url", "video_url", "url", "video", "image", "uri", "file_uri", "fileUri", "output_url"):
        inner = value.get(name)
        url = as_text(inner) or as_text(as_dict(inner).get("url"))
        if url:
            said: MediaKind = "video" if name.startswith("video") else kind
            media = _of_url(url.strip(), said)
            cover = as_text(value.get("cover_image_url")) or as_text(value.get("cover_url"))
            return Media(media.kind, media.url, media.data, media.mime_type, cover) if media and cover else media
    if url := as_text(as_dict(value.get("source")).get("url")):
        return _of_url(url.strip(), kind)
    inline = next((inner for name in _INLINE if (inner := as_dict(value.get(name)))), value)
    encoded = next((text for name in _ENCODED if (text := as_text(inline.get(name)))), "")
    if not encoded:
        return None
    mime = _mime_in(inline)
    named = inline is not value or value.get("b64_json") or mime
    return _of_base64(encoded, mime, kind) if named else _of_bare(encoded, kind)


_INLINE = ("source", "inlineData", "inline_data")
_ENCODED = ("b64_json", "image_base64", "data", "result", "base64", "bytesBase64Encoded")
_BARE = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""How PNG, JPEG, GIF and WebP begin in base64."""
_BARE_CHARS = 64


def _mime_in(value: dict[str, Any]) -> str:
    names = ("media_type", "mime_type", "mimeType", "mediaType")
    return next((text for name in names if (text := as_text(value.get(name)))), "")


def media_in(value: dict[str, Any]) -> list[Media]:
    """Read all media of a generation object: `media.outputs`, `data`, `images`, `video_result` and the like."""
    said = f"{as_text(value.get('object'))} {as_text(value.get('model'))}".lower()
    found = _walk(value, "video" if "video" in said or "veo" in said else "image", 3)
    return list({(media.url, media.data): media for media in found}.values())


def _walk(value: dict[str, Any], kind: MediaKind, depth: int) -> list[Media]:
    if "b64_json" in value and "partial" not in as_text(value.get("type")):
        return list(filter(None, [media_of(value, kind)]))
    found: list[Media] = []
    for name in _MEDIA:
        items = value.get(name)
        if items is None or (name == "content" and type(items) is not dict):  # else it is a text
            continue
        film: MediaKind = "video" if name.startswith("video") or name == "unsigned_urls" else kind  # OpenRouter's
        for item in items if type(items) is list else [items]:
            named = name.endswith("url") and type(item) is str  # the cover stands beside it
            said = as_text(item.get("type")) if type(item) is dict else ""
            if said.startswith("audio"):
                continue
            media = media_of({**value, "url": item} if named else item, "video" if said == "video" else film)
            if media is not None:
                found.append(media)
            elif type(item) is dict and depth:
                found += _walk(item, film, depth - 1)
    return found


def is_pending(value: dict[str, Any]) -> bool:
    """Say whether an object tells of a task that is not done."""
    inner = as_dict(value.get("output")) or as_dict(value.get("data"))
    status = as_text(value.get("status")) or as_text(value.get("task_status")) or as_text(inner.get("task_status"))
    return status.lower() in _PENDING


def as_markdown(media: Media) -> str:
    """Write a medium as it goes into the text of a model of kind text."""
    url = media.url or f"data:{media.mime_type or 'image/png'};base64,{base64.b64encode(media.data).decode()}"
    if media.kind == "video":
        film = f"[video]({url})"
        return f"![cover]({media.cover_url})\n\n{film}" if media.cover_url else film
    return f"![image]({url})"


def _of_url(url: str, kind: MediaKind) -> Media | None:
    if url[:5].lower() == "data:":
        head = _DATA_URL.match(url)
        mime = (head.group(1) or "").lower() if head else ""
        # the bytes stay in the URL until somebody stores them: text models pass it on as it is
        return Media("video" if mime.startswith("video/") else kind, url=url, mime_type=mime) if head else None
    if not url.startswith(("http://", "https://")):
        return _of_bare(url, kind)
    return Media("video" if _FILM.search(url) else kind, url=url)


def _of_bare(text: str, kind: MediaKind) -> Media | None:
    """Read base64 that nothing announces: it must begin as a picture does."""
    return _of_base64(text, "", kind) if len(text) >= _BARE_CHARS and text.startswith(_BARE) else None


def _of_base64(encoded: str, mime: str, kind: MediaKind) -> Media | None:
    if encoded[:5].lower() == "data:":
        return _of_url(encoded, kind)
    head = encoded[:64]
    try:
        start = base64.b64decode(head[: len(head) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Media(
        kind, url=f"data:{mime or _mime_of(start, kind)};base64,{encoded}", mime_type=mime or _mime_of(start, kind)
    )


def _mime_of(start: bytes, kind: MediaKind) -> str:
    if start.startswith(b"\xff\xd8"):
        return "image/jpeg"
    if start.startswith(b"RIFF"):
        return "image/webp"
    if start.startswith(b"GIF8"):
        return "image/gif"
    return "video/mp4" if kind == "video" else "image/png"


def part_media(part: dict[str, Any]) -> Media | None:
    """Read a content part that is a picture or a film."""
    kind = as_text(part.get("type"))
    if kind == "file":
        part = as_dict(part.get("file")) or part
        kind = _mime_in(part) or kind
    if kind and not any(word in kind for word in ("image", "video", "media")):
        return None
    return media_of(part, "video" if "video" in kind else "image")


def parts_text(value: Any) -> str:
    """Join the text of nested parts: `[{"text": "…"}, …]`, or a string."""
    if type(value) is str:
        return value
    return "".join(as_text(part.get("text")) for part in dicts(value))
