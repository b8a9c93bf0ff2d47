"""The prompt of a chat with an image or video model: its words, the flags in them, and pictures that go with it."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from trunkline.core.inline import data_url
from trunkline.core.media import MediaInput
from trunkline.ingress.media_words import FLAGS, Found, plain, read_value
from trunkline.wire.read import as_dict, as_text, dicts

_FLAG = re.compile(
    r"""(?:^|(?<=\s))(?P<mark>--?|—|–)(?P<name>[A-Za-z][A-Za-z_-]*)(?:=|\s+)"""
    r"""(?P<value>"[^"\n]{1,60}"|'[^'\n]{1,60}'|[^\s"']{1,60})(?=\s|$)"""
)
_NO = re.compile(r"(?:^|(?<=\s))(?:--|—|–)no(?:=|\s+)(?P<value>[^\0]+?)(?=\s*\0|\s+(?:--?|—|–)[A-Za-z]|\s*$)")
_BRACES = re.compile(r"\{\s*(?P<name>[A-Za-z_-]+)\s*[:=]\s*(?P<value>[^{}\s][^{}]{0,40}?)\s*\}")
_MARKDOWN = re.compile(r"!\[[^\]\n]*\]\(\s*(?P<url>data:image/[^)\s]+|https?://[^)\s]+)\s*\)")
_LINK = re.compile(r"https?://[^\s<>\"'()\[\]]+[^\s<>\"'()\[\].,;:!?]")
_PICTURE = re.compile(r"\.(?:png|jpe?g|webp|gif)\Z", re.IGNORECASE)
_OWN = re.compile(r"/v1/media/img_[0-9a-f]{24}\Z")


class Prompt(Struct, frozen=True):
    """What a chat asks an image or video model for."""

    text: str
    flags: tuple[Found, ...] = ()
    pictures: tuple[MediaInput, ...] = ()
    """That the last user message brings along."""
    former: tuple[MediaInput, ...] = ()
    """That the model's last answer with pictures showed."""


def read_messages(messages: Any) -> Prompt:
    """Read the last user message, and the pictures of the answer before it."""
    said = list(dicts(messages))
    at = next((at for at in range(len(said) - 1, -1, -1) if said[at].get("role") == "user"), None)
    if at is None:
        return Prompt("")
    text, pictures = _content(said[at])
    text, linked = _links(text)
    text, flags = read_flags(text)
    former = next(
        (
            found
            for message in reversed(said[:at])
            if message.get("role") == "assistant" and (found := tuple(_shown(message)))
        ),
        (),
    )
    return Prompt(text, flags, (*pictures, *linked), former)


def read_flags(text: str) -> tuple[str, tuple[Found, ...]]:
    """Take the known flags with good values out of a prompt; all others are text and stay."""
    found: list[Found] = []

    def take(match: re.Match[str]) -> str:
        spelling = f"--{match['name']}" if "mark" in match.re.groupindex else f"{{{match['name']}}}"
        meaning = FLAGS.get(plain(match["name"]))
        value = read_value(meaning, match["value"], spelling) if meaning else None
        if value is None:
            return match[0]
        found.append(value)
        return "\0"

    def take_no(match: re.Match[str]) -> str:
        found.append(Found("negative", match["value"].strip(), "--no"))
        return "\0"

    text = _BRACES.sub(take, _FLAG.sub(take, text))
    text = _NO.sub(take_no, text)
    # a flag goes with one of the blanks beside it
    text = re.sub(r"[ \t]?\0", "", text)
    return (text.strip() if found else text), tuple(found)


def picture_of(value: Any) -> MediaInput | None:
    """Read a picture: a link, a data URL, an upload's id, or an object that holds one. Raises ValueError."""
    if isinstance(value, str):
        return _by_url(value)
    members = as_dict(value)
    if as_text(members.get("file_id")):
        return MediaInput(file_id=as_text(members["file_id"]))
    for name in ("image_url", "url", "image", "file"):
        inner = members.get(name)
        if inner and (found := picture_of(inner)) is not None:
            return found
    encoded = as_text(members.get("b64_json")) or as_text(members.get("file_data"))
    if encoded:
        return _by_url(encoded if encoded.startswith("data:") else f"data:image/png;base64,{encoded}")
    return None


def _by_url(url: str) -> MediaInput | None:
    url = url.strip()
    if url[:5].lower() == "data:":
        mime_type, pieces = data_url(url)
        return MediaInput(data=b"".join(pieces), mime_type=mime_type)
    return MediaInput(url=url) if url.lower().startswith(("http://", "https://")) else None


def _content(message: dict[str, Any]) -> tuple[str, list[MediaInput]]:
    """Give a message's text, and the pictures among its parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content, []
    texts: list[str] = []
    pictures: list[MediaInput] = []
    for part in dicts(content):
        if as_text(part.get("text")):
            texts.append(as_text(part["text"]))
        elif (found := picture_of(part)) is not None:
            pictures.append(found)
    return "\n".join(texts), pictures


def _links(text: str) -> tuple[str, list[MediaInput]]:
    """Take pictures out of a text: markdown, and bare links that end as pictures do."""
    found: list[MediaInput] = []

    def take(match: re.Match[str]) -> str:
        url = match["url"] if "url" in match.re.groupindex else match[0]
        path = url.partition("?")[0]
        picture = _by_url(url) if match.re is _MARKDOWN or _PICTURE.search(path) or _OWN.search(path) else None
        if picture is None:
            return match[0]
        found.append(picture)
        return ""

    stripped = _LINK.sub(take, _MARKDOWN.sub(take, text))
    return (re.sub(r"[ \t]{2,}", " ", stripped).strip() if found else text), found


def _shown(message: dict[str, Any]) -> Iterator[MediaInput]:
    """Give the pictures of a former answer, in every style that we write; what cannot be read is left out."""
    text, parts = _content(message)
    yield from parts
    urls = [match["url"] for match in _MARKDOWN.finditer(text)] + [match[0] for match in _LINK.finditer(text)]
    urls += _outputs(message)
    own = [url for url in dict.fromkeys(urls) if url.startswith("data:") or _OWN.search(url.partition("?")[0])]
    for value in (*own, *dicts(message.get("images"))):
        try:
            picture = picture_of(value)
        except ValueError:
            continue
        if picture is not None:
            yield picture


def _outputs(message: dict[str, Any]) -> list[str]:
    listed = as_dict(message.get("media")).get("outputs")
    return [url for url in listed if isinstance(url, str)] if isinstance(listed, list) else []
