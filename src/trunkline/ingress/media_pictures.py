"""Pictures that a client sends along: content parts, body members, links in a prompt, and those of former turns."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec.structs import replace

from trunkline.core.inline import data_url
from trunkline.core.media import MediaInput
from trunkline.ingress.media_words import plain
from trunkline.wire.links import BARE, DATA_URL, HTML_IMAGE, MARKDOWN_IMAGE, clean, is_own, kind_of, names_picture
from trunkline.wire.read import as_dict, as_list, as_text, dicts

Role = Literal["image", "mask", "first_frame", "last_frame"]

MEMBERS: dict[str, Role] = {
    **dict.fromkeys((
        "image", "images", "image[]", "imageurl", "imageurls", "inputimage", "inputreference", "inputreferences",
        "referenceimages", "imageb64", "frameimages",
    ), "image"),
    **dict.fromkeys(("firstframe", "firstframeurl", "firstframeimage", "startimage", "startimageurl"), "first_frame"),
    **dict.fromkeys((
        "lastframe", "lastframeurl", "lastframeimage", "imagetail", "endimage", "endimageurl",
    ), "last_frame"),
    **dict.fromkeys(("mask", "maskurl"), "mask"),
}  # fmt: skip
"""Members of a body that hold pictures, without dashes, underscores and case; and what the pictures are for."""

_PLACES = ("url", "image_url", "image", "image_b64", "b64_json", "file_url", "data", "file_data", "source", "file")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}\Z")
_COVERS = frozenset({"cover", "封面", "poster", "thumbnail"})
_DEEPEST = 4


def role_of(name: str) -> Role | None:
    """Give what a picture under this member of a body is for; None: it is no such member."""
    return MEMBERS.get(plain(name))


def pictures_of(name: str, value: Any) -> Iterator[MediaInput | None]:
    """Read a member that holds pictures; None stands for what is none. Raises ValueError for damaged inline data."""
    items = value if type(value) is list else [value]
    for number, item in enumerate(items):
        if item in (None, "", {}):
            continue
        picture = picture_of(item)
        role = _role_in(name, item, number, len(items))
        yield picture if picture is None or picture.role != "image" else replace(picture, role=role)


def _role_in(name: str, item: Any, number: int, of: int) -> Role:
    """Tell first and last frames apart: by their own word, or, of two `frame_images`, by their place."""
    said = as_text(as_dict(item).get("frame_type"))
    if said in {"first_frame", "last_frame"}:
        return "first_frame" if said == "first_frame" else "last_frame"
    if plain(name) == "frameimages":
        return "last_frame" if number == 1 and of == 2 else "first_frame"
    return role_of(name) or "image"


def picture_of(value: Any) -> MediaInput | None:
    """Read a picture: a link, a data URL, base64, an upload's id, or an object that holds one. Raises ValueError."""
    for _ in range(_DEEPEST):
        if type(value) is str:
            return _of_text(value.strip())
        members = as_dict(value)
        if as_text(members.get("file_id")):
            return MediaInput(file_id=as_text(members["file_id"]))
        value = next((members[name] for name in _PLACES if members.get(name)), None)
    return None


def _of_text(text: str) -> MediaInput | None:
    head = text[:8].lower()
    if head.startswith("data:"):
        mime_type, pieces = data_url(text)
        data = b"".join(pieces)
        if not data:
            raise ValueError("it is empty")
        return MediaInput(data=data, mime_type=mime_type)
    if head.startswith(("http://", "https://")):
        return MediaInput(url=text)
    if text.startswith("file-"):
        return MediaInput(file_id=text)
    return _of_text(f"data:image/png;base64,{text}") if _BASE64.match(text) else None


def in_parts(content: Any) -> tuple[str, list[MediaInput]]:
    """Read a message's content: its text, and the pictures among its parts. Raises ValueError."""
    if type(content) is str:
        return content, []
    texts: list[str] = []
    found: list[MediaInput] = []
    for part in as_list(content):
        text = as_text(part) or as_text(as_dict(part).get("text"))
        if text:
            texts.append(text)
        elif "image" in as_text(as_dict(part).get("type")) or any(name in as_dict(part) for name in _PLACES):
            found += [one for one in pictures_of("image", part) if one is not None]
        elif as_text(as_dict(part).get("file_id")):
            found.append(MediaInput(file_id=as_text(part["file_id"])))
    return "\n".join(texts), found


def in_text(text: str, *, any_link: bool = False) -> tuple[str, list[MediaInput]]:
    """Take pictures out of a prompt: Markdown, data URLs, links that name a picture; else, if asked, the first link.

    Raises ValueError.
    """
    found: list[MediaInput] = []

    def take(match: re.Match[str]) -> str:
        link = match[2] if match.re is MARKDOWN_IMAGE else match[0]
        rest = ""
        if match.re is BARE:
            link, rest = clean(link), link[len(clean(link)) :]
            if not (names_picture(link) or (any_link and not found and kind_of(link) != "video")):
                return match[0]
        picture = _of_text(link) if kind_of(link) != "video" else None
        if picture is None:
            return match[0]
        found.append(picture)
        return rest

    stripped = text
    for pattern in (MARKDOWN_IMAGE, DATA_URL, BARE):
        stripped = pattern.sub(take, stripped)
    return (re.sub(r"[ \t]{2,}", " ", stripped).strip() if found else text), found


def former_pictures(messages: Iterable[dict[str, Any]]) -> tuple[MediaInput, ...]:
    """Give the pictures of the latest message that has any; what cannot be read, films and covers are left out."""
    for message in reversed(list(messages)):
        found = dict.fromkeys(_in_message(message))
        if found:
            return tuple(replace(picture, former=True) for picture in found)
    return ()


def _in_message(message: dict[str, Any]) -> Iterator[MediaInput]:
    if message.get("role") not in {"user", "assistant"}:
        return
    try:
        text, parts = in_parts(message.get("content"))
    except ValueError:
        return
    yield from parts
    media = as_dict(message.get("media"))
    items = [item for item in dicts(media.get("items")) if item.get("type") == "image"]
    named = [*(items or as_list(media.get("outputs"))), *dicts(message.get("images"))]
    for value in (*named, *_shown(text)):
        try:
            picture = picture_of(value)
        except ValueError:
            continue
        if picture is not None and kind_of(picture.url) not in {"video", "cover"}:
            yield picture


def _shown(text: str) -> list[str]:
    """Find the pictures that a text showed: Markdown, HTML, data URLs, a bare link of ours."""
    links = [match[2] for match in MARKDOWN_IMAGE.finditer(text) if match[1].strip().lower() not in _COVERS]
    links += [match[1] for match in HTML_IMAGE.finditer(text)]
    if not links:
        links = [match[0] for match in DATA_URL.finditer(text)]
        links += [link for match in BARE.finditer(text) if is_own(link := clean(match[0]))]
    return [link for link in dict.fromkeys(links) if kind_of(link) not in {"video", "cover"}]
