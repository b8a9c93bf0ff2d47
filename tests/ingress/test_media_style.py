"""The six styles, as the contract writes them."""

import pytest

from trunkline.core.route import MediaStyle
from trunkline.ingress.media_style import Shown, content, objects

PICTURE = Shown(film=False, url="https://g/p", inline="data:image/png;base64,QUJD")
FILM = Shown(film=True, url="https://g/f", cover_url="https://g/c")
LINK = "[![cover](https://g/c)](https://g/f)\n\n[video](https://g/f)"


@pytest.mark.parametrize(
    ("style", "picture", "film"),
    [
        ("bare", "https://g/p", "https://g/f"),
        (
            "html",
            '<img src="https://g/p" alt="image">',
            '<video src="https://g/f" controls>\nhttps://g/f\n</video>',
        ),
        ("images", "", ""),
        ("data_url", "![image](data:image/png;base64,QUJD)", LINK),
    ],
)
def test_each_style(style: MediaStyle, picture: str, film: str) -> None:
    assert content(style, [PICTURE]) == picture
    assert content(style, [FILM]) == film


def test_pictures_and_films_by_link() -> None:
    picture, bare_film = Shown(film=False, url="https://g/p"), Shown(film=True, url="https://g/f")
    assert content("markdown", [picture]) == content("footnotes", [picture]) == "![image](https://g/p)"
    assert content("markdown", [FILM]) == LINK
    assert content("markdown", [bare_film]) == "[video](https://g/f)"
    assert content("markdown", [picture, bare_film]) == "![image](https://g/p)\n\n[video](https://g/f)"


def test_footnotes_are_numbered_through() -> None:
    assert content("footnotes", [FILM, FILM]) == (
        "[^1]: [cover](https://g/c)\n\n[^2]: [video](https://g/f)\n\n[video](https://g/f)[^1][^2]\n\n"
        "[^3]: [cover](https://g/c)\n\n[^4]: [video](https://g/f)\n\n[video](https://g/f)[^3][^4]"
    )


def test_objects_are_counted_by_kind() -> None:
    assert objects([PICTURE, FILM, PICTURE]) == {
        "images": [
            {"type": "image_url", "index": 0, "image_url": {"url": "https://g/p"}},
            {"type": "image_url", "index": 1, "image_url": {"url": "https://g/p"}},
        ],
        "videos": [{"type": "video_url", "index": 0, "video_url": {"url": "https://g/f"}, "cover_url": "https://g/c"}],
    }
