"""Pictures and films in the text of an answer: Markdown, HTML, footnotes, data URLs, bare links (wire.md section 9)."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from trunkline.core.media import Media, MediaKind
from trunkline.wire.links import clean, is_file, kind_of

_URL = r"(?:data:[^\s()<>\"']+|https?://[^\s()<>\"']+(?:\([^\s()<>]{0,200}\)[^\s()<>\"']*){0,9})"
_TAIL = r"(?:\s{1,9}\"[^\"\n]{0,500}\")?\s{0,9}"
_FOUND = re.compile(
    rf"\[!\[(?P<cover_alt>[^\[\]\n]{{0,500}})\]\(\s{{0,9}}<?(?P<cover>{_URL})>?{_TAIL}\)\s{{0,9}}\]"
    rf"\(\s{{0,9}}<?(?P<covered>{_URL})>?{_TAIL}\)"
    rf"|!\[(?P<alt>[^\[\]\n]{{0,2000}})\]\(\s{{0,9}}<?(?P<picture>{_URL})>?{_TAIL}\)"
    rf"|(?:\[\^\w{{1,20}}\]:\s{{0,9}})?\[(?P<label>[^\[\]\n]{{0,500}})\]\(\s{{0,9}}<?(?P<link>{_URL})>?{_TAIL}\)"
    rf"|\[\^\w{{1,20}}\]:\s{{0,9}}(?P<note>{_URL})"
    r"|<(?P<tag>img|video|source|audio)\b[^<>]{0,2000}?\bsrc\s{0,3}=\s{0,3}[\"'](?P<src>[^\"'\s>]+)[\"'][^<>]{0,2000}>"
    r"(?:\s{0,9}(?P<inner>https?://[^\s<>]{1,4000})?\s{0,9}</(?:video|audio)>)?"
    r"|(?P<inline>data:(?:image|video)/[\w.+-]{1,60}(?:;[\w=.+-]{1,60}){0,5};base64,[A-Za-z0-9+/=_-]+)"
    r"|(?P<bare>https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]{1,4000})",
    re.IGNORECASE,
)
_INLINE = re.compile(r"data:(?:image|video)/[\w.+-]{1,60}(?:;[\w=.+-]{1,60}){0,5};base64,", re.IGNORECASE)
_SIGNS = (")", "(", '"', "'", "<", ">", "`", " ", "\n", "\r", "\t", "]", "*", ",", "|")
_WIDE = re.compile(r"[^\x00-\x7f]")
_LONG = 4096
"""Inline data from this length on are not read by patterns, which take some 10 ms a megabyte."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,2000}`", re.DOTALL)
_NOT_A_LINK = re.compile(r"\[[^\[\]\n]{0,200}\]\((?!https?:|data:)[^)\n]{0,4000}\)[^\S\n]*(?:🎉)*")
_MARKS = re.compile(r"(?:\[\^\w{1,20}\])+(?!:)")
_COVERS = frozenset({"cover", "封面", "poster", "thumbnail", "preview", "预览图"})
_FILMS = frozenset({"video", "视频", "film", "movie", "watch", "play"})
_WORDS = re.compile(
    r"video|视频|image|picture|图片|图像|download|下载|点击|click|view|open|result|结果|preview|预览", re.IGNORECASE
)


class Found(Struct, frozen=True):
    """A medium, where its mark-up stands, and whether it can be nothing else."""

    media: Media
    start: int
    end: int
    sure: bool = True


class Read(Struct, frozen=True):
    """A text without the mark-up of its media; these in order, with their place in the text as it was."""

    words: str
    media: tuple[Found, ...] = ()


def read_media_text(text: str, kind: MediaKind) -> Read:
    """Tell the media of an answer by a model of this kind from its words. Code is left alone, links to pages too."""
    text, cuts = _without_data(text)
    found = list(_found(text, kind))
    certain = [one for one in found if one.sure] or found
    whole = text.strip()
    if not certain and whole.startswith(("http://", "https://")) and clean(whole) == whole:
        certain = [Found(Media(kind, url=whole), 0, len(text))]
    words = _cut(text, [(one.start, one.end) for one in certain])
    if certain:
        words = _NOT_A_LINK.sub("", _MARKS.sub("", words))
        words = re.sub(r"[ \t]+(?=\n|\Z)", "", re.sub(r"[ \t]{2,}", " ", words))
    for cut in cuts:  # what stands in code, say
        words = words.replace(cut.mark, cut.url)
    media = tuple(_each_once(certain, kind))
    return Read(re.sub(r"\n{3,}", "\n\n", words).strip(), tuple(_restored(media, cuts)) if cuts else media)


class _Cut(Struct, frozen=True):
    """Long inline data, what stands in the text for it, and where."""

    url: str
    mark: str
    start: int


def _without_data(text: str) -> tuple[str, list[_Cut]]:
    """Put short marks in place of long inline data; the same data get the same mark."""
    if len(text) <= _LONG:
        return text, []
    cuts: list[_Cut] = []
    parts: list[str] = []
    begun = length = at = 0
    ends = _Ends(text)
    while (head := _INLINE.search(text, at)) is not None:
        at = ends.after(head.end())
        if at - head.start() <= _LONG:
            continue
        url = text[head.start() : at]
        mark = next((cut.mark for cut in cuts if cut.url == url), f"{head[0]}trunkline{len(cuts)}")
        length += head.start() - begun
        cuts.append(_Cut(url, mark, length))
        parts += (text[begun : head.start()], mark)
        length += len(mark)
        begun = at
    return "".join([*parts, text[begun:]]) if cuts else text, cuts


class _Ends:
    """Finds where inline data end: by the signs that cannot be in them, each looked for but once in any place."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = dict.fromkeys(_SIGNS, 0)
        self._wide = 0 if not text.isascii() else len(text)

    def after(self, start: int) -> int:
        end = len(self._text)
        for sign, known in self._next.items():
            if known < end:
                found = self._text.find(sign, max(start, known), end)
                self._next[sign] = end = found if found >= 0 else end
        if self._wide < end:
            wide = _WIDE.search(self._text, max(start, self._wide), end)
            self._wide = end = wide.start() if wide else end
        return max(end, start)


def _restored(media: tuple[Found, ...], cuts: list[_Cut]) -> Iterator[Found]:
    """Put long data back, and give each place as it was in the whole text."""
    urls = {cut.mark: cut.url for cut in cuts}
    for one in media:
        start, end = (
            at + sum(len(cut.url) - len(cut.mark) for cut in cuts if cut.start < at) for at in (one.start, one.end)
        )
        medium = one.media
        if medium.url in urls or medium.cover_url in urls:
            url, cover_url = (urls.get(link, link) for link in (medium.url, medium.cover_url))
            medium = replace(medium, url=url, cover_url=cover_url)
        yield Found(medium, start, end, one.sure)


def _found(text: str, kind: MediaKind) -> Iterator[Found]:
    code = [match.span() for match in _CODE.finditer(text)] if "`" in text else []
    for match in _FOUND.finditer(text):
        if any(start <= match.start() < end for start, end in code):
            continue
        one = _read(match, kind)
        if one is not None:
            yield one


def _read(match: re.Match[str], kind: MediaKind) -> Found | None:
    start, end = match.span()
    if link := match["covered"]:
        film = kind_of(link) == "video" or (kind == "video" and kind_of(link) is None)
        medium = Media("video", url=link, cover_url=match["cover"]) if film else Media("image", url=match["cover"])
        return Found(medium, start, end)
    if link := match["picture"]:
        return Found(_media(link, match["alt"], kind, "image"), start, end)
    if (link := match["link"]) or (link := match["note"]):
        label = match["label"] or ""
        said = kind_of(link) or (None if not _WORDS.search(label) else kind)
        sure = is_file(link) or label.strip().lower() in _FILMS
        return None if said is None else Found(_media(link, label, kind, said), start, end, sure)
    if link := match["src"]:
        film = match["tag"].lower() in {"video", "source"}
        return (
            None
            if match["tag"].lower() == "audio"
            else Found(Media("video" if film else "image", url=link), start, end)
        )
    if link := match["inline"]:
        return Found(Media(kind_of(link) or kind, url=link), start, end)
    link = clean(match["bare"])
    said = kind_of(link)
    return Found(Media(said, url=link), start, start + len(link), is_file(link)) if said else None


def _media(link: str, label: str, kind: MediaKind, said: MediaKind) -> Media:
    """Tell cover, picture and film apart: by the link, by the label, by what the model makes."""
    word = label.strip().lower()
    own = kind_of(link)
    if kind == "video" and own != "video" and word in _COVERS:
        return Media("cover", url=link)
    if own is None and word in _FILMS:
        return Media("video", url=link)
    return Media(own or said, url=link)


def _each_once(found: list[Found], kind: MediaKind) -> Iterator[Found]:
    """Give each link once; a cover, or for films any picture beside them, goes with the film."""
    films = [one for one in found if one.media.kind == "video"]
    covers = [one.media.url for one in found if one.media.kind == "cover"]
    if kind == "video" and films and not covers:
        covers = [one.media.url for one in found if one.media.kind == "image"]
    seen: set[str] = set()
    for one in found:
        media = one.media
        beside = media.kind == "cover" or (kind == "video" and media.kind == "image")
        if media.url in seen or (beside and films):
            continue
        seen.add(media.url)
        if media.kind == "cover":
            media = Media("image", url=media.url)
        if media.kind == "video" and not media.cover_url and covers:
            media = Media("video", url=media.url, cover_url=covers[0])
        yield Found(media, one.start, one.end, one.sure)


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])
