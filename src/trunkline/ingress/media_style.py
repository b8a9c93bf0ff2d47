"""How pictures and films stand in a chat's answer: the six styles (contract section 7)."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from trunkline.core.route import MediaStyle

GAP = "\n\n"


class Shown(Struct, frozen=True):
    """A picture or a film as a client is shown it."""

    film: bool
    url: str
    cover_url: str = ""
    inline: str = ""
    """A picture's data URL, where it stands in the text itself."""


def content(style: MediaStyle, media: Sequence[Shown]) -> str:
    """Give the text of an answer, each medium once; under `images` there is none, see `objects`."""
    if style == "images":
        return ""
    number = 1
    pieces = []
    for one in media:
        pieces.append(_piece(style, one, number))
        number += 1 + bool(one.cover_url)
    return GAP.join(pieces)


def objects(media: Sequence[Shown]) -> dict[str, list[dict[str, Any]]]:
    """Give the members `images` and `videos` of a delta, or of a message, under the style `images`."""
    members: dict[str, list[dict[str, Any]]] = {}
    for one in media:
        listed = members.setdefault("videos" if one.film else "images", [])
        kind = "video_url" if one.film else "image_url"
        cover = {"cover_url": one.cover_url} if one.cover_url else {}
        listed.append({"type": kind, "index": len(listed), kind: {"url": one.url}, **cover})
    return members


def _piece(style: MediaStyle, one: Shown, number: int) -> str:
    if style == "bare":
        return one.url
    if not one.film:
        if style == "html":
            return f'<img src="{one.url}" alt="image">'
        return f"![image]({one.inline or one.url})"
    if style == "html":
        return f'<video src="{one.url}" controls>\n{one.url}\n</video>'
    if style == "footnotes":
        return _footnotes(one, number)
    film = f"[video]({one.url})"
    return f"[![cover]({one.cover_url})]({one.url}){GAP}{film}" if one.cover_url else film


def _footnotes(film: Shown, number: int) -> str:
    """Write a film's notes, then its link with their marks."""
    notes = [("video", film.url)]
    if film.cover_url:
        notes.insert(0, ("cover", film.cover_url))
    numbered = list(enumerate(notes, number))
    written: Iterator[str] = (f"[^{at}]: [{name}]({url})" for at, (name, url) in numbered)
    marks = "".join(f"[^{at}]" for at, _ in numbered)
    return GAP.join([*written, f"[video]({film.url}){marks}"])
