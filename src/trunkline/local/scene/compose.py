"""The whole picture: backdrop, subjects, weather and lettering as layers, and one moment of them as pixels."""

import base64
import math
import random
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from PIL import Image, ImageColor, ImageFont

from trunkline.local.scene.art import FONT, Art, draw, placed, raster
from trunkline.local.scene.backdrop import paint, tints
from trunkline.local.scene.layers import Canvas, Layer, Motion, Pose, gradient, line, oval, rect, still, tag
from trunkline.local.scene.prompt import AFLOAT, COSMIC, DRIVING, MOST, SWIMMING, Scene, Subject, alive, is_in

_AIRBORNE = set("🎈🪁🌈☁🦋🐝🚁✈🛩🛸🚀🛰🌟⭐🦇🎆🎇🕊🪂🌍🌎🌏🪐🦅❤💙💚💛💜")
_SMALL = set("🐁🐀🐭🐹🐦🐤🐥🐣🦋🐝🐞🐜🐌🐛🕷🦎🌷🌹🌻🌼🌺🌸🍄🐸🐇🐰🦔🐢🎈☕📖🎁⚽🏀🐿👶🦀🐟🐠🌱⭐🐚☂🕊🪁❤")
_LARGE = set("🐘🦒🏠🏡🏰🏯⛪🏫🏥🏢🌳🌲🌴🎄🦖🦕🐉🚌🚂🚒🚢🐋🐳🎡🎢⛺🗽🗼🛖🚆🦣🚜")
_FAST = {"run", "gallop"}
_GOING = {*_FAST, "walk", "ride", "jump"}


class Sprite(NamedTuple):
    """A layer rasterised: the pixels, and where their left upper corner is at rest."""

    image: Image.Image
    x: int
    y: int
    motion: Motion

    def lay(self, frame: Image.Image, t: float) -> None:
        """Lay it over the frame (RGBA) as it is at `t` seconds."""
        image, x, y, pose = self.image, self.x, self.y, self.motion(t)
        if abs(pose.scale - 1) > 0.002:  # its middle and its foot stay where they are
            image = image.resize((round(image.width * pose.scale), round(image.height * pose.scale)))
            x, y = x - (image.width - self.image.width) // 2, y - (image.height - self.image.height)
        if abs(pose.angle) > 0.05:
            image = image.rotate(pose.angle, Image.Resampling.BICUBIC)
        x, y = x + round(pose.dx), y + round(pose.dy)
        seen = (max(0, -x), max(0, -y), min(image.width, frame.width - x), min(image.height, frame.height - y))
        if seen[2] > seen[0] and seen[3] > seen[1]:
            frame.alpha_composite(image, (max(0, x), max(0, y)), seen)


class Stage(NamedTuple):
    """A scene on a canvas."""

    scene: Scene
    canvas: Canvas

    @property
    def travels(self) -> bool:
        """Whether somebody runs or walks: the camera goes with them, and the world passes by."""
        return any(one.action in _GOING for one in self.scene.subjects)


def sprites(scene: Scene, size: tuple[int, int], seed: int, seconds: float = 0, given: bytes = b"") -> Iterator[Sprite]:
    """Draw the layers from back to front; the same arguments give the same pixels.

    `given` (PNG or JPEG, of that size) stands in for the painted background.
    """
    width, height = size
    travels = Stage(scene, Canvas(*size, 0, 0, random.Random())).travels  # noqa: S311 - chooses nothing secret
    margin = int(width * (min(0.4, 0.11 * seconds) if travels else 0.03)) if seconds and not given else 0
    canvas = Canvas(width, height, margin, seconds, random.Random(seed))  # noqa: S311 - a drawing
    stage = Stage(scene, canvas)
    layers = [_photo(given, canvas)] if given else paint(scene, canvas)
    for layer in [*layers, *_subjects(stage), *_weather(stage), *_lettering(stage)]:
        image = raster(layer.svg, layer.box, layer.box[2], layer.box[3])
        for colour, strength in tints(scene) if layer.tinted else []:
            alpha, light = image.getchannel("A"), Image.new("RGBA", image.size, ImageColor.getrgb(colour))
            image = Image.blend(image, light, strength * layer.tinted)
            image.putalpha(alpha)
        yield Sprite(image, layer.box[0], layer.box[1], layer.motion)


def picture(scene: Scene, size: tuple[int, int], seed: int, given: bytes = b"") -> Image.Image:
    """Draw the scene as one picture, RGB."""
    frame = Image.new("RGBA", size, "#FFFFFF")
    for sprite in sprites(scene, size, seed, given=given):
        sprite.lay(frame, 0)
    return frame.convert("RGB")


def _photo(given: bytes, canvas: Canvas) -> Layer:
    kind = "png" if given.startswith(b"\x89PNG") else "jpeg"
    href = f"data:image/{kind};base64,{base64.b64encode(given).decode()}"
    svg = tag("image", width=canvas.width, height=canvas.height, href=href)
    return Layer(svg, (0, 0, canvas.width, canvas.height), tinted=0)


def _subjects(stage: Stage) -> Iterator[Layer]:
    """Every subject at its place, those in the air behind those on the ground."""
    aloft, below = list[tuple[Subject, Art]](), list[tuple[Subject, Art]]()
    for one in stage.scene.subjects:
        things = [(one, draw(one, stage.canvas.random.randrange(6))) for _ in range(min(one.count, MOST))]
        (aloft if _floats(one, stage.scene.place) else below).extend(things)
    yield from _rows(aloft, stage, aloft=True)
    yield from _rows(below, stage, aloft=False)


def _floats(subject: Subject, place: str) -> bool:
    if is_in(subject.symbol, _AIRBORNE) or subject.action == "fly" or place == "sky":
        return True
    if place == "underwater":
        return not is_in(subject.symbol, set("🦀🐚🪸🦞"))
    return place == "space" and (alive(subject.symbol) or is_in(subject.symbol, COSMIC))


def _rows(things: list[tuple[Subject, Art]], stage: Stage, *, aloft: bool) -> Iterator[Layer]:
    """Up to three rows from far to near, evenly spaced, so that nothing is cut off and little is hidden."""
    if not things:
        return
    canvas = stage.canvas
    things = sorted(things, key=lambda thing: -_weight(thing[0]))
    top, bottom = canvas.horizon + 0.14 * canvas.unit, canvas.height - 0.07 * canvas.unit
    if aloft:
        free = stage.scene.place in {"sky", "underwater", "space"}
        top, bottom = 0.08 * canvas.height, (0.9 if free else 0.62) * canvas.height
    rows = max(1, min(3, round(math.sqrt(len(things) * (bottom - top) / canvas.width * (1.6 if aloft else 4)))))
    rows = 1 if len(things) < 5 and not aloft else rows
    per_row = math.ceil(len(things) / rows)
    for row in range(rows):
        share = (row + 1) / rows
        foot = top + (bottom - top) * (share if aloft or rows > 1 else 0.82)
        room = (
            0.92 * (bottom - top) / rows if aloft else canvas.unit * (0.64 - 0.12 * rows + 0.12) * (0.62 + 0.38 * share)
        )
        line_up = things[row * per_row : (row + 1) * per_row]
        cell = canvas.width * 0.94 / max(1, len(line_up) + (0.5 if rows > 1 else 0))  # rows stand in each other's gaps
        for column, (one, art) in enumerate(line_up):
            lean = 0.2 * art.height if one.action in _FAST else 0
            scale = min(room * _weight(one) / max(art.height, art.width * 0.85), cell * 0.92 / (art.width + lean))
            middle = canvas.width * 0.03 + cell * (column + 0.5 + row % 2 * 0.5) + lean * scale / 2
            spare = min(cell * 0.3, cell * 0.94 - (art.width + lean) * scale)
            middle += canvas.random.uniform(-0.5, 0.5) * max(0, spare)
            lift = canvas.random.uniform(0, 0.35) * max(0, room - art.height * scale) if aloft else 0
            yield from _stand(one, art, (middle, foot - lift, scale), stage, aloft=aloft)


def _weight(subject: Subject) -> float:
    return 0.55 if is_in(subject.symbol, _SMALL) else 1.0 if is_in(subject.symbol, _LARGE) else 0.8


def _stand(one: Subject, art: Art, spot: tuple[float, float, float], stage: Stage, *, aloft: bool) -> Iterator[Layer]:
    """One subject with its shadow, its dust or the water before it, and how they move."""
    x, foot, scale = spot
    width, height = art.width * scale, art.height * scale
    fast, afloat = one.action in _FAST, stage.scene.place == "sea" and not aloft
    along = alive(one.symbol) or aloft or is_in(one.symbol, DRIVING | AFLOAT)
    world = still if along and stage.travels else stage.canvas.pan(0.4 if aloft else 1)
    own = _motion(one, stage.canvas, height, aloft=aloft, afloat=afloat)
    svg = placed(art, scale, x, foot)
    if fast:  # leaning forward, which is to the left in this art
        svg = tag("g", svg, transform=f"translate({x} {foot}) skewX(11) translate({-x} {-foot})")
        yield _dust(x + width / 2, foot, height)
    pad = int((0.3 if fast else 0.16) * max(width, height)) + 2
    box = (int(x - width / 2) - pad, int(foot - height) - pad, int(width) + 2 * pad, int(height) + 2 * pad)
    strip = (box[0], int(foot - width * 0.1) - 2, box[2], int(width * 0.2) + 6)
    if not aloft and not afloat:
        shade = oval(x, foot - 0.01 * height, width * 0.46, max(3, width * 0.07), fill="#1B2433", opacity=0.28)
        yield Layer(shade, strip, world)
    yield Layer(svg, box, lambda t: own(t)._replace(dx=own(t).dx + world(t).dx), 0.5)
    if afloat:  # little waves hide the straight lower edge
        half, thick = width * 0.6, 0.016 * stage.canvas.unit
        path = f"M{x - half} {foot - thick}q{half / 2} {-thick} {half} 0t{half} 0M{x - half / 2} {foot + thick}h{half}"
        yield Layer(line(path, "#DDF2FF", thick / 2, opacity=0.8), strip, world)


def _motion(one: Subject, canvas: Canvas, height: float, *, aloft: bool, afloat: bool) -> Motion:
    """How a subject moves by itself: gaits, floating, swimming, breathing."""
    phase, wave = canvas.random.uniform(0, 6.28), math.sin
    if one.action in {*_FAST, "jump"}:
        return lambda t: Pose(dy=-0.09 * height * abs(math.cos(6 * t + phase * 0.05)), angle=4 * wave(6 * t))
    if one.action in _GOING:
        return lambda t: Pose(dy=-0.015 * height * abs(wave(5 * t + phase)), angle=2.5 * wave(5 * t + phase))
    if one.action == "dance":
        return lambda t: Pose(0.05 * height * wave(3 * t), -0.04 * height * abs(wave(6 * t)), 7 * wave(3 * t))
    if aloft:
        go = -0.05 * canvas.width if is_in(one.symbol, SWIMMING) or one.action == "fly" else 0
        return lambda t: Pose(go * t, 0.05 * height * (wave(1.7 * t + phase) - wave(phase)), 3 * wave(1.3 * t))
    if afloat:
        return lambda t: Pose(dy=0.025 * height * wave(1.8 * t), angle=3.5 * wave(1.4 * t))
    return (lambda t: Pose(scale=1 + 0.018 * wave(2.6 * t + phase))) if alive(one.symbol) else still


def _dust(x: float, foot: float, height: float) -> Layer:
    """Little clouds behind the feet of what runs, and lines of speed."""
    puffs = ((-0.04, 0.06, 0.8), (0.08, 0.075, 0.65), (0.2, 0.05, 0.5), (0.3, 0.03, 0.35))
    svg = "".join(
        oval(x + at * height, foot - r * height, r * height, fill="#FFF6E6", opacity=thin) for at, r, thin in puffs
    )
    speed = ((0.08, 0.72, 0.26), (0.13, 0.55, 0.18), (0.05, 0.38, 0.3))
    lines = "".join(f"M{x + at * height} {foot - high * height}h{long * height}" for at, high, long in speed)
    box = (int(x - 0.15 * height), int(foot - 0.9 * height), int(0.6 * height), int(0.95 * height))
    svg += line(lines, "#fff", 0.014 * height, opacity=0.75)
    return Layer(svg, box, lambda t: Pose(dx=0.03 * height * math.sin(9 * t)))


def _weather(stage: Stage) -> Iterator[Layer]:
    """Let fall or lie what is in the air; a sheet repeats after one tile, so that it can fall for ever."""
    canvas, weather = stage.canvas, stage.scene.weather
    tile, some = round(0.5 * canvas.unit), canvas.random.uniform
    if stage.scene.place in {"room", "underwater", "space"}:
        return
    if weather in {"rain", "storm"}:
        drops = "".join(f"M{some(0, tile)} {some(0, tile)}l{-tile * 0.02} {tile * 0.1}" for _ in range(44))
        yield _falling(line(drops, "#E6F1FA", tile * 0.006, opacity=0.62), canvas, tile, 2.6, -0.5)
    elif weather == "snow":
        for size, speed in ((0.006, 0.22), (0.011, 0.42)):
            flakes = (oval(some(0, tile), some(0, tile), tile * size, fill="#fff", opacity=0.92) for _ in range(16))
            yield _falling("".join(flakes), canvas, tile, speed, 0.08)
    elif weather == "fog":
        veil = gradient("fog", "#F2F5F700", "#F2F5F7CC", "#F2F5F766")
        yield Layer(
            veil + rect(0, 0, canvas.width, canvas.height, fill="url(#fog)"),
            (0, 0, canvas.width, canvas.height),
            tinted=0,
        )


def _falling(svg: str, canvas: Canvas, tile: int, speed: float, drift: float) -> Layer:
    """`speed` and `drift` in tiles a second, down and to the right."""
    box = (-tile, -tile, canvas.width + tile, canvas.height + tile)
    sheet = tag("defs", tag("pattern", svg, id="tile", width=tile, height=tile, patternUnits="userSpaceOnUse"))
    fall: Motion = lambda t: Pose(dx=(drift * t * tile) % tile, dy=(speed * t * tile) % tile)  # noqa: E731
    return Layer(sheet + rect(*box, fill="url(#tile)"), box, fall, tinted=0)


def _lettering(stage: Stage) -> Iterator[Layer]:
    """Letter the words that could not be drawn: a ribbon below, or a big sign when there is nothing else to see."""
    scene, canvas = stage
    if not scene.unknown:
        return
    alone = not scene.subjects
    size, font = canvas.unit * (0.075 if alone else 0.036), ImageFont.truetype(FONT, 100)
    room = canvas.width * (0.7 if alone else 0.86) / size * 100
    lines = _wrapped(" · ".join(scene.unknown)[:160], font, room)[: 5 if alone else 2]
    wide, high = max(map(font.getlength, lines)) * size / 100 + size * 1.6, size * (1.35 * len(lines) + 0.7)
    middle, y = canvas.width / 2, canvas.height * 0.34 if alone else canvas.height - high - size * 0.6
    post = rect(middle - size * 0.3, y, size * 0.6, high + size * 3, fill="#9A6B43") if alone else ""
    back = {"fill": "#FFF8E7"} if alone else {"fill": "#14213D", "opacity": "0.62"}
    svg = post + rect(middle - wide / 2, y, wide, high, rx=size * 0.5, **back)
    look = {"font_family": "Noto Sans SC", "text_anchor": "middle", "fill": "#5B4636" if alone else "#FFFFFF"}
    for number, words in enumerate(lines):
        svg += tag("text", escape(words), x=middle, y=y + size * (1.35 * number + 1.42), font_size=size, **look)
    yield Layer(svg, (0, 0, canvas.width, canvas.height), tinted=0)


def _wrapped(text: str, font: ImageFont.FreeTypeFont, room: float) -> list[str]:
    """Lines no longer than `room`; a word that is longer by itself is broken."""
    lines = [""]
    for word in text.split(" "):
        if font.getlength(f"{lines[-1]} {word}".strip()) <= room:
            lines[-1] = f"{lines[-1]} {word}".strip()
            continue
        lines += [""] if lines[-1] else []
        for letter in word:
            lines += [""] if font.getlength(lines[-1] + letter) > room else []
            lines[-1] += letter
    return lines
