"""Media in the text of an answer: told from words, pages and code, each once."""

from typing import Any

import pytest

from trunkline.core.media import MediaKind
from trunkline.wire.media_text import read_media_text

POE = "https://pfst.cf2.poecdn.net/base/image/" + "f3" * 32 + "?w=1024&h=1024"
A, B, FILM, COVER = (
    "https://x.example/a.png",
    "https://x.example/b.webp",
    "https://x.example/f.mp4?s=1",
    "https://x.example/c_0.jpeg",
)
DATA = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("text", "kind", "words", "media"),
    [
        (f"Here! ![image]({POE}){POE}", "image", "Here!", [("image", POE, "")]),
        (POE, "image", "", [("image", POE, "")]),
        ("https://x.example/p/7", "image", "", [("image", "https://x.example/p/7", "")]),
        ("https://x.example/p/7\n", "video", "", [("video", "https://x.example/p/7", "")]),
        (f"Look: ![image]({DATA}) nice?", "image", "Look: nice?", [("image", DATA, "")]),
        (DATA, "image", "", [("image", DATA, "")]),
        (f'![a]({A})\n\n![b](<{B}> "two")', "image", "", [("image", A, ""), ("image", B, "")]),
        (f'<img alt="x" src="{A}"/> so', "image", "so", [("image", A, "")]),
        (f"[![small]({B})]({A})", "image", "", [("image", B, "")]),
        (f"[![cover]({COVER})]({FILM})\n\n[video]({FILM})", "video", "", [("video", FILM, COVER)]),
        (f'<video src="{FILM}" controls>\n{FILM}\n</video>', "video", "", [("video", FILM, "")]),
        (
            f"[^1]: [封面]({COVER})\n\n[^2]: [视频]({FILM})\n\n[视频]({FILM})[^1][^2]\n\n[^1][^2]\n\n",
            "video",
            "",
            [("video", FILM, COVER)],
        ),
        ("[点击这里](https://x.example/task/7)", "video", "", [("video", "https://x.example/task/7", "")]),
        (
            "视频：https://v.example/a_(1).mp4?sig=a%2Fb&exp=1。（请保存）",
            "video",
            "视频：。（请保存）",
            [("video", "https://v.example/a_(1).mp4?sig=a%2Fb&exp=1", "")],
        ),
        (f"[page](https://x.example/p), ![a]({A})", "image", "[page](https://x.example/p),", [("image", A, "")]),
        ("see https://docs.example.com/start ok", "image", "see https://docs.example.com/start ok", []),
        (f"```md\n![x]({A})\n```", "image", f"```md\n![x]({A})\n```", []),
        (f"type `![x]({A})`", "image", f"type `![x]({A})`", []),
        ("<audio src='https://x.example/a.mp3'></audio>", "video", "<audio src='https://x.example/a.mp3'></audio>", []),
        (f"[预览]({B}) [play]({FILM})", "video", "", [("video", FILM, B)]),
        (f"![cover]({COVER}) [video](https://x.example/f)", "video", "", [("video", "https://x.example/f", COVER)]),
        (f"![cover]({COVER})", "video", "", [("image", COVER, "")]),
        ("no media", "image", "no media", []),
    ],
)  # fmt: skip
def test_media_and_words(text: str, kind: MediaKind, words: str, media: list[tuple[str, str, str]]) -> None:
    read = read_media_text(text, kind)
    found = [(one.media.kind, one.media.url, one.media.cover_url) for one in read.media]
    assert (read.words, found) == (words, media)


LONG = "data:image/png;base64," + "iVBORw0KGgo" * 1000
OTHER = "data:image/webp;base64," + "UklGRqgKAABX" * 1000


@pytest.mark.parametrize(
    ("text", "words", "urls"),
    [
        (f"Here: ![image]({LONG}) nice?", "Here: nice?", [LONG]),
        (f"![image]({LONG})\n\n![image]({OTHER})", "", [LONG, OTHER]),
        (f"![image]({LONG}){LONG}", "", [LONG]),
        (f'<img src="{LONG}" alt="x"> {OTHER}', "", [LONG, OTHER]),
        (f"图：{LONG}。好", "图：。好", [LONG]),
        (f"**{LONG}**", "****", [LONG]),
        (f"```\n{LONG}\n```", f"```\n{LONG}\n```", []),
    ],
)
def test_long_inline_data_are_read_as_short_ones_are(text: str, words: str, urls: list[str]) -> None:
    read = read_media_text(text, "image")
    assert [one.media.url for one in read.media] == urls
    assert read.words == words
    assert all(one.media.url in text[one.start : one.end] for one in read.media)


HOSTILE = (
    *(LONG[:22] * 100_000, (LONG[:22] + " ") * 100_000, (LONG[:22] + "。") * 100_000),
    *("[![" * 100_000, "![" + "a" * 300_000, "<img " * 100_000, "[^1]: [" * 50_000, "https://" * 50_000),
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_take_linear_time(hostile: Any) -> None:
    assert len(read_media_text(hostile, "image").words) <= len(hostile)
