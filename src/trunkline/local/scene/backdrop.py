"""The painted background: sky by time and weather, and the land of each place."""

import math
from collections.abc import Iterator

from trunkline.local.scene.art import draw, placed
from trunkline.local.scene.layers import Canvas, Layer, Motion, Pose, gradient, line, oval, rect, tag
from trunkline.local.scene.prompt import Scene, Subject

_SKIES = {
    "day": ("#4AA3EE", "#8CC8F7", "#E3F4FF"),
    "dawn": ("#7C9BDB", "#F2B8C6", "#FFE3B8"),
    "sunset": ("#46347F", "#E2607B", "#FFB45E"),
    "night": ("#0A1036", "#1C2A66", "#41528F"),
}
_GREY_SKY, _DARK_SKY = ("#66788C", "#8C9CAB", "#BCC8D1"), ("#0B1024", "#1E2740", "#3B4763")
_SUNS = {"day": "#FFE169", "dawn": "#FFF0C0", "sunset": "#FFDD8A", "night": "#F7F3DC"}
_TINTS = {
    "night": ("#0A1450", 0.4),
    "sunset": ("#FF6A2A", 0.13),
    "dawn": ("#FFAFA5", 0.1),
    "rain": ("#3C4C66", 0.16),
    "storm": ("#1F2A44", 0.3),
    "fog": ("#DDE3E8", 0.3),
}
_GROUNDS = {  # what is far, what is near, the ground's upper and lower colour
    "meadow": ("#8CC9A1", "#6DB36B", "#7CC35A", "#4E9A35"),
    "forest": ("#5F9E7E", "#3F7F52", "#5E9C4A", "#38702F"),
    "mountain": ("#9FB2CC", "#6FA27C", "#7DB862", "#4C8A3C"),
    "desert": ("#EBC58E", "#DFAE6B", "#F1CE8E", "#D9A45A"),
    "city": ("#A9B7CB", "#8493AD", "#77808C", "#565E69"),
    "beach": ("#7FB7DF", "#3F97D3", "#F7E2B0", "#E3BF7E"),
    "sea": ("#8FBBD9", "#3F97D3", "#17588F", "#17588F"),
    "space": ("#6A5B8F", "#574A7C", "#8E84A8", "#5C5379"),
    "snow": ("#D5E2EE", "#C2D4E6", "#F6FAFE", "#D3E1EE"),
}
_GROWING = {"meadow": "🌳", "mountain": "🌲", "forest": "🌲", "beach": "🌴", "desert": "🌵"}
_PUFFS = ((-1, 0.1, 0.62), (-0.2, -0.25, 0.9), (0.75, -0.02, 0.75), (0.1, 0.22, 1.0), (1.35, 0.22, 0.4))
_PETALS = ("#FFFFFF", "#FFD34D", "#FF9EC4", "#C9A7F5")


def tints(scene: Scene) -> list[tuple[str, float]]:
    """List the colours that lie over land and subjects, each with its strength: of the hour, of the weather."""
    inside = scene.place == "room"
    return [_TINTS[of] for of in (scene.time, scene.weather) if of in _TINTS and not inside]


def paint(scene: Scene, canvas: Canvas) -> list[Layer]:
    """Paint all that lies behind the subjects, from back to front."""
    match scene.place:
        case "room":
            return [_room(canvas)]
        case "underwater":
            return _underwater(canvas)
        case "sky":
            return [*_sky(scene, canvas), *_clouds(canvas, 3, "#FFFFFF", 1.0, (0.0, 0.65))]
        case _:
            return [*_sky(scene, canvas), *_land(scene, canvas)]


def _sky(scene: Scene, canvas: Canvas) -> list[Layer]:
    clear = scene.weather == "clear" or (scene.weather == "snow" and scene.time != "day")
    dark = scene.time == "night" or scene.weather == "storm"
    tones = _SKIES["night" if scene.place == "space" else scene.time] if clear else _DARK_SKY if dark else _GREY_SKY
    bottom = canvas.height if scene.place in {"sky", "space"} else canvas.horizon + 0.03 * canvas.unit
    whole = (0, 0, canvas.width, canvas.height)
    svg = gradient("sky", *tones) + rect(0, 0, canvas.width, bottom, fill="url(#sky)")
    if scene.place == "space":
        x, y, unit = 0.8 * canvas.width, 0.2 * canvas.height, canvas.unit
        svg += (
            _stars(canvas, 260)
            + gradient("planet", "#F3B27A", "#B5567A")
            + oval(x, y, 0.09 * unit, fill="url(#planet)")
        )
        svg += tag(
            "g",
            oval(x, y, 0.16 * unit, 0.03 * unit, fill="none", stroke="#F6DDBB", stroke_width=0.01 * unit),
            transform=f"rotate(-18 {x} {y})",
        )
        return [Layer(svg, whole, tinted=0)]
    svg += _stars(canvas, 110) if clear and scene.time == "night" else ""
    free = (0.0, 1.0) if not clear else (0.42, 1.0) if scene.time in {"dawn", "sunset"} else (0.0, 0.68)
    white, opacity = "#FFFFFF" if clear else "#CBD5DF", 0.45 if scene.time == "night" else 1.0
    light = _light(scene, canvas) if clear else []
    return [Layer(svg, whole, tinted=0), *light, *_clouds(canvas, 3 if clear else 7, white, opacity, free)]


def _stars(canvas: Canvas, count: int) -> str:
    some = canvas.random.uniform
    return "".join(
        oval(
            some(0, canvas.width),
            some(0, canvas.height),
            canvas.unit * some(0.0008, 0.0026),
            fill="#fff",
            opacity=some(0.4, 1),
        )
        for _ in range(count)
    )


def _light(scene: Scene, canvas: Canvas) -> list[Layer]:
    """Sun or moon, with a glow that breathes."""
    low, colour = scene.time in {"sunset", "dawn"}, _SUNS[scene.time]
    r = canvas.unit * (0.1 if low else 0.07)
    x = canvas.width * (0.24 if low else 0.82)
    y = canvas.horizon - r * 0.75 if low else max(0.16 * canvas.height, r * 1.6)
    disc = oval(x, y, r, fill=colour)
    if scene.time == "night":
        for dx, dy, size in ((-0.3, -0.2, 0.2), (0.35, 0.1, 0.14), (-0.05, 0.45, 0.17)):
            disc += oval(x + dx * r, y + dy * r, size * r, fill="#DCD6B8")
    reach = 3.4 * r
    box = (int(x - reach), int(y - reach), int(2 * reach), int(2 * reach))
    halo = gradient("halo", f"{colour}B0", f"{colour}00", kind="radialGradient") + oval(x, y, reach, fill="url(#halo)")
    breath = Layer(halo, box, lambda t: Pose(scale=1 + 0.06 * math.sin(2.2 * t)), tinted=0)
    return [breath, Layer(disc, box, tinted=0)]


def _clouds(canvas: Canvas, count: int, white: str, opacity: float, free: tuple[float, float]) -> list[Layer]:
    """Two sheets of clouds that drift at their own speeds; `free` is the share of the width that they keep to."""
    sheets, some = [], canvas.random.uniform
    for sheet in range(2):
        puffs = ""
        for number in range(sheet, count, 2):
            size, share = canvas.unit * some(0.06, 0.1), (number + 0.5 + some(-0.25, 0.25)) / count
            x, y = canvas.width * (free[0] + (free[1] - free[0]) * share), canvas.horizon * some(0.14, 0.42)
            puffs += "".join(oval(x + dx * size, y + dy * size, r * size, r * size * 0.72) for dx, dy, r in _PUFFS)
        speed = canvas.width * 0.008 * (1 + sheet)
        svg = tag("g", puffs, fill=white, opacity=opacity)
        sheets.append(Layer(svg, canvas.box(0, canvas.horizon), _drift(speed), tinted=0))
    return sheets


def _drift(speed: float) -> Motion:
    return lambda t: Pose(dx=speed * t)


def _land(scene: Scene, canvas: Canvas) -> Iterator[Layer]:
    """Paint what lies between the sky and the subjects."""
    snowy = scene.weather == "snow" and scene.place in {"meadow", "forest", "mountain", "desert"}
    far, near, above, below = _GROUNDS["snow" if snowy else scene.place]
    match scene.place:
        case "city":
            yield _skyline(scene, canvas, far, 0.42, 0.25)
            yield _skyline(scene, canvas, near, 0.28, 0.5)
        case "beach" | "sea":
            yield from _water(canvas, far, near, below)
        case "forest":
            yield _spikes(canvas, far, 0.27, 0.3, 0.3)
            yield _spikes(canvas, near, 0.4, 0.27, 0.5)
        case "mountain":
            yield _spikes(canvas, far, 0.42, 1.3, 0.2)
        case "meadow" | "desert":
            yield _hills(canvas, far, 0.25, 0.25)
    if scene.place in {"meadow", "desert", "mountain"}:
        yield _hills(canvas, near, 0.13, 0.5)
    if scene.place != "sea":
        yield _ground(scene, canvas, above, below)
        yield from _growing(scene, canvas)


def _hills(canvas: Canvas, colour: str, rise: float, depth: float, foot: float | None = None) -> Layer:
    """Paint a line of rounded hills."""
    left, _, width, _ = canvas.box()
    base, phase, points = foot or canvas.horizon, canvas.random.uniform(0, 6.28), f"M{left} {canvas.height}"
    for step in range(49):
        turn = phase + (4 - 6 * rise) * 3.14 * step / 48
        lift = rise * canvas.unit * (0.55 + 0.3 * math.sin(turn) + 0.15 * math.sin(2.3 * turn + 1))
        points += f"L{left + width * step / 48:.0f} {base - lift:.0f}"
    svg = tag("path", d=f"{points}V{canvas.height}Z", fill=colour)
    return Layer(svg, canvas.box(base - rise * canvas.unit), canvas.pan(depth))


def _spikes(canvas: Canvas, colour: str, tall: float, wide: float, depth: float) -> Layer:
    """Paint a row of triangles: firs, or with snow on top mountains when they are wide."""
    left, _, width, _ = canvas.box()
    svg, foot, x, high = "", canvas.horizon + 0.03 * canvas.unit, float(left), 0.0
    while x - high < left + width:
        high = tall * canvas.unit * canvas.random.uniform(0.6, 1)
        half = wide * high
        svg += tag("path", d=f"M{x - half} {foot}L{x} {foot - high}L{x + half} {foot}Z", fill=colour)
        if wide > 1:
            side, down = 0.26 * half, 0.26 * high
            cap = f"M{x} {foot - high}l{side} {down}l{-side} {down / 4}l{-side} {-down / 4}Z"
            svg += tag("path", d=cap, fill="#FBFDFF")
        x += half * (0.9 if wide > 1 else 0.55)
    return Layer(svg, canvas.box(foot - tall * canvas.unit, foot), canvas.pan(depth))


def _skyline(scene: Scene, canvas: Canvas, colour: str, tall: float, depth: float) -> Layer:
    left, _, width, _ = canvas.box()
    svg, x, pane = "", float(left), canvas.unit * 0.013
    lit = "#FFE08A" if scene.time in {"night", "sunset"} else "#DCEBF7"
    while x < left + width:
        wide, high = (
            canvas.unit * canvas.random.uniform(0.08, 0.15),
            canvas.unit * canvas.random.uniform(tall * 0.4, tall),
        )
        top = canvas.horizon - high
        svg += rect(x, top, wide * 0.97, high + 4, fill=colour)
        windows = [(column, row) for row in range(int(high / pane / 2.6)) for column in range(int(wide / pane / 2.4))]
        for column, row in windows:
            if canvas.random.random() < 0.6:
                svg += rect(x + pane * (0.8 + 2.2 * column), top + pane * (1 + 2.4 * row), pane, pane * 1.3, fill=lit)
        x += wide
    return Layer(svg, canvas.box(canvas.horizon - tall * canvas.unit, canvas.horizon + 4), canvas.pan(depth))


def _water(canvas: Canvas, far: str, near: str, below: str) -> Iterator[Layer]:
    """Paint the sea from the horizon down (a strip, if sand is below it); its glints go to and fro."""
    left, _, width, _ = canvas.box()
    top, bottom = canvas.horizon, canvas.height if below == "#17588F" else canvas.horizon + 0.16 * canvas.unit
    svg = gradient("sea", far, near, below if below == "#17588F" else near)
    yield Layer(svg + rect(left, top, width, bottom - top, fill="url(#sea)"), canvas.box(top, bottom))
    glints = ""
    for _ in range(40 * width // canvas.width):
        x, near_by = canvas.random.uniform(left, left + width), canvas.random.random()
        size = canvas.unit * (0.01 + 0.035 * near_by)
        glints += (
            f"M{x:.0f} {top + 4 + near_by * (bottom - top - 8):.0f}q{size / 2:.1f} {-size * 0.22:.1f} {size:.1f} 0"
        )
    sway = 0.015 * canvas.unit
    svg = line(glints, "#fff", canvas.unit * 0.004, opacity=0.5)
    yield Layer(svg, canvas.box(top, bottom), lambda t: Pose(dx=sway * math.sin(1.6 * t)))


def _ground_top(scene: Scene, canvas: Canvas) -> float:
    return canvas.horizon + (0.1 * canvas.unit if scene.place == "beach" else 0)


def _ground(scene: Scene, canvas: Canvas, above: str, below: str) -> Layer:
    """Paint what the subjects stand on: a road, or earth with grass and flowers."""
    top, (left, _, width, _) = _ground_top(scene, canvas), canvas.box()
    wave = 0 if scene.place == "city" else 0.02 * canvas.unit
    edge = "".join(f"q{width / 16:.1f} {-wave if n % 2 else wave:.1f} {width / 8:.1f} 0" for n in range(8))
    shape = f"M{left} {top:.0f}{edge}V{canvas.height}H{left}Z"
    svg = gradient("ground", above, below) + tag("path", d=shape, fill="url(#ground)")
    if scene.place == "city":
        svg += rect(left, top, width, 0.05 * canvas.unit, fill="#B9C0C9")
        dashes = f"{0.11 * canvas.unit:.0f} {0.08 * canvas.unit:.0f}"
        middle = f"M{left} {top + 0.55 * (canvas.height - top):.0f}h{width}"
        svg += line(middle, "#F3E9C6", 0.012 * canvas.unit, stroke_dasharray=dashes)
    for _ in range(50 * width // canvas.width if scene.place != "city" else 0):
        x, near = canvas.random.uniform(left, left + width), canvas.random.random()
        y, size = top + (0.1 + 0.88 * near) * (canvas.height - top), canvas.unit * (0.009 + 0.013 * near)
        if scene.place not in {"meadow", "forest", "mountain"} or scene.weather == "snow":
            svg += oval(x, y, size * 0.8, size * 0.3, fill=below, opacity=0.75)
            continue
        svg += line(
            "".join(f"M{x} {y}q0 {-size * 0.6} {lean} {-size}" for lean in (-size / 2, 0, size / 2)),
            "#3F8A2C",
            size / 7,
        )
        if canvas.random.random() < 0.3 and scene.place != "forest":
            svg += oval(x, y - size, size * 0.36, fill=canvas.random.choice(_PETALS)) + oval(
                x, y - size, size * 0.14, fill="#E8912D"
            )
    return Layer(svg, canvas.box(top - 2 * wave), canvas.pan(1))


def _growing(scene: Scene, canvas: Canvas) -> Iterator[Layer]:
    """Set a few trees at the sides, where they leave the middle free."""
    symbol = _GROWING.get(scene.place, "")
    if not symbol or any(one.symbol in _GROWING.values() for one in scene.subjects):
        return
    art, svg = draw(Subject(symbol, symbol), 0), ""
    some, around = canvas.random.uniform, canvas.margin / canvas.width + 0.1
    shares = [side + turn for turn in (-1, 0, 1) for side in (0.09, 0.21, 0.88) if -around < side + turn < 1 + around]
    for tall, share in sorted((some(0.14, 0.3), share + some(-0.05, 0.05)) for share in shares):
        x, foot = share * canvas.width, _ground_top(scene, canvas) + (0.35 * tall + 0.02) * canvas.unit
        scale = tall * canvas.unit / art.height
        svg += oval(x, foot, art.width * scale * 0.4, 0.012 * canvas.unit, opacity=0.2) + placed(art, scale, x, foot)
    yield Layer(svg, canvas.box(canvas.horizon - 0.35 * canvas.unit), canvas.pan(0.85))


def _underwater(canvas: Canvas) -> list[Layer]:
    width, height, some = canvas.width, canvas.height, canvas.random.uniform
    whole = (0, 0, width, height)
    water = gradient("deep", "#5CC5E8", "#2A86C8", "#123F7A") + rect(*whole, fill="url(#deep)")
    rays = "".join(
        tag(
            "path",
            d=f"M{x * width} 0h{0.06 * width}l{0.12 * width} {height}h{-0.2 * width}Z",
            fill="#fff",
            opacity=0.07,
        )
        for x in (0.1, 0.37, 0.62, 0.85)
    )
    bubbles = "".join(
        oval(some(0, width), some(0, 1.4 * height), canvas.unit * some(0.004, 0.013), fill="#fff", opacity=0.4)
        for _ in range(40)
    )
    return [
        Layer(water, whole, tinted=0),
        Layer(rays, canvas.box(), lambda t: Pose(dx=0.02 * width * math.sin(t)), tinted=0),
        _hills(canvas, "#D9BE86", 0.1, 1, 0.97 * height),
        Layer(bubbles, canvas.box(0, 1.4 * height), lambda t: Pose(dy=-0.08 * height * (t + canvas.seconds / 2))),
    ]


def _room(canvas: Canvas) -> Layer:
    width, height, unit, floor = canvas.width, canvas.height, canvas.unit, canvas.horizon + 0.12 * canvas.unit
    x, y, wide, high = width * 0.72, floor - 0.52 * unit, 0.26 * unit, 0.34 * unit
    frame = f"M{x} {y}h{wide}v{high}h{-wide}ZM{x + wide / 2} {y}v{high}M{x} {y + high / 2}h{wide}"
    svg = gradient("wall", "#F6E7CF", "#EBD2AE") + rect(0, 0, width, height, fill="url(#wall)")
    svg += gradient("floor", "#B97F4E", "#8E5A33") + rect(0, floor, width, height, fill="url(#floor)")
    svg += rect(0, floor - 0.03 * unit, width, 0.03 * unit, fill="#FFF7E8")
    svg += rect(x, y, wide, high, fill="#AEDCF7") + line(frame, "#FFF9EE", 0.016 * unit)
    svg += oval(width / 2, (floor + height) / 2, 0.4 * unit, (height - floor) * 0.36, fill="#D8695E", opacity=0.8)
    return Layer(svg, (0, 0, width, height))
