"""Links in texts: where they end, and what they lead to."""

import re

from trunkline.core.media import MediaKind

DATA_URL = re.compile(r"data:(?:image|video)/[\w.+-]+(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]+", re.IGNORECASE)
"""Inline media."""
BARE = re.compile(r"https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]{1,4000}")
"""A link in running text: ASCII alone, so that no CJK sign is taken for a part of it; `clean` cuts its end."""
MARKDOWN_IMAGE = re.compile(
    r"!\[([^\[\]\n]{0,2000})\]\(\s{0,9}<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*){0,9})>?(?:\s+\"[^\"\n]*\")?\s{0,9}\)"
)
HTML_IMAGE = re.compile(r"<img\b[^<>]{0,2000}?\bsrc\s*=\s*[\"']([^\"'\s>]+)[\"'][^<>]{0,2000}>", re.IGNORECASE)
_FILE = re.compile(r"\.(?:png|jpe?g|webp|gif|bmp|avif)\Z", re.IGNORECASE)
_OWN = re.compile(r"/v1/media/(img|vid|cov)_[0-9a-f]{24}\Z")
_PICTURE = re.compile(r"\.(?:png|jpe?g|webp|gif|bmp|avif)(?:[?#!@]|$)|/images?/|/img/", re.IGNORECASE)
_FILM = re.compile(r"\.(?:mp4|webm|mov|m4v|mkv|avi)(?:[?#!@]|$)|/videos?/", re.IGNORECASE)
_SURE = re.compile(
    r"\.(?:png|jpe?g|webp|gif|bmp|avif|mp4|webm|mov|m4v|mkv|avi)\Z|/(?:image|video)/[0-9a-f]{32,128}\Z", re.IGNORECASE
)
_TRAILING = ".,;:!?'*_~"
_PAIRS = {")": "(", "]": "["}


def clean(link: str) -> str:
    """Cut what follows a bare link: punctuation, and brackets that it does not open itself."""
    for mark, opening in _PAIRS.items():
        depth = 0
        for at, sign in enumerate(link):
            depth += (sign == opening) - (sign == mark)
            if depth < 0:
                link = link[:at]
                break
    return link.rstrip(_TRAILING)


def is_own(link: str) -> bool:
    """Tell whether a link has the form of ours to a picture."""
    found = _OWN.search(link.partition("?")[0])
    return found is not None and found[1] == "img"


def names_picture(link: str) -> bool:
    """Tell whether a link ends as pictures' names do, or is one of ours."""
    return is_own(link) or _FILE.search(link.partition("?")[0]) is not None


def is_file(link: str) -> bool:
    """Tell whether a link can lead to nothing but a picture or a film: by its ending, or by a hash for a name."""
    path = re.split(r"[?#!@]", link[:4096], maxsplit=1)[0]
    return link[:5].lower() == "data:" or is_own(link) or _SURE.search(path) is not None


def kind_of(link: str) -> MediaKind | None:
    """Tell by a link's own words whether it leads to a film, a cover or a picture; None: it does not say."""
    head = link[:64].lower()
    if head.startswith("data:"):
        return "video" if head.startswith("data:video/") else "image"
    own = _OWN.search(link.partition("?")[0])
    if own is not None:
        return "image" if own[1] == "img" else "video" if own[1] == "vid" else "cover"
    path = "/" + link.partition("//")[2].partition("/")[2]
    if _FILM.search(path):
        return "video"
    return "image" if _PICTURE.search(path) else None
