"""Pictures and films in a text, as clients would show them."""

import re

_URL = r"(?:https?://[^\s)\]>\"'“”]+|data:(?:image|video)/[\w.+-]+;base64,[\w+/=]+)"
_MEDIUM = re.compile(
    rf"\[!\[(?P<poster_alt>[^\]]*)\]\((?P<poster>{_URL})\)\]\((?P<film>{_URL})\)"
    rf"|(?P<shown>!?)\[(?P<words>[^\]]*)\]\((?P<link>{_URL})[^)]*\)"
    rf"|<(?P<tag>img|video|source)\b[^>]*\bsrc=[\"']?(?P<src>{_URL})"
    rf"|(?P<bare>{_URL})",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"\.(?:png|jpe?g|webp|gif|avif|bmp)(?:[?#]|$)|^data:image/", re.IGNORECASE)
_FILM = re.compile(r"\.(?:mp4|webm|mov|m4v|mkv|avi)(?:[?#]|$)|^data:video/", re.IGNORECASE)
_COVER = re.compile(r"\bcover\b|封面", re.IGNORECASE)


def media_in_text(text: str) -> list[dict[str, str]]:
    """List each picture, film and cover once: `{"type", "url"}`, in the order of the text."""
    found: dict[str, str] = {}
    for match in _MEDIUM.finditer(text):
        for url, kind in _kinds(match):
            if kind and url not in found:
                found[url] = kind
    return [{"type": kind, "url": url} for url, kind in found.items()]


def _kinds(match: re.Match[str]) -> list[tuple[str, str]]:
    part = match.groupdict()
    if part["film"]:
        film = "video" if _FILM.search(part["film"]) else ""
        return [(part["poster"], "cover" if film else "image"), (part["film"], film)]
    if part["link"]:
        url, words = part["link"], part["words"]
        kind = _kind(url) or ("image" if part["shown"] else "")
        return [(url, "cover" if kind == "image" and not part["shown"] and _COVER.search(words) else kind)]
    if part["src"]:
        return [(part["src"], "image" if (part["tag"] or "").lower() == "img" else "video")]
    return [(part["bare"], _kind(part["bare"] or ""))]


def _kind(url: str) -> str:
    if _FILM.search(url):
        return "video"
    return "image" if _IMAGE.search(url) else ""
