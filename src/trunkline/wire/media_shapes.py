"""Pictures and films as they stand in JSON answers: links, data URLs, base64 members, under many names."""

import base64
import binascii
import re
from typing import Any

from trunkline.core.media import Media, MediaKind
from trunkline.wire.read import as_dict, as_list, as_text, dicts

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.=+-]+)*),", re.IGNORECASE)
_FILM = re.compile(r"\.(mp4|webm|mov|m4v|mkv|avi)([?#]|$)|/video/", re.IGNORECASE)
_LISTS = ("images", "data", "image_result", "video_result", "videos", "outputs", "results", "generated_images")
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
    for name in ("image_url", "video_url", "url", "video", "image", "uri", "file_uri"):
        inner = value.get(name)
        url = as_text(inner) or as_text(as_dict(inner).get("url"))
        if url:
            said: MediaKind = "video" if name.startswith("video") else kind
            media = _of_url(url.strip(), said)
            cover = as_text(value.get("cover_image_url")) or as_text(value.get("cover_url"))
            return Media(media.kind, media.url, media.data, media.mime_type, cover) if media and cover else media
    encoded = as_text(value.get("b64_json")) or as_text(value.get("image_base64")) or as_text(value.get("result"))
    if encoded:
        return _of_base64(encoded, as_text(value.get("media_type")) or as_text(value.get("mime_type")), kind)
    return None


def media_in(value: dict[str, Any]) -> list[Media]:
    """Read all media of a generation object: `media.outputs`, `data`, `images`, `video_result` and the like."""
    said = f"{as_text(value.get('object'))} {as_text(value.get('model'))}".lower()
    kind: MediaKind = "video" if "video" in said or "veo" in said else "image"
    found: list[Media] = []
    sources = [as_list(as_dict(value.get("media")).get("outputs")), *(as_list(value.get(name)) for name in _LISTS)]
    for number, items in enumerate(sources):
        film = number > 0 and _LISTS[number - 1].startswith("video")
        found.extend(media for item in items if (media := media_of(item, "video" if film else kind)) is not None)
    if not found and as_text(value.get("video_url")):
        found.extend(filter(None, [media_of(value, "video")]))
    return list({(media.url, media.data): media for media in found}.values())


def is_pending(value: dict[str, Any]) -> bool:
    """Say whether an object tells of a task that is not done."""
    status = as_text(value.get("status")) or as_text(value.get("task_status"))
    return status.lower() in _PENDING


def as_markdown(media: Media) -> str:
    """Write a medium as it goes into the text of a model of kind text."""
    url = media.url or f"data:{media.mime_type or 'image/png'};base64,{base64.b64encode(media.data).decode()}"
    if media.kind == "video":
        film = f"[video]({url})"
        return f"[![cover]({media.cover_url})]({url})\n\n{film}" if media.cover_url else film
    return f"![image]({url})"


def _of_url(url: str, kind: MediaKind) -> Media | None:
    if url[:5].lower() == "data:":
        head = _DATA_URL.match(url)
        mime = (head.group(1) or "").lower() if head else ""
        # the bytes stay in the URL until somebody stores them: text models pass it on as it is
        return Media("video" if mime.startswith("video/") else kind, url=url, mime_type=mime) if head else None
    if not url.startswith(("http://", "https://")):
        return None
    return Media("video" if _FILM.search(url) else kind, url=url)


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
    film = kind in ("video_url", "video", "output_video")
    if not film and kind not in ("image_url", "image", "output_image", "image_generation_call"):
        return None
    return media_of(part, "video" if film else "image")


def parts_text(value: Any) -> str:
    """Join the text of nested parts: `[{"text": "…"}, …]`, or a string."""
    if type(value) is str:
        return value
    return "".join(as_text(part.get("text")) for part in dicts(value))
