"""What a picture and a film are both made of: a stack of layers, each an SVG fragment that may move."""

import random
from collections.abc import Callable
from typing import NamedTuple


class Pose(NamedTuple):
    """Where a layer is at one moment: moved by so many pixels, turned by degrees, scaled."""

    dx: float = 0
    dy: float = 0
    angle: float = 0
    scale: float = 1


Motion = Callable[[float], Pose]
"""Seconds → pose. A film runs from -T/2 to T/2; a picture is its middle, t = 0."""


def still(_t: float) -> Pose:
    """Do not move."""
    return Pose()


class Layer(NamedTuple):
    """An SVG fragment in pixels of the canvas, and the box (x, y, width, height) outside of which nothing is drawn."""

    svg: str
    box: tuple[int, int, int, int]
    motion: Motion = still
    tinted: float = 1
    """How far the light of the scene colours it: 0 not at all, 1 wholly."""


class Canvas(NamedTuple):
    """The sizes that all painting goes by, in pixels; `margin` is how far left and right the world goes on."""

    width: int
    height: int
    margin: int
    seconds: float
    random: random.Random

    @property
    def unit(self) -> float:
        """The short side: what things are scaled by."""
        return min(self.width, self.height)

    @property
    def horizon(self) -> float:
        """Where sky and ground meet; high pictures show no more than a fair piece of ground."""
        return max(0.6 * self.height, self.height - 0.75 * self.width)

    def box(self, top: float = 0, bottom: float | None = None) -> tuple[int, int, int, int]:
        """Take the whole width of the world from `top` to `bottom` (default: to the canvas's end)."""
        end = self.height if bottom is None else int(bottom) + 1
        return -self.margin, int(top), self.width + 2 * self.margin, max(1, end - int(top))

    def pan(self, depth: float) -> Motion:
        """Let the camera go past: the nearer (1), the faster."""
        reach = 2 * self.margin * depth / max(self.seconds, 0.1)
        return lambda t: Pose(dx=reach * t)


def tag(name: str, *inside: str, **attributes: str | float) -> str:
    """Write one SVG element; `stroke_width=2` becomes `stroke-width="2"`, numbers get one decimal."""
    written = "".join(f' {key.replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}" if abs(value) >= 1 else f"{value:.4f}"


def oval(x: float, y: float, rx: float, ry: float | None = None, **attributes: str | float) -> str:
    """Write an ellipse (a circle without `ry`)."""
    return tag("ellipse", cx=x, cy=y, rx=rx, ry=rx if ry is None else ry, **attributes)


def rect(x: float, y: float, width: float, height: float, **attributes: str | float) -> str:
    """Write a rectangle."""
    return tag("rect", x=x, y=y, width=width, height=height, **attributes)


def line(path: str, colour: str, width: float, **attributes: str | float) -> str:
    """Write a stroke with round ends."""
    return tag("path", d=path, stroke=colour, stroke_width=width, stroke_linecap="round", fill="none", **attributes)


def gradient(name: str, *colours: str, kind: str = "linearGradient") -> str:
    """Define a fill from top to bottom (or from the middle outwards), to be used as `url(#name)`."""
    stops = (
        tag("stop", offset=f"{at / (len(colours) - 1):.2f}", stop_color=colour) for at, colour in enumerate(colours)
    )
    return tag("defs", tag(kind, *stops, id=name, **({"x2": "0", "y2": "1"} if kind == "linearGradient" else {})))
